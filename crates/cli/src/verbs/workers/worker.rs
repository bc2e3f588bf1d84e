//! `queuectl worker`: one file per verb.

mod forget;
mod hidden;
mod list;
mod pool;
mod run;
mod start;
pub(crate) mod stop;

pub(crate) use hidden::{run_supervisor, run_worker};
pub(crate) use list::table;
pub(crate) use pool::{ForeignHome, PoolFlags};
pub(crate) use start::{start_for_batch, start_for_job, start_until_idle};

use crate::context::Context;
use crate::failure::Failure;
use domain::values::name::WorkerId;
use ops::OpError;

/// Start, stop and list the workers that run jobs
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  queuectl worker start --count 3 --concurrency 4\n  queuectl worker list\n  queuectl worker stop"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: WorkerVerb,
}

#[derive(Debug, clap::Subcommand)]
enum WorkerVerb {
    Start(start::Args),
    Run(run::Args),
    Stop(stop::Args),
    List(list::Args),
    Forget(forget::Args),
}

fn parse_id(typed: &str) -> Result<WorkerId, OpError> {
    typed.parse().map_err(|source| OpError::BadName { what: "id", typed: typed.to_owned(), source })
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<(), Failure> {
    match &args.verb {
        WorkerVerb::Start(args) => start::run(args, context),
        WorkerVerb::Run(args) => run::run(args, context),
        WorkerVerb::Stop(args) => stop::run(args, context),
        WorkerVerb::List(args) => list::run(args, context),
        WorkerVerb::Forget(args) => forget::run(args, context),
    }
}
