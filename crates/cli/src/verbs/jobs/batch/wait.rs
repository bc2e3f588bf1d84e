//! `queuectl batch wait`

use std::time::{Duration, Instant};
use sys::program::ExitCode;

use rustix::process::Signal;

use super::list::show;
use crate::context::{Context, catch};
use crate::failure::Failure;
use crate::render::progress::{Bar, pace};
use crate::render::text::grouped;
use crate::slot_loan::SlotLoan;
use crate::verbs::manage::change::report_and_continue;
use domain::batch::eta::{CompletionRate, EtaFacts};
use domain::job::life::StateName;
use domain::values::name::{BatchName, JobId};
use domain::values::span::parse_span;
use ops::OpError;
use ops::jobs::batch::find;
use ops::jobs::calling_job::CallingJob;
use ops::status::HOW_TO_START_A_WORKER;
use ops::worker::live::{live_workers, slots_for_new_jobs, why_no_job_starts};
use store::{Batch, JobFilter, Page, Phase, Store};
use sys::poll::Poll;

/// Wait until all jobs of a batch have finished
///
/// The exit code is 0 if all jobs completed, 1 if one is dead or cancelled, 3 if the batch does not exist, 124 after a
/// timeout. Jobs that are added meanwhile are included. Ctrl-C stops waiting; the jobs continue. A job cannot wait for its
/// own batch (exit code 4).
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  queuectl batch wait nightly
  queuectl batch wait nightly --timeout 1h --json")]
pub(super) struct WaitArgs {
    /// The batch's name
    #[arg(value_name = "NAME")]
    name: BatchName,
    /// Stop waiting after this long: 90, 1m30s [default: no limit]
    #[arg(short, long, value_name = "DURATION", allow_negative_numbers = true, value_parser = parse_span)]
    timeout: Option<Duration>,
}

/// The interval between polls grows from the first to the second while the batch does not change.
const MIN_BATCH_POLL_INTERVAL: Duration = Duration::from_millis(5);
const MAX_BATCH_POLL_INTERVAL: Duration = Duration::from_millis(100);
/// At most this many awaited jobs in each phase are considered for the slot of the enclosing job.
const MAX_LOAN_CANDIDATES: usize = 20;
/// How often to check the workers and the duration of jobs.
const WORKER_CHECK_INTERVAL: Duration = Duration::from_secs(1);

pub(super) fn run(args: &WaitArgs, context: &Context) -> Result<ExitCode, Failure> {
    let interrupts = catch(&[Signal::INT, Signal::TERM, Signal::HUP])?;
    let poll = Poll::growing(MIN_BATCH_POLL_INTERVAL, MAX_BATCH_POLL_INTERVAL);
    let mut poll = poll.within(args.timeout);
    let store = context.store()?;
    let mut batch = find(store, &args.name)?;
    let loan = |inside| start_loan(context, store, &batch, inside);
    let mut loan = CallingJob::find(store)?.map(loan).transpose()?;
    let mut view = BatchProgress::new(context, "waiting", batch.total());
    while batch.finished_at.is_none() {
        if poll.is_over() {
            drop(view);
            return report_timeout(context, args, &batch);
        }
        view.draw(&batch)?;
        if let Some(loan) = &mut loan {
            loan.check(|| loan_candidates(store, &batch))?;
        }
        if let Some(signal) = interrupts.sleep(poll.pause()) {
            drop(view);
            interrupts.end_by(signal);
        }
        let now = find(context.store()?, &args.name)?;
        if now != batch {
            poll.restart();
        }
        batch = now;
    }
    drop(view);
    finish(context, &batch)
}

/// Inside a job: refuses to wait for a batch that contains that job, or a job that depends on it.
fn start_loan<'a>(
    context: &'a Context,
    store: &'a dyn Store,
    batch: &Batch,
    inside: CallingJob,
) -> Result<SlotLoan<'a>, Failure> {
    let own = inside.job.batch.as_ref().filter(|own| **own == batch.name).map(|_| inside.job.id.clone());
    SlotLoan::new(context, store, inside, own.into_iter().chain(loan_candidates(store, batch)?))
}

