//! `queuectl worker stop`

use std::io::Write;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::{ForeignHome, parse_id};
use crate::context::{Context, catch};
use crate::failure::Failure;
use crate::render::progress::Bar;
use crate::render::text::rough;
use domain::job::Job;
use domain::job::life::StateName;
use domain::text::nearest::nearest;
use domain::values::name::WorkerId;
use domain::values::span::parse_span;
use domain::values::timestamp::Timestamp;
use ops::error::did_you_mean;
use ops::jobs::calling_job::{CallingJob, workers_blocked_by_waiting};
use ops::json::WorkerJson;
use ops::worker::live::live_workers;
use ops::worker::stop::{Scope, StopOrder, order};
use store::settings::in_force;
use store::{JobFilter, Page, Phase, Store, StoreError, Worker};
use sys::poll::Poll;
use sys::process::user;

/// Stop workers after they finish their running jobs
///
/// Without WORKER, all workers of this home on this machine stop; with it, this one does, wherever it runs, and its pool does
/// not replace it.
///
/// The workers claim no more jobs. The command waits until they have exited; Ctrl-C stops waiting, but the workers continue
/// to drain. Jobs that are killed after the timeout return to the queue and lose no retry.
///
/// Inside a job, the command waits for all other running jobs, but not for that job, nor for jobs that are themselves
/// waiting. The workers that run such jobs exit when the jobs end.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  queuectl worker stop
  queuectl worker stop --timeout 30s
  queuectl worker stop --now
  queuectl worker stop w-1m7hv6eca1xcxeceqx")]
pub(super) struct Args {
    /// The id of the only worker to stop; `queuectl worker list` shows it
    #[arg(value_name = "WORKER", conflicts_with = "everywhere")]
    worker: Option<String>,
    /// Kill running jobs and return them to the queue; they run again later
    #[arg(long, conflicts_with = "timeout")]
    now: bool,
    /// Kill jobs that are still running after this long [default: the setting shutdown_grace]
    #[arg(short, long, value_name = "DURATION", value_parser = parse_span)]
    timeout: Option<Duration>,
    /// Stop all workers of this store; also those of other homes and on other machines
    #[arg(long)]
    everywhere: bool,
    #[command(flatten)]
    foreign_home: ForeignHome,
}

/// The interval between polls grows from the first to the second.
const MIN_STOP_POLL_INTERVAL: Duration = Duration::from_millis(5);
const MAX_STOP_POLL_INTERVAL: Duration = Duration::from_millis(200);
/// At most this many running jobs are named in the progress line.
const MAX_RUNNING_NAMED: usize = 3;

pub(super) fn run(args: &Args, context: &Context) -> Result<(), Failure> {
    args.foreign_home.apply(context)?;
    let store = context.store()?;
    let timeout = match args.timeout {
        Some(timeout) => Some(timeout),
        None if args.now => Some(Duration::ZERO),
        None => in_force(store)?.shutdown_grace,
    };
    let home = context.location()?.home;
    let worker = args.worker.as_deref().map(parse_id).transpose()?;
    let scope = match &worker {
        Some(worker) => Scope::Worker(worker),
        None if args.everywhere => Scope::Everywhere,
        None => Scope::Home(&home),
    };
    let inside = CallingJob::find(store)?;
    let by = inside.as_ref().map_or_else(user::name, CallingJob::actor);
    if let (Some(inside), true) = (&inside, args.now) {
        let job = inside.job.handle();
        context
            .hint(&format!("job {job}, which runs this command, is killed, too, and returns to the queue"))?;
    }
    let stopping = match order(store, scope, timeout, &by) {
        Err(error @ StoreError::NoSuchWorker(_)) => {
            let hint = nearest_live(store, args.worker.as_deref().unwrap_or_default())?;
            return Err(Failure::from(error).with_hint(hint));
        }
        other => other?,
    };
    let wait_lock = inside.as_ref().map(|inside| inside.mark_waiting(store)).transpose()?;
    let Waited { left_waiting, .. } = wait(&stopping, inside.as_ref(), None, store, context)?;
    drop(wait_lock);
    print_result(&stopping, &left_waiting, context)?;
    let others = match stopping.others {
        0 => return Ok(()),
        1 => "1 worker is still running".to_owned(),
        count => format!("{count} workers are still running"),
    };
    context.hint(&format!(
        "{others} in another home or on another machine; `queuectl worker stop --everywhere` stops all"
    ))?;
    Ok(())
}

