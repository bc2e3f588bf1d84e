//! `queuectl worker stop`

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use rustix::process::Signal;

use crate::context::{Context, catch};
use crate::failure::Failure;
use crate::render::progress::Bar;
use crate::render::text::rough;
use domain::job::Job;
use domain::job::life::{State, StateName};
use domain::values::name::{JobId, WorkerId};
use domain::values::span::parse_span;
use domain::values::timestamp::Timestamp;
use ops::jobs::inside::{CallingJob, workers_blocked_by_waiting};
use ops::json::WorkerJson;
use ops::worker::stop::{Scope, StopOrder, order};
use store::settings::in_force;
use store::{JobFilter, Page, Phase, Store, StoreError, Worker};
use sys::process::user;

/// Let workers finish what they run, and end them
///
/// They claim nothing more. This waits until they have ended; Ctrl-C stops the waiting, not the draining. Jobs that are
/// killed because time ran out go back to the queue, and that uses up no retry.
///
/// Inside a job this waits for everything else that the workers run, but not for that job, nor for others that wait for
/// jobs or for a stop themselves: their workers end with them.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  queuectl worker stop
  queuectl worker stop --timeout 30s
  queuectl worker stop --now")]
pub(super) struct Args {
    /// Kill what runs instead of letting it finish, and give it back
    #[arg(long, conflicts_with = "timeout")]
    now: bool,
    /// Kill what still runs after this time [default: the setting `shutdown_grace`]
    #[arg(long, value_name = "DURATION", value_parser = parse_span)]
    timeout: Option<Duration>,
    /// Stop all workers of this queue: those of other homes and on other machines too
    #[arg(long)]
    everywhere: bool,
}

/// The pause between two looks grows from the first to the second.
const SHORTEST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(200);
/// How many running jobs the progress names.
const MAX_RUNNING_NAMED: usize = 3;

pub(super) fn run(args: &Args, context: &Context) -> Result<ExitCode, Failure> {
    let store = context.store()?;
    let patience = match args.timeout {
        Some(timeout) => Some(timeout),
        None if args.now => Some(Duration::ZERO),
        None => in_force(store)?.shutdown_grace,
    };
    let home = context.location()?.home;
    let scope = if args.everywhere { Scope::Everywhere } else { Scope::Home(&home) };
    let inside = CallingJob::find(store)?;
    let by = inside.as_ref().map_or_else(user::name, CallingJob::actor);
    if let (Some(inside), true) = (&inside, args.now) {
        let id = &inside.job.id;
        context.hint(&format!("job {id}, which calls this, is killed too and goes back to the queue"))?;
    }
    let stopping = order(store, scope, patience, &by)?;
    let mark = inside.as_ref().map(|inside| inside.mark_waiting(store)).transpose()?;
    let kept = wait(&stopping, inside.as_ref(), store, context)?;
    drop(mark);
    tell(&stopping, &kept, context)?;
    let others = match stopping.others {
        0 => return Ok(ExitCode::SUCCESS),
        1 => "1 worker of this queue goes on".to_owned(),
        count => format!("{count} workers of this queue go on"),
    };
    context.hint(&format!(
        "{others} in another home or on another machine; `queuectl worker stop --everywhere` stops all"
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// Gives the workers that were not waited for, with what they run. Inside a job these are the workers that run nothing but
/// this job and others that wait as it does.
fn wait(
    stopping: &StopOrder,
    inside: Option<&CallingJob>,
    store: &dyn Store,
    context: &Context,
) -> Result<Vec<(WorkerId, Vec<JobId>)>, Failure> {
    let interrupts = catch(&[Signal::INT, Signal::TERM, Signal::HUP])?;
    let total = stopping.workers.len();
    let mut bar = Bar::new(context, "stopping", Some(total as u64));
    let mut pause = SHORTEST_PAUSE;
    loop {
        let mut left = stopping.still_there(store)?;
        let kept = match inside {
            Some(inside) => workers_blocked_by_waiting(store, &left, &inside.job.id)?,
            None => Vec::new(),
        };
        left.retain(|worker| !kept.iter().any(|(id, _)| *id == worker.id));
        if left.is_empty() {
            return Ok(kept);
        }
        let note = waits_for(&left, store)?;
        bar.show(total.saturating_sub(left.len()) as u64, || note);
        if let Some(signal) = interrupts.sleep(pause) {
            bar.clear();
            context.hint("the workers go on finishing what they run; `queuectl worker list` shows them")?;
            interrupts.end_by(signal);
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// `job1 for 12s, job2 for 3s`
fn waits_for(workers: &[Worker], store: &dyn Store) -> Result<String, StoreError> {
    let running = JobFilter::in_phase(Phase::State(StateName::Processing));
    let jobs = store.list(&running, &Page { limit: MAX_RUNNING_NAMED, after: None })?;
    let now = store.now()?;
    let named: Vec<String> = jobs.iter().filter_map(|job| runs_in(job, workers, now)).collect();
    Ok(if named.is_empty() { String::new() } else { format!("waits for {}", named.join(", ")) })
}

fn runs_in(job: &Job, workers: &[Worker], now: Timestamp) -> Option<String> {
    let State::Processing(lease) = &job.life.state else {
        return None;
    };
    let is_one_of_them = workers.iter().any(|worker| worker.id == lease.worker);
    is_one_of_them.then(|| format!("{} for {}", job.id, rough(now.since(lease.started_at))))
}

fn tell(stopping: &StopOrder, kept: &[(WorkerId, Vec<JobId>)], context: &Context) -> Result<(), Failure> {
    if context.json {
        context.print_json(&stopping.workers.iter().map(WorkerJson::from).collect::<Vec<_>>())?;
    } else if !context.quiet {
        let mut notes = context.notes();
        match stopping.workers.len().saturating_sub(kept.len()) {
            0 if !kept.is_empty() => {}
            0 if stopping.others > 0 => writeln!(notes, "No worker is running in this home")?,
            0 => writeln!(notes, "No worker is running")?,
            1 => writeln!(notes, "1 worker stopped")?,
            count => writeln!(notes, "{count} workers stopped")?,
        }
        let jobs: Vec<&str> = kept.iter().flat_map(|(_, jobs)| jobs.iter().map(JobId::as_str)).collect();
        let jobs = jobs.join(", ");
        match kept.len() {
            0 => {}
            1 => writeln!(notes, "1 worker ends when it has finished what waits here: {jobs}")?,
            count => writeln!(notes, "{count} workers end when they have finished what waits here: {jobs}")?,
        }
    }
    Ok(())
}
