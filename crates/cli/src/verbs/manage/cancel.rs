//! `queuectl cancel`

use sys::program::ExitCode;

use super::change::{ChangeArgs, Wording, change, code_of, describe_dependents, find};
use crate::confirm::ask;
use crate::context::Context;
use crate::failure::Failure;
use crate::flags::handle::latest_unfinished_to_change;
use crate::flags::selection::{Selection, SelectionArgs};
use crate::render::text::printable;
use domain::job::life::StateName;
use domain::values::signal::Signal;
use ops::jobs::change::{ChangedJob, Verb};

/// Cancel waiting or running jobs
///
/// A waiting job is cancelled at once. For a running job, the worker kills the command and every process that it started;
/// queuectl waits up to a second for that. A finished job cannot be cancelled (exit code 4).
///
/// Jobs that depend on a cancelled job are cancelled too, unless their --on-dependency-failure is run. They are listed;
/// with --json, each job has a list `cancelled_dependents`. If there are very many, the workers cancel the rest.
///
/// A running command first gets SIGTERM, or the signal of --signal, and SIGKILL after `kill_grace`. A job that is not
/// running gets no signal.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  queuectl cancel job1
  queuectl cancel job1 job2 --json
  queuectl cancel job1 --signal INT
  queuectl cancel --queue mail --state ready,scheduled --dry-run
  queuectl cancel --command-like 'convert *' --yes")]
pub(crate) struct Args {
    #[command(flatten)]
    signal: SignalArg,
    #[command(flatten)]
    change: ChangeArgs,
    #[command(flatten)]
    selection: SelectionArgs,
}

/// How running jobs are ended.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct SignalArg {
    /// Send this signal first instead of SIGTERM: a name with or without SIG, or a number. Repeat the command with KILL if a
    /// job ignores it
    #[arg(long, value_name = "SIGNAL", value_parser = Signal::parse_end)]
    signal: Option<Signal>,
}

impl SignalArg {
    pub(crate) fn wording(self) -> Wording {
        Wording { verb: Verb::Cancel { signal: self.signal }, ..CANCEL }
    }
}

const CANCEL: Wording =
    Wording { verb: Verb::CANCEL, infinitive: "cancel", participle: "cancelled", is_final: false, sentence };

pub(crate) fn run(args: &Args, context: &Context) -> Result<ExitCode, Failure> {
    let which = args.selection.resolve_or(context, || latest_after_asking(args, context))?;
    change(context, which, &args.change, &args.signal.wording()).map(code_of)
}

/// The user did not name the job, so the question does.
fn latest_after_asking(args: &Args, context: &Context) -> Result<Selection, Failure> {
    let id = latest_unfinished_to_change(context)?;
    let job = find(context.store()?, &id)?;
    let what = format!("cancel job {} ({})", job.handle(), printable(job.label()));
    ask(context, &what, args.change.yes)?;
    Ok(Selection::Named(id.into()))
}

fn sentence(changed: &ChangedJob) -> String {
    let id = changed.job.handle();
    match changed.state {
        StateName::Processing => format!("Job {id} is being stopped by its worker"),
        StateName::Completed => format!("Job {id} completed before it could be stopped"),
        StateName::Pending | StateName::Failed | StateName::Dead | StateName::Cancelled => {
            match &changed.dependents[..] {
                [] => format!("Job {id} cancelled"),
                dependents => format!("Job {id} cancelled, and {}", describe_dependents(dependents)),
            }
        }
    }
}
