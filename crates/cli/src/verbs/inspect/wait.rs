//! `queuectl wait`

use std::collections::HashMap;
use std::io::Write;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::context::{Context, catch};
use crate::failure::{Exit, Failure};
use crate::flags::selection::{Which, WhichArgs, hint_at_nothing};
use crate::loan::Loan;
use crate::render::progress::Bar;
use crate::render::report_change::{code_of, tell};
use crate::render::text::{grouped, rough};
use domain::job::Job;
use domain::job::life::StateName;
use domain::values::name::JobId;
use domain::values::span::parse_span;
use domain::values::timestamp::Timestamp;
use ops::OpError;
use ops::jobs::bulk::select;
use ops::jobs::inside::CallingJob;
use ops::jobs::wait::{UnfinishedJob, Wait, WaitEnd};
use ops::json::JobJson;
use ops::status::HOW_TO_START_A_WORKER;
use ops::worker::alive::{live_workers, why_no_job_starts};
use store::Store;

/// Wait until jobs are finished
///
/// Prints each job that completed. The exit code is 0 if all of them did, 1 if one is dead or cancelled, 3 if there is no
/// such job, 124 if the time ran out. A failed job waits for its retry, and so does this. Ctrl-C ends the waiting, not
/// the jobs.
///
/// Inside a job it refuses to wait for that job and for those that depend on it (exit code 4). Where all slots are busy it
/// starts a worker for the jobs that it waits for, one after the other.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  queuectl wait job1 job2
  queuectl wait job1 --timeout 10m && echo done
  queuectl wait --tag nightly --state ready,processing
  queuectl enqueue --file jobs.jsonl | xargs queuectl wait -q")]
pub(crate) struct Args {
    #[command(flatten)]
    which: WhichArgs,
    /// How long to wait at most: 90, 1m30s [default: for ever]
    #[arg(long, value_name = "DURATION", allow_negative_numbers = true, value_parser = parse_span)]
    timeout: Option<Duration>,
}

/// The pause between two looks grows from the first to the second while nothing happens.
const SHORTEST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(100);
/// How often to look whether a worker is running, until somebody had to be told.
const WORKERS_PAUSE: Duration = Duration::from_secs(1);
/// How many jobs may ask at once for the slot of a job that waits for them.
const MAX_OFFERED: usize = 100;
/// How many running jobs the progress names.
const MAX_RUNNING_NAMED: usize = 3;

pub(crate) fn run(args: &Args, context: &Context) -> Result<ExitCode, Failure> {
    let ids = meant(args.which.resolve(context)?, context)?;
    let store = context.store()?;
    let mut loan = match CallingJob::find(store)? {
        Some(inside) => {
            inside.check_may_wait_for(store, ids.iter().cloned())?;
            Some(Loan::new(context, store, inside)?)
        }
        None => None,
    };
    let interrupts = catch(&[Signal::INT, Signal::TERM, Signal::HUP])?;
    let deadline = args.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    let mut wait = Wait::new(ids.iter().cloned());
    let mut waiting = Waiting::new(context, store, ids.len());
    waiting.tell(wait.poll_all(store)?)?;
    let mut pause = SHORTEST_PAUSE;
    while !wait.is_over() {
        let left =
            deadline.map_or(LONGEST_PAUSE, |deadline| deadline.saturating_duration_since(Instant::now()));
        if left.is_zero() {
            break;
        }
        waiting.show(&wait)?;
        if let Some(loan) = &mut loan {
            loan.look(|| Ok(wait.unfinished().take(MAX_OFFERED).map(|job| job.id.clone()).collect()))?;
        }
        if let Some(signal) = interrupts.sleep(pause.min(left)) {
            drop(waiting);
            interrupts.end_by(signal);
        }
        let ended = wait.poll(store)?;
        pause = if ended.is_empty() { (pause * 2).min(LONGEST_PAUSE) } else { SHORTEST_PAUSE };
        waiting.tell(ended)?;
    }
    waiting.tell(wait.poll_all(store)?)?;
    if let (Some(after), false) = (args.timeout, wait.is_over()) {
        waiting.give_up(&wait, after)?;
    }
    waiting.finish(&ids)
}

/// Those of a kind are the ones that are there now; what comes later is not waited for.
fn meant(which: Which, context: &Context) -> Result<Vec<JobId>, Failure> {
    match which {
        Which::Ids(ids) => Ok(ids),
        Which::Kind(filter) => {
            let mut selected = select(context.store()?, &filter)?;
            if selected.is_empty() {
                hint_at_nothing(context, &filter)?;
            }
            selected.reverse();
            Ok(selected.into_iter().map(|seen| seen.id).collect())
        }
    }
}

