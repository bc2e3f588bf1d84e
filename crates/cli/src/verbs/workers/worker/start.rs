//! `queuectl worker start`

use std::io::Write;

use super::pool::{ForeignHome, PoolArguments, PoolFlags, secret_address};
use crate::context::Context;
use crate::failure::Failure;
use domain::values::concurrency::Concurrency;
use domain::values::name::{BatchName, JobId};

use ops::home::ignore;
use ops::home::location::Location;
use ops::jobs::calling_job::CallingJob;
use ops::worker::live::{live_workers, slots_for_new_jobs};

/// Start workers in the background; returns when they are up
///
/// The workers keep running when this terminal is closed. Running the command again adds more workers. They log to
/// worker.log in the home.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  queuectl worker start
  queuectl worker start --count 3 --concurrency 4
  queuectl worker start --queue urgent,default")]
pub(super) struct Args {
    #[command(flatten)]
    flags: PoolFlags,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<(), Failure> {
    args.flags.foreign_home.apply(context)?;
    let count = args.flags.count;
    start(context, &PoolArguments::new(args.flags.clone()))?;
    if !context.quiet {
        let (workers, them) = if count == 1 { ("worker", "it") } else { ("workers", "them") };
        let is_watched = context.shows_progress();
        let place = if is_watched { " in the background" } else { "" };
        let in_all = if is_watched { slots_in_all(context, count)? } else { String::new() };
        writeln!(context.notes(), "{count} {workers} started{place}{in_all}")?;
        if is_watched {
            context.hint(&format!(
                "`queuectl worker stop` stops {them}; `worker run` stays in the foreground"
            ))?;
        }
    }
    context.note_home()?;
    if let Some(inside) = CallingJob::find(context.store_or_new()?)? {
        context.hint(&format!("they stop when job {}, which started them, ends", inside.job.id))?;
    }
    Ok(())
}

/// How many jobs can run now at the same time, if these `count` workers are not the only ones.
fn slots_in_all(context: &Context, count: u32) -> Result<String, Failure> {
    let mut workers = live_workers(context.store_or_new()?)?;
    workers.retain(|worker| worker.served.takes_new_jobs());
    let slots = slots_for_new_jobs(&workers);
    let are_others = workers.len() > count as usize;
    Ok(if are_others { format!("; all workers have {slots} slots now") } else { String::new() })
}

/// Starts a worker in the background that serves only this job and exits with it.
pub(crate) fn start_for_job(context: &Context, job: &JobId) -> Result<(), Failure> {
    let pool = PoolArguments::new(one_worker(Some(Concurrency::Slots(1))));
    start(context, &PoolArguments { job: Some(job.clone()), ..pool })
}

/// Starts a worker in the background that serves only the jobs of this batch, and exits when they are finished.
pub(crate) fn start_for_batch(
    context: &Context,
    batch: &BatchName,
    concurrency: Concurrency,
) -> Result<(), Failure> {
    let pool = PoolArguments::new(one_worker(Some(concurrency)));
    start(context, &PoolArguments { batch: Some(batch.clone()), ..pool })
}

/// Starts a worker in the background that serves all queues, and exits when it has been idle for a while.
pub(crate) fn start_until_idle(context: &Context) -> Result<(), Failure> {
    start(context, &PoolArguments { until_idle: true, ..PoolArguments::new(one_worker(None)) })
}

fn one_worker(concurrency: Option<Concurrency>) -> PoolFlags {
    PoolFlags { count: 1, concurrency, queues: Vec::new(), foreign_home: ForeignHome::inherited() }
}

/// For a home that an earlier version created. Workers do not need the file, so a failure to add it is ignored.
pub(super) fn add_ignore_file(location: &Location) {
    let _ = ignore::add_file(&location.home);
}

/// Starts a pool in the background.
fn start(context: &Context, pool: &PoolArguments) -> Result<(), Failure> {
    // Report problems with the store here: the user does not see the output of the background process.
    context.store_for_workers()?;
    let location = context.location()?.absolute()?;
    add_ignore_file(&location);
    let log = engine::open_log(&location.home)?;
    Ok(engine::start_detached(
        pool.call("__supervisor", &location),
        secret_address(&location).as_ref(),
        &log,
    )?)
}
