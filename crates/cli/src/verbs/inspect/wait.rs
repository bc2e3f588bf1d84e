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
use crate::render::progress::{Bar, pace};
use crate::render::text::{grouped, rough};
use crate::slot_loan::SlotLoan;
use crate::verbs::manage::change::{code_of, report_and_continue};
use domain::batch::eta::{CompletionRate, EtaFacts};
use domain::job::Job;
use domain::job::handle::JobHandle;
use domain::job::life::StateName;
use domain::values::name::JobId;
use domain::values::span::parse_span;
use domain::values::timestamp::Timestamp;
use ops::OpError;
use ops::error::MAX_UNFINISHED_NAMED;
use ops::jobs::calling_job::CallingJob;
use ops::jobs::change::select;
use ops::jobs::wait::{UnfinishedJob, Wait, WaitEnd};
use ops::json::JobJson;
use ops::status::HOW_TO_START_A_WORKER;
use ops::worker::live::{live_workers, slots_for_new_jobs, why_no_job_starts};
use store::{JobFilter, Phase, Store};
use sys::poll::Poll;

/// Wait until jobs have finished
///
/// Without a selection, waits for all jobs that are not finished now; inside a job, except for that job and those that
/// depend on it.
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
/// How often to check the workers and the duration of jobs.
const WORKER_CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// At most this many awaited jobs are considered for the slot of the enclosing job.
const MAX_LOAN_CANDIDATES: usize = 100;

pub(crate) fn run(args: &Args, context: &Context) -> Result<ExitCode, Failure> {
    let selection = args.selection.resolve_or(context, || all_unfinished(context))?;
    let NamedJobs { ids, worst } = ids_to_wait_for(selection, context)?;
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

/// All unfinished jobs. Inside a job, that one and those that depend on it are left out.
fn all_unfinished(context: &Context) -> Result<Selection, Failure> {
    let states = StateName::ALL.into_iter().filter(|state| !state.is_finished());
    let filter = JobFilter { phases: states.map(Phase::State).collect(), ..JobFilter::default() };
    let store = context.store()?;
    let Some(inside) = CallingJob::find(store)? else {
        return Ok(Selection::Matching(Box::new(filter)));
    };
    let mut ids = Vec::new();
    for job in select(store, &filter)?.into_iter().rev() {
        if inside.may_end_after(store, &job.id)? {
            ids.push(job.id);
        }
    }
    if ids.is_empty() {
        context.hint("there is no other job to wait for")?;
    }
    Ok(Selection::Named(NamedJobs { ids, worst: None }))
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
    began: Instant,
    completion_rate: CompletionRate,
    eta_facts: Option<EtaFacts>,
    /// When to check the workers and the duration of jobs next.
    next_check: Instant,
    worker_hint_given: bool,
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
            began: Instant::now(),
            completion_rate: CompletionRate::default(),
            eta_facts: None,
            next_check: Instant::now(),
            worker_hint_given: false,
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
            match end.verdict(self.store) {
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
        let shows_progress = self.context.shows_progress();
        if self.next_check <= Instant::now() && (shows_progress || !self.worker_hint_given) {
            self.check_workers(wait)?;
            self.next_check = Instant::now() + WORKER_CHECK_INTERVAL;
        }
        if shows_progress {
            let (now, unfinished) = (self.store.now()?, wait.unfinished().len());
            let done = (self.total - unfinished) as u64;
            self.completion_rate.record(self.began.elapsed(), done);
            let (rate, facts) = (&self.completion_rate, self.eta_facts.as_ref());
            self.bar.show(done, || {
                let pace = pace(rate, unfinished as u64, facts);
                // The end of a long line is cut off, so the rate comes before what matters less.
                pace.into_iter().chain(progress(wait.unfinished(), now)).collect::<Vec<_>>().join(", ")
            });
        }
        Ok(())
    }

    /// Updates the estimate, and prints a hint once if no worker will run the jobs.
    fn check_workers(&mut self, wait: &Wait) -> Result<(), Failure> {
        let workers = live_workers(self.store)?;
        if self.context.shows_progress() {
            let slots = slots_for_new_jobs(&workers);
            let facts = self.store.eta_facts_by_queue(&wait.by_queue())?;
            let longest = wait.unfinished().filter_map(|job| job.running_since).min();
            let longest_running = longest.map(|since| facts.now.since(since));
            let last_due_at = wait.unfinished().filter_map(|job| job.due_at).max();
            self.eta_facts = Some(EtaFacts { slots, longest_running, last_due_at, ..facts });
        }
        if let (Some(why), false) = (why_no_job_starts(&workers), self.worker_hint_given) {
            self.worker_hint_given = true;
            self.bar.clear();
            self.context.hint(&format!("{why}; {HOW_TO_START_A_WORKER}"))?;
        }
        Ok(())
    }

    fn report_timeout(&mut self, wait: &Wait, after: Duration) -> Result<(), Failure> {
        self.bar.clear();
        for job in wait.unfinished().filter(|_| self.context.json) {
            self.jobs.extend(self.store.find(&job.id)?.map(|job| (job.id.clone(), job)));
        }
        let mut unfinished = Vec::new();
        for (job, state) in wait.unfinished().filter_map(|job| Some((job, job.state?))) {
            let is_named = unfinished.len() < MAX_UNFINISHED_NAMED;
            let found = if is_named { self.store.find(&job.id)? } else { None };
            let number = found.map(|job| job.number);
            unfinished.push((JobHandle { id: job.id.clone(), number }, state));
        }
        let error = OpError::TimedOut { after, unfinished, of: self.total };
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

/// `2 processing (the longest for 12s)`, `1 failed`, `5 pending`
fn progress<'a>(unfinished: impl Iterator<Item = &'a UnfinishedJob>, now: Timestamp) -> Vec<String> {
    let mut counts: HashMap<StateName, u64> = HashMap::new();
    let mut longest: Option<Timestamp> = None;
    for job in unfinished {
        *counts.entry(job.state.unwrap_or(StateName::Pending)).or_default() += 1;
        longest = longest.into_iter().chain(job.running_since).min();
    }
    let states = [StateName::Processing, StateName::Failed, StateName::Pending];
    let part = |state: StateName| {
        let count = *counts.get(&state)?;
        let for_how_long = longest.filter(|_| state == StateName::Processing).map(|since| {
            let the_longest = if count == 1 { "" } else { "the longest " };
            format!(" ({the_longest}for {})", rough(now.since(since)))
        });
        Some(format!("{} {}{}", grouped(count), state.name(), for_how_long.unwrap_or_default()))
    };
    states.into_iter().filter_map(part).collect()
}
