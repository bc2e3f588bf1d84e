//! `queuectl wait`

use std::collections::HashMap;
use std::io::Write;
use std::time::{Duration, Instant};
use sys::program::ExitCode;

use rustix::process::Signal;

use crate::context::{Context, catch};
use crate::failure::{Exit, Failure};
use crate::flags::handle::NamedJobs;
use crate::flags::selection::{Selection, SelectionArgs, hint_no_match};
use crate::render::progress::Bar;
use crate::render::text::{grouped, rough};
use crate::slot_loan::SlotLoan;
use crate::verbs::manage::change::{code_of, report_and_continue};
use domain::job::Job;
use domain::job::life::StateName;
use domain::values::name::JobId;
use domain::values::span::parse_span;
use domain::values::timestamp::Timestamp;
use ops::OpError;
use ops::jobs::calling_job::CallingJob;
use ops::jobs::change::select;
use ops::jobs::wait::{UnfinishedJob, Wait, WaitEnd};
use ops::json::JobJson;
use ops::status::HOW_TO_START_A_WORKER;
use ops::worker::live::{live_workers, why_no_job_starts};
use store::{JobFilter, Phase, Store};
use sys::poll::Poll;

/// Wait until jobs have finished
///
/// Without a selection, waits for all jobs that are not finished now.
///
/// Prints each job that completes. The exit code is 0 if all jobs completed, 1 if one is dead or cancelled, 3 if a job does
/// not exist, 124 after a timeout. A failed job has not finished: it waits for its retry. Ctrl-C stops waiting; the jobs
/// continue.
///
/// Inside a job, `wait` refuses to wait for that job and for jobs that depend on it (exit code 4). If all slots are busy, it
/// starts a worker for the jobs that it waits for, one at a time.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  queuectl wait 42 43
  queuectl wait
  queuectl wait job1 --timeout 10m && echo done
  queuectl wait --tag nightly --state ready,processing
  queuectl enqueue --file jobs.jsonl | xargs queuectl wait -q")]
pub(crate) struct Args {
    /// Stop waiting after this long: 90, 1m30s [default: no limit]
    #[arg(short, long, value_name = "DURATION", allow_negative_numbers = true, value_parser = parse_span)]
    timeout: Option<Duration>,
    #[command(flatten)]
    selection: SelectionArgs,
}

/// The interval between polls grows from the first to the second while no job ends.
const MIN_JOB_POLL_INTERVAL: Duration = Duration::from_millis(5);
const MAX_JOB_POLL_INTERVAL: Duration = Duration::from_millis(100);
/// How often to check that a worker is running, until the hint was printed.
const WORKER_CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// At most this many awaited jobs are considered for the slot of the enclosing job.
const MAX_LOAN_CANDIDATES: usize = 100;
/// At most this many running jobs are named in the progress line.
const MAX_RUNNING_NAMED: usize = 3;

pub(crate) fn run(args: &Args, context: &Context) -> Result<ExitCode, Failure> {
    let everything = || Ok(Selection::Matching(JobFilter { phases: unfinished(), ..JobFilter::default() }));
    let NamedJobs { ids, worst } = ids_to_wait_for(args.selection.resolve_or(context, everything)?, context)?;
    let store = context.store()?;
    let loan = |inside| SlotLoan::new(context, store, inside, ids.iter().cloned());
    let mut loan = CallingJob::find(store)?.map(loan).transpose()?;
    let interrupts = catch(&[Signal::INT, Signal::TERM, Signal::HUP])?;
    let poll = Poll::growing(MIN_JOB_POLL_INTERVAL, MAX_JOB_POLL_INTERVAL);
    let mut poll = poll.within(args.timeout);
    let mut wait = Wait::new(ids.iter().cloned());
    let mut waiting = WaitReport::new(context, store, ids.len(), worst);
    waiting.report_ended(wait.poll_all(store)?)?;
    while !wait.is_over() && !poll.is_over() {
        waiting.show(&wait)?;
        if let Some(loan) = &mut loan {
            loan.check(|| {
                Ok(wait.unfinished().take(MAX_LOAN_CANDIDATES).map(|job| job.id.clone()).collect())
            })?;
        }
        if let Some(signal) = interrupts.sleep(poll.pause()) {
            drop(waiting);
            interrupts.end_by(signal);
        }
        let ended = wait.poll(store)?;
        if !ended.is_empty() {
            poll.restart();
        }
        waiting.report_ended(ended)?;
    }
    waiting.report_ended(wait.poll_all(store)?)?;
    if let (Some(after), false) = (args.timeout, wait.is_over()) {
        waiting.report_timeout(&wait, after)?;
    }
    waiting.finish(&ids)
}

