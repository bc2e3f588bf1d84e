//! The hidden verbs with which queuectl starts itself: the detached supervisor and its workers.

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use sys::program::ExitCode;

use super::pool::PoolArguments;
use crate::context::Context;
use crate::failure::Failure;
use domain::values::name::WorkerId;
use engine::{UP, WorkerExit, WorkerPlan};
use ops::home::open::reopen;
use sys::process::spawn;

/// The supervisor started by `worker start`.
pub(crate) fn run_supervisor(pool: PoolArguments, context: &Context) -> Result<ExitCode, Failure> {
    pool.flags.foreign_home.apply(context)?;
    let mut caller = Some(File::from(report_pipe()?));
    let location = context.location()?;
    let open = || reopen(&location.store);
    // A pipe that closes without a message tells the caller that the start failed.
    let mut report_ready = |has_begun| {
        if let Some(mut caller) = caller.take()
            && has_begun
        {
            // The supervisor keeps running even if the caller is gone.
            let _ = caller.write_all(UP.as_bytes());
        }
    };
    engine::run_supervisor(&pool.into_pool(&location), &open, &mut report_ready)?;
    Ok(ExitCode::SUCCESS)
}

/// One worker of a supervisor
#[derive(Debug, clap::Args)]
pub(crate) struct WorkerArgs {
    #[command(flatten)]
    pool: PoolArguments,
    #[arg(long)]
    id: WorkerId,
    #[arg(long)]
    supervisor_pid: u32,
    #[arg(long)]
    stop_seen: Option<u64>,
}

pub(crate) fn run_worker(args: WorkerArgs, context: &Context) -> Result<ExitCode, Failure> {
    args.pool.flags.foreign_home.apply(context)?;
    let location = context.location()?;
    let plan = WorkerPlan {
        served: args.pool.served(),
        id: args.id,
        home: location.home.clone(),
        store: location.store_variable(),
        environment: location.environment(),
        concurrency: args.pool.flags.concurrency,
        supervisor_pid: args.supervisor_pid,
        stop_seen: args.stop_seen,
        until_empty: args.pool.until_empty,
        until_idle: args.pool.until_idle,
        echo: args.pool.echo,
        ready: report_pipe()?,
    };
    Ok(match engine::run_worker(&plan, &|| reopen(&location.store))? {
        WorkerExit::Stopped => ExitCode::SUCCESS,
        WorkerExit::HoldsLeases => ExitCode::from(WorkerExit::HOLDS_LEASES_CODE),
        WorkerExit::Refused => ExitCode::from(WorkerExit::REFUSED_CODE),
        WorkerExit::Outdated => ExitCode::from(WorkerExit::OUTDATED_CODE),
    })
}

/// The pipe to the process that started this one, which waits for a report.
fn report_pipe() -> Result<OwnedFd, Failure> {
    spawn::take_report_pipe()
        .map_err(|_| Failure::usage("queuectl calls this itself; use `queuectl worker start`"))
}
