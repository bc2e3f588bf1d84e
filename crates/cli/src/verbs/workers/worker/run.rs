//! `queuectl worker run`

use super::pool::{PoolArguments, PoolFlags};
use super::start::add_ignore_file;
use crate::context::Context;
use crate::failure::{Exit, Failure};
use engine::Pool;
use ops::home::open::reopen;
use ops::jobs::calling_job::CallingJob;
use sys::service_manager::ServiceManager;

/// Run workers in the foreground, for systemd, containers and CI
///
/// After SIGTERM, SIGINT (Ctrl-C) or SIGHUP, the workers finish their running jobs and exit. A second SIGTERM or SIGINT
/// stops the jobs and returns them to the queue; a third kills them at once.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  queuectl worker run
  queuectl worker run --concurrency 4 --until-empty")]
pub(super) struct Args {
    #[command(flatten)]
    flags: PoolFlags,
    /// Exit when its queues have no work left: no job is ready, running or waiting for a retry
    #[arg(long)]
    until_empty: bool,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<(), Failure> {
    args.flags.foreign_home.apply(context)?;
    if args.until_empty {
        refuse_inside(args, context)?;
    }
    context.store_for_workers()?.tidy();
    let location = context.location()?.absolute()?;
    add_ignore_file(&location);
    let pool = PoolArguments {
        until_empty: args.until_empty,
        echo: !context.quiet,
        ..PoolArguments::new(args.flags.clone())
    };
    let open = || reopen(&location.store);
    let pool = Pool { service_manager: ServiceManager::from_environment(), ..pool.into_pool(&location) };
    Ok(engine::run_supervisor(&pool, &open, &mut |_| {})?)
}

/// Refuses a deadlock: workers inside a job would wait for that job's queue to become empty, and the job for them.
fn refuse_inside(args: &Args, context: &Context) -> Result<(), Failure> {
    let queues = &args.flags.queues;
    let Some(inside) = CallingJob::find(context.store_or_new()?)? else {
        return Ok(());
    };
    let (id, queue) = (&inside.job.id, &inside.job.queue);
    if !queues.is_empty() && !queues.contains(queue) {
        return Ok(());
    }
    let message =
        format!("queue `{queue}` cannot become empty while job `{id}`, which runs this command, is running");
    Err(Failure::new(Exit::Conflict, message).with_hint(
        "inside a job, use `queuectl run` or `queuectl wait`: they start a worker if the awaited job needs one",
    ))
}
