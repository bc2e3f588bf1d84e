//! `queuectl restore`

use std::path::PathBuf;

use serde::Serialize;

use crate::confirm::ask;
use crate::context::Context;
use crate::failure::Failure;
use crate::render::progress::Bar;
use crate::render::report_change::report_change;
use crate::render::text::{grouped, jobs, printable};
use ops::OpError;
use ops::jobs::calling_job::CallingJob;
use ops::upkeep::restore::{ExistingQueue, prepare};
use store::sqlite::{RestoreError, RestoreSummary};
use sys::process::user;

/// Replace the queue with a backup
///
/// The backup is checked first. Nothing is changed if it is damaged or written by a newer version (exit code 7), or if
/// workers are running (exit code 4). A job that was running when the backup was made counts as lost and runs again. If the
/// current queue has jobs, it is kept next to the new one, as a backup.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  queuectl restore queue-backup.db
  queuectl restore --yes /mnt/backups/queue.db")]
pub(crate) struct Args {
    /// The backup
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Do not ask before replacing jobs
    #[arg(short, long)]
    yes: bool,
}

#[derive(Serialize)]
struct RestoredJson {
    jobs: u64,
    lost: u64,
    kept: Option<String>,
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<(), Failure> {
    // Checking and copying may take long for a large queue.
    let mut bar = Bar::new(context, "", None);
    bar.say(|| "checking the backup".to_owned());
    let ready = match prepare(&context.location()?, &args.file, &user::name()) {
        Err(error @ OpError::Restore(RestoreError::Workers { .. })) => {
            return Err(hint_inside(context, error));
        }
        prepared => prepared?,
    };
    bar.clear();
    let replaced = match ready.existing_queue() {
        ExistingQueue::Jobs(0) => None,
        ExistingQueue::Jobs(count) => Some(format!("replace a queue of {}", jobs(count))),
        ExistingQueue::Unreadable => Some("replace a queue that cannot be read".to_owned()),
    };
    if let Some(what) = replaced {
        ask(context, &what, args.yes)?;
    }
    bar.say(|| "replacing the queue".to_owned());
    let restored = ready.commit()?;
    drop(bar);
    print_result(context, &restored)
}

/// Inside a job, stopping the workers first would not help: one of them runs the job.
fn hint_inside(context: &Context, error: OpError) -> Failure {
    let failure: Failure = error.into();
    let inside = context.store().ok().and_then(|store| CallingJob::find(store).ok().flatten());
    match inside {
        Some(CallingJob { job, .. }) => {
            failure.with_hint(format!("run restore outside of job `{}`, which needs its worker", job.id))
        }
        None => failure,
    }
}

fn print_result(context: &Context, restored: &RestoreSummary) -> Result<(), Failure> {
    let kept = restored.kept.as_ref().map(|path| path.display().to_string());
    let json = RestoredJson { jobs: restored.jobs, lost: restored.lost, kept: kept.clone() };
    report_change(context, &restored.jobs.to_string(), &json, &format!("{} restored", jobs(restored.jobs)))?;
    if context.json {
        return Ok(());
    }
    if restored.lost > 0 {
        context
            .hint(&format!("{} running when the backup was made and will run again", were(restored.lost)))?;
    }
    match kept {
        Some(kept) => context.hint(&format!("the previous queue is kept in {}", printable(&kept))),
        None => Ok(()),
    }
}

fn were(count: u64) -> String {
    if count == 1 { "1 job was".to_owned() } else { format!("{} jobs were", grouped(count)) }
}