fn unfinished() -> Vec<Phase> {
    StateName::ALL.into_iter().filter(|state| !state.is_finished()).map(Phase::State).collect()
}

/// The ids to wait for. A selection is resolved once: jobs that match later are not included.
fn ids_to_wait_for(which: Selection, context: &Context) -> Result<NamedJobs, Failure> {
    match which {
        Selection::Named(named) => Ok(named),
        Selection::Matching(filter) => {
            let mut selected = select(context.store()?, &filter)?;
            if selected.is_empty() {
                hint_no_match(context, &filter)?;
            }
            selected.reverse();
            Ok(NamedJobs { ids: selected.into_iter().map(|seen| seen.id).collect(), worst: None })
        }
    }
}

/// The output of `wait`: progress, results and the exit code.
struct WaitReport<'a> {
    context: &'a Context,
    store: &'a dyn Store,
    bar: Bar,
    total: usize,
    /// Finished jobs, for `--json`.
    jobs: HashMap<JobId, Job>,
    worst: Option<Exit>,
    /// When to check for workers next; `None` after the hint was printed.
    next_worker_check: Option<Instant>,
}

impl<'a> WaitReport<'a> {
    fn new(context: &'a Context, store: &'a dyn Store, total: usize, worst: Option<Exit>) -> Self {
        Self {
            context,
            store,
            bar: Bar::new(context, "waiting", Some(total as u64)),
            total,
            jobs: HashMap::new(),
            worst,
            next_worker_check: Some(Instant::now()),
        }
    }

    /// Reports jobs that have ended.
    fn report_ended(&mut self, ended: Vec<WaitEnd>) -> Result<(), Failure> {
        if ended.is_empty() {
            return Ok(());
        }
        self.bar.clear();
        let mut out = self.context.out();
        for end in ended {
            match end.verdict() {
                Ok(_) if self.context.json || self.context.quiet => {}
                Ok(job) if self.context.stdout_is_terminal => {
                    writeln!(out, "Job {} completed", job.handle())?;
                }
                Ok(job) => writeln!(out, "{}", job.id)?,
                Err(error) => {
                    self.worst = self.worst.max(Some(report_and_continue(self.context, &error.into())));
                }
            }
            if let (true, WaitEnd::Finished(job)) = (self.context.json, end) {
                self.jobs.insert(job.id.clone(), *job);
            }
        }
        Ok(out.flush()?)
    }

    /// Shows the progress, and prints a hint once if no worker will run the jobs.
    fn show(&mut self, wait: &Wait) -> Result<(), Failure> {
        if self.next_worker_check.is_some_and(|due| due <= Instant::now()) {
            self.next_worker_check = Instant::now().checked_add(WORKER_CHECK_INTERVAL);
            if let Some(why) = why_no_job_starts(&live_workers(self.store)?) {
                self.bar.clear();
                self.context.hint(&format!("{why}; {HOW_TO_START_A_WORKER}"))?;
                self.next_worker_check = None;
            }
        }
        let now = self.store.now()?;
        let done = self.total - wait.unfinished().len();
        self.bar.show(done as u64, || progress(wait.unfinished(), now));
        Ok(())
    }

    fn report_timeout(&mut self, wait: &Wait, after: Duration) -> Result<(), Failure> {
        self.bar.clear();
        for job in wait.unfinished().filter(|_| self.context.json) {
            self.jobs.extend(self.store.find(&job.id)?.map(|job| (job.id.clone(), job)));
        }
        let unfinished = wait.unfinished().filter_map(|job| Some((job.id.clone(), job.state?)));
        let error = OpError::TimedOut { after, unfinished: unfinished.collect(), of: self.total };
        self.worst = self.worst.max(Some(report_and_continue(self.context, &error.into())));
        Ok(())
    }

    /// Prints the jobs with `--json`, in the order in which they were given.
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
