//! `queuectl backup`

use std::path::PathBuf;

use serde::Serialize;

use crate::context::Context;
use crate::failure::Failure;
use crate::render::progress::Bar;
use crate::render::report_change::report_change;
use crate::render::text::rough_size;
use ops::upkeep::backup::backup;
use store::sqlite::Progress;
use sys::process::user;

/// Copy the whole queue into one file while workers keep running
///
/// The file contains jobs, history, output, settings and the environments of jobs, so keep it as secret as the queue. Only
/// you can read it. It is a consistent snapshot, and appears only when it is complete. `queuectl restore` restores it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  queuectl backup queue-backup.db
  queuectl backup --force /mnt/backups/queue.db")]
pub(crate) struct Args {
    /// The file to write
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Replace an existing file
    #[arg(short, long)]
    force: bool,
}

#[derive(Serialize)]
struct BackupJson {
    file: String,
    bytes: u64,
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<(), Failure> {
    let mut bar = Bar::new(context, "copying", None);
    let mut progress = |Progress { done, total }: Progress| {
        bar.say(|| format!("copying {} of {}", rough_size(done), rough_size(total)));
    };
    let bytes = backup(&context.location()?, &args.file, args.force, &mut progress)?;
    drop(bar);
    let file = args.file.display().to_string();
    if let Err(error) = context.store()?.note("backup", &user::name(), &file) {
        // Not a failure: the backup is complete, and a full disk is a common reason to make one.
        context.hint(&format!("failed to record the backup in the event log ({error})"))?;
    }
    let sentence = format!("Backup written to {file} ({})", rough_size(bytes));
    report_change(context, &file.clone(), &BackupJson { file, bytes }, &sentence)
}
