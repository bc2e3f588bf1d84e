//! `queuectl batch wait`

use std::process::ExitCode;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::list::show;
use crate::context::{Context, catch};
use crate::failure::Failure;
use crate::loan::Loan;
use crate::render::progress::Bar;
use crate::render::report_change::tell;
use crate::render::text::{grouped, rough};
use domain::batch::eta::{CompletionRate, EtaFacts};
use domain::job::life::StateName;
use domain::values::name::{BatchName, JobId};
use domain::values::span::parse_span;
use ops::OpError;
use ops::jobs::batch::find;
use ops::jobs::inside::CallingJob;
use ops::status::HOW_TO_START_A_WORKER;
use ops::worker::alive::{live_workers, why_no_job_starts};
use store::{Batch, JobFilter, Page, Phase, Store};

/// Wait until all jobs of a batch are finished
///
/// The exit code is 0 if all of them completed, 1 if one is dead or cancelled, 3 if there is no such batch, 124 if the time
/// ran out. Jobs that are added meanwhile are waited for too. Ctrl-C ends the waiting, not the jobs. A job cannot wait for
/// a batch that it is in (exit code 4).
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  queuectl batch wait nightly
  queuectl batch wait nightly --timeout 1h --json")]
pub(super) struct WaitArgs {
    /// The batch
    #[arg(value_name = "NAME")]
    name: BatchName,
    /// How long to wait at most: 90, 1m30s [default: for ever]
    #[arg(long, value_name = "DURATION", allow_negative_numbers = true, value_parser = parse_span)]
    timeout: Option<Duration>,
}

/// The pause between two looks grows from the first to the second while nothing happens.
const SHORTEST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(100);
/// How many jobs in each phase may ask at once for the slot of a job that waits for them.
const MAX_OFFERED: usize = 20;
/// How often to look who works, and how long jobs take.
const WORKERS_PAUSE: Duration = Duration::from_secs(1);

pub(super) fn run(args: &WaitArgs, context: &Context) -> Result<ExitCode, Failure> {
    let interrupts = catch(&[Signal::INT, Signal::TERM, Signal::HUP])?;
    let deadline = args.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    let store = context.store()?;
    let mut batch = find(store, &args.name)?;
    let mut loan = match CallingJob::find(store)? {
        Some(inside) => Some(begin_loan(context, store, &batch, inside)?),
        None => None,
    };
    let mut view = View::new(context, batch.total());
    let mut pause = SHORTEST_PAUSE;
    while batch.finished_at.is_none() {
        let left =
            deadline.map_or(LONGEST_PAUSE, |deadline| deadline.saturating_duration_since(Instant::now()));
        if left.is_zero() {
            drop(view);
            return give_up(context, args, &batch);
        }
        view.draw(&batch)?;
        if let Some(loan) = &mut loan {
            loan.look(|| offered(store, &batch))?;
        }
        if let Some(signal) = interrupts.sleep(pause.min(left)) {
            drop(view);
            interrupts.end_by(signal);
        }
        let now = find(context.store()?, &args.name)?;
        pause = if now == batch { (pause * 2).min(LONGEST_PAUSE) } else { SHORTEST_PAUSE };
        batch = now;
    }
    drop(view);
    finish(context, &batch)
}

/// Inside a job: refuses to wait for a batch with that job in it, or with one that depends on it.
fn begin_loan<'a>(
    context: &'a Context,
    store: &'a dyn Store,
    batch: &Batch,
    inside: CallingJob,
) -> Result<Loan<'a>, Failure> {
    let own = inside.job.batch.as_ref().filter(|own| **own == batch.name).map(|_| inside.job.id.clone());
    inside.check_may_wait_for(store, own.into_iter().chain(offered(store, batch)?))?;
    Loan::new(context, store, inside)
}

/// Some of the jobs of a batch that do not run: those that could, and those that wait for others.
fn offered(store: &dyn Store, batch: &Batch) -> Result<Vec<JobId>, Failure> {
    let mut ids = Vec::new();
    for phase in [Phase::Ready, Phase::Blocked] {
        let filter = JobFilter { batch: Some(batch.name.clone()), ..JobFilter::in_phase(phase) };
        let jobs = store.list(&filter, &Page { limit: MAX_OFFERED, after: None })?;
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
            Ok(tell(context, &error.into()).into())
        }
    }
}

fn give_up(context: &Context, args: &WaitArgs, batch: &Batch) -> Result<ExitCode, Failure> {
    show(context, batch)?;
    let error = OpError::BatchTimedOut {
        name: batch.name.clone(),
        after: args.timeout.unwrap_or_default(),
        unfinished: batch.total() - batch.finished(),
        of: batch.total(),
    };
    Ok(tell(context, &error.into()).into())
}

/// What is said while a batch is waited for.
struct View<'a> {
    context: &'a Context,
    bar: Bar,
    began: Instant,
    pace: CompletionRate,
    outlook: Option<EtaFacts>,
    workers_due: Instant,
    was_told: bool,
}

impl<'a> View<'a> {
    fn new(context: &'a Context, total: u64) -> Self {
        let now = Instant::now();
        Self {
            context,
            bar: Bar::new(context, "waiting", Some(total)),
            began: now,
            pace: CompletionRate::default(),
            outlook: None,
            workers_due: now,
            was_told: false,
        }
    }

    fn draw(&mut self, batch: &Batch) -> Result<(), Failure> {
        if self.workers_due <= Instant::now() {
            self.look_at_workers(&batch.name)?;
            self.workers_due = Instant::now() + WORKERS_PAUSE;
        }
        self.pace.record(self.began.elapsed(), batch.finished());
        self.bar.set_total(batch.total());
        let (pace, outlook) = (&self.pace, self.outlook.as_ref());
        self.bar.show(batch.finished(), || progress(batch, pace, outlook));
        Ok(())
    }

    /// Says it once if nobody works on it.
    fn look_at_workers(&mut self, batch: &BatchName) -> Result<(), Failure> {
        let store = self.context.store()?;
        let workers = live_workers(store)?;
        let slots = workers.iter().map(|worker| worker.concurrency).sum();
        self.outlook = Some(EtaFacts { slots, ..store.eta_facts(batch)? });
        if let (Some(why), false) = (why_no_job_starts(&workers), self.was_told) {
            self.was_told = true;
            self.bar.clear();
            self.context.hint(&format!("{why}; {HOW_TO_START_A_WORKER}"))?;
        }
        Ok(())
    }
}

/// `2 dead, 12/s, 55s left`
fn progress(batch: &Batch, pace: &CompletionRate, outlook: Option<&EtaFacts>) -> String {
    let mut parts = Vec::new();
    for state in [StateName::Dead, StateName::Cancelled] {
        let count = batch.counts.get(&state).filter(|count| **count > 0);
        parts.extend(count.map(|count| format!("{} {}", grouped(*count), state.name())));
    }
    parts.extend(
        pace.per_second().map(
            |rate| {
                if rate >= 10.0 { format!("{rate:.0}/s") } else { format!("{rate:.1}/s") }
            },
        ),
    );
    let left = outlook.and_then(|outlook| pace.time_left(batch.total() - batch.finished(), outlook));
    // Nobody can tell it better than to the second.
    parts.extend(left.map(|left| format!("{} left", rough(left.max(Duration::from_secs(1))))));
    parts.join(", ")
}