/// Suggests the nearest of the workers that run.
fn nearest_live(store: &dyn Store, typed: &str) -> Result<String, Failure> {
    let workers = live_workers(store)?;
    let known = workers.iter().map(|worker| worker.id.as_str());
    Ok(did_you_mean(nearest(typed, known), "`queuectl worker list` shows the workers that run"))
}

/// Stops all workers of a store after they finish their running jobs, and waits until they have exited. Returns those that
/// have not until `end`.
pub(crate) fn stop_all(
    store: &dyn Store,
    end: Option<Instant>,
    context: &Context,
) -> Result<Vec<Worker>, Failure> {
    let grace = in_force(store)?.shutdown_grace;
    let stopping = order(store, Scope::Everywhere, grace, &user::name())?;
    Ok(wait(&stopping, None, end, store, context)?.late)
}

/// The workers that are left after a wait.
#[derive(Default)]
struct Waited {
    /// Those that it did not wait for, with their jobs: inside a job, those that run only this job and other waiting jobs.
    left_waiting: Vec<(WorkerId, Vec<String>)>,
    /// Those that have not exited in time.
    late: Vec<Worker>,
}

/// Waits until the workers have exited, or until `end`.
fn wait(
    stopping: &StopOrder,
    inside: Option<&CallingJob>,
    end: Option<Instant>,
    store: &dyn Store,
    context: &Context,
) -> Result<Waited, Failure> {
    let interrupts = catch(&[Signal::INT, Signal::TERM, Signal::HUP])?;
    let total = stopping.workers.len();
    let mut bar = Bar::new(context, "stopping", Some(total as u64));
    let mut poll = Poll::growing(MIN_STOP_POLL_INTERVAL, MAX_STOP_POLL_INTERVAL);
    loop {
        let mut left = stopping.still_there(store)?;
        let left_waiting = match inside {
            Some(inside) => workers_blocked_by_waiting(store, &left, &inside.job.id)?,
            None => Vec::new(),
        };
        left.retain(|worker| !left_waiting.iter().any(|(id, _)| *id == worker.id));
        if left.is_empty() || end.is_some_and(|end| Instant::now() >= end) {
            return Ok(Waited { left_waiting, late: left });
        }
        let note = waits_for(&left, store)?;
        bar.show(total.saturating_sub(left.len()) as u64, || note);
        if let Some(signal) = interrupts.sleep(poll.pause()) {
            bar.clear();
            context.hint(
                "the workers will stop when their jobs have finished; `queuectl worker list` shows them",
            )?;
            interrupts.end_by(signal);
        }
    }
}

/// `42 for 12s, job2 for 3s`
fn waits_for(workers: &[Worker], store: &dyn Store) -> Result<String, StoreError> {
    let running = JobFilter::in_phase(Phase::State(StateName::Processing));
    let jobs = store.list(&running, &Page { limit: MAX_RUNNING_NAMED, after: None })?;
    let now = store.now()?;
    let named: Vec<String> = jobs.iter().filter_map(|job| runs_in(job, workers, now)).collect();
    Ok(if named.is_empty() { String::new() } else { format!("waiting for {}", named.join(", ")) })
}

fn runs_in(job: &Job, workers: &[Worker], now: Timestamp) -> Option<String> {
    let lease = job.life.state.lease()?;
    let is_one_of_them = workers.iter().any(|worker| worker.id == lease.worker);
    is_one_of_them.then(|| format!("{} for {}", job.handle(), rough(now.since(lease.started_at))))
}

fn print_result(
    stopping: &StopOrder,
    left_waiting: &[(WorkerId, Vec<String>)],
    context: &Context,
) -> Result<(), Failure> {
    if context.json {
        context.print_json(&stopping.workers.iter().map(WorkerJson::from).collect::<Vec<_>>())?;
    } else if !context.quiet {
        let mut notes = context.notes();
        match stopping.workers.len().saturating_sub(left_waiting.len()) {
            0 if !left_waiting.is_empty() => {}
            0 if stopping.others > 0 => writeln!(notes, "No worker is running in this home")?,
            0 => writeln!(notes, "No worker is running")?,
            1 => writeln!(notes, "1 worker stopped")?,
            count => writeln!(notes, "{count} workers stopped")?,
        }
        let jobs: Vec<&str> =
            left_waiting.iter().flat_map(|(_, jobs)| jobs.iter().map(String::as_str)).collect();
        let jobs = jobs.join(", ");
        match left_waiting.len() {
            0 => {}
            1 => writeln!(notes, "1 worker will stop when these waiting jobs have finished: {jobs}")?,
            count => {
                writeln!(notes, "{count} workers will stop when these waiting jobs have finished: {jobs}")?;
            }
        }
    }
    Ok(())
}