/// Some jobs of a batch that are not running: ready ones, and ones that wait for others.
fn loan_candidates(store: &dyn Store, batch: &Batch) -> Result<Vec<JobId>, Failure> {
    let mut ids = Vec::new();
    for phase in [Phase::Ready, Phase::Blocked] {
        let filter = JobFilter { batch: Some(batch.name.clone()), ..JobFilter::in_phase(phase) };
        let jobs = store.list(&filter, &Page { limit: MAX_LOAN_CANDIDATES, after: None })?;
        ids.extend(jobs.into_iter().map(|job| job.id));
    }
    Ok(ids)
}

fn finish(context: &Context, batch: &Batch) -> Result<ExitCode, Failure> {
    show(context, batch)?;
    match batch.unsuccessful() {
        0 => Ok(ExitCode::SUCCESS),
        count => {
            let error = OpError::UnsuccessfulBatch { name: batch.name.clone(), count, of: batch.total() };
            Ok(report_and_continue(context, &error.into()).into())
        }
    }
}

fn report_timeout(context: &Context, args: &WaitArgs, batch: &Batch) -> Result<ExitCode, Failure> {
    show(context, batch)?;
    let error = OpError::BatchTimedOut {
        name: batch.name.clone(),
        after: args.timeout.unwrap_or_default(),
        unfinished: batch.total() - batch.finished(),
        of: batch.total(),
    };
    Ok(report_and_continue(context, &error.into()).into())
}

/// The progress of a batch.
pub(crate) struct BatchProgress<'a> {
    context: &'a Context,
    bar: Bar,
    began: Instant,
    completion_rate: CompletionRate,
    eta_facts: Option<EtaFacts>,
    next_worker_check: Instant,
    worker_hint_given: bool,
}

impl<'a> BatchProgress<'a> {
    pub(crate) fn new(context: &'a Context, what: &'static str, total: u64) -> Self {
        let now = Instant::now();
        Self {
            context,
            bar: Bar::new(context, what, Some(total)),
            began: now,
            completion_rate: CompletionRate::default(),
            eta_facts: None,
            next_worker_check: now,
            worker_hint_given: false,
        }
    }

    /// Removes it from the terminal until it is drawn again.
    pub(crate) fn clear(&mut self) {
        self.bar.clear();
    }

    pub(crate) fn draw(&mut self, batch: &Batch) -> Result<(), Failure> {
        if self.next_worker_check <= Instant::now() {
            self.check_workers(&batch.name)?;
            self.next_worker_check = Instant::now() + WORKER_CHECK_INTERVAL;
        }
        self.completion_rate.record(self.began.elapsed(), batch.finished());
        self.bar.set_total(batch.total());
        let (completion_rate, eta_facts) = (&self.completion_rate, self.eta_facts.as_ref());
        self.bar.show(batch.finished(), || progress(batch, completion_rate, eta_facts));
        Ok(())
    }

    /// Updates the estimate, and prints a hint once if no worker will run the jobs.
    fn check_workers(&mut self, batch: &BatchName) -> Result<(), Failure> {
        let store = self.context.store()?;
        let workers = live_workers(store)?;
        let slots = slots_for_new_jobs(&workers);
        self.eta_facts = Some(EtaFacts { slots, ..store.eta_facts(batch)? });
        if let (Some(why), false) = (why_no_job_starts(&workers), self.worker_hint_given) {
            self.worker_hint_given = true;
            self.bar.clear();
            self.context.hint(&format!("{why}; {HOW_TO_START_A_WORKER}"))?;
        }
        Ok(())
    }
}

/// `2 dead, 12/s, 55s left`
fn progress(batch: &Batch, completion_rate: &CompletionRate, eta_facts: Option<&EtaFacts>) -> String {
    let mut parts = Vec::new();
    for state in [StateName::Dead, StateName::Cancelled] {
        let count = batch.counts.get(&state).filter(|count| **count > 0);
        parts.extend(count.map(|count| format!("{} {}", grouped(*count), state.name())));
    }
    parts.extend(pace(completion_rate, batch.total() - batch.finished(), eta_facts));
    parts.join(", ")
}