/// What is said while jobs are waited for, and what comes of it.
struct Waiting<'a> {
    context: &'a Context,
    store: &'a dyn Store,
    bar: Bar,
    total: usize,
    /// Jobs as they are printed in the end.
    jobs: HashMap<JobId, Job>,
    worst: Option<Exit>,
    /// When to look for workers next; never again after it was said that there are none.
    workers_due: Option<Instant>,
}

impl<'a> Waiting<'a> {
    fn new(context: &'a Context, store: &'a dyn Store, total: usize) -> Self {
        Self {
            context,
            store,
            bar: Bar::new(context, "waiting", Some(total as u64)),
            total,
            jobs: HashMap::new(),
            worst: None,
            workers_due: Some(Instant::now()),
        }
    }

    /// Says what became of jobs as soon as it is known.
    fn tell(&mut self, ended: Vec<WaitEnd>) -> Result<(), Failure> {
        if ended.is_empty() {
            return Ok(());
        }
        self.bar.clear();
        let mut out = self.context.out();
        for end in ended {
            match end.verdict() {
                Ok(_) if self.context.json || self.context.quiet => {}
                Ok(job) if self.context.person_reads => writeln!(out, "Job {} completed", job.id)?,
                Ok(job) => writeln!(out, "{}", job.id)?,
                Err(error) => self.worst = self.worst.max(Some(tell(self.context, &error.into()))),
            }
            if let (true, WaitEnd::Finished(job)) = (self.context.json, end) {
                self.jobs.insert(job.id.clone(), *job);
            }
        }
        Ok(out.flush()?)
    }

    /// Shows how far it is, and says it once if nobody works on it.
    fn show(&mut self, wait: &Wait) -> Result<(), Failure> {
        if self.workers_due.is_some_and(|due| due <= Instant::now()) {
            self.workers_due = Instant::now().checked_add(WORKERS_PAUSE);
            if let Some(why) = why_no_job_starts(&live_workers(self.store)?) {
                self.bar.clear();
                self.context.hint(&format!("{why}; {HOW_TO_START_A_WORKER}"))?;
                self.workers_due = None;
            }
        }
        let now = self.store.now()?;
        let done = self.total - wait.unfinished().len();
        self.bar.show(done as u64, || progress(wait.unfinished(), now));
        Ok(())
    }

    fn give_up(&mut self, wait: &Wait, after: Duration) -> Result<(), Failure> {
        self.bar.clear();
        for job in wait.unfinished().filter(|_| self.context.json) {
            self.jobs.extend(self.store.find(&job.id)?.map(|job| (job.id.clone(), job)));
        }
        let unfinished = wait.unfinished().filter_map(|job| Some((job.id.clone(), job.state?)));
        let error = OpError::TimedOut { after, unfinished: unfinished.collect(), of: self.total };
        self.worst = self.worst.max(Some(tell(self.context, &error.into())));
        Ok(())
    }

    /// Prints the jobs as they are in the end, in the order in which they were named.
    fn finish(mut self, ids: &[JobId]) -> Result<ExitCode, Failure> {
        self.bar.clear();
        if self.context.json {
            let jobs = ids.iter().filter_map(|id| self.jobs.get(id));
            self.context.print_json(&jobs.map(JobJson::from).collect::<Vec<_>>())?;
        }
        Ok(code_of(self.worst))
    }
}

/// `2 processing (a for 12s, b for 3s), 1 failed, 5 pending`
fn progress<'a>(unfinished: impl Iterator<Item = &'a UnfinishedJob>, now: Timestamp) -> String {
    let mut counts: HashMap<StateName, u64> = HashMap::new();
    let mut running = Vec::new();
    for job in unfinished {
        *counts.entry(job.state.unwrap_or(StateName::Pending)).or_default() += 1;
        running.extend(job.running_since.map(|since| (since, &job.id)));
    }
    running.sort_unstable();
    let named = running.iter().take(MAX_RUNNING_NAMED);
    let named: Vec<String> =
        named.map(|(since, id)| format!("{id} for {}", rough(now.since(*since)))).collect();
    let states = [StateName::Processing, StateName::Failed, StateName::Pending];
    let parts = states.into_iter().filter_map(|state| {
        let count = grouped(*counts.get(&state)?);
        let name = state.name();
        Some(if state == StateName::Processing {
            format!("{count} {name} ({})", named.join(", "))
        } else {
            format!("{count} {name}")
        })
    });
    parts.collect::<Vec<_>>().join(", ")
}
