//! The queue at one moment, as far as the screen shows it.

use std::path::Path;
use std::time::Duration;

use super::Question;
use crate::tab::Tab;
use domain::job::{Job, JobRecord};
use domain::metrics::history::Timeline;
use domain::schedule::{Run, Schedule};
use domain::values::name::JobId;
use domain::values::timestamp::Timestamp;
use ops::OpError;
use ops::events::latest;
use ops::jobs::list::in_order_of;
use ops::jobs::overview::in_groups;
use ops::metrics::history::history;
use ops::status::Status;
use ops::status::throughput::AttemptRate;
use ops::upcoming::{Coming, upcoming};
use store::{Batch, CauseSummary, Event, FailedAttempt, JobFilter, Order, QueueMetrics, Search, Store};

/// A search reads for at most this long, then the list shows what was found and how far it looked.
const SEARCH_BUDGET: Duration = Duration::from_millis(150);
const HISTORY_RANGE: Duration = Duration::from_secs(3_600);
/// The metrics of queues are about this time.
const RECENT: Duration = Duration::from_secs(3_600);
const MAX_FAILURES: usize = 30;
const MAX_UPCOMING: usize = 5;
const MAX_ROWS: usize = 1_000;

#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    pub(crate) question: Question,
    pub(crate) at: Timestamp,
    pub(crate) status: Status,
    /// Attempts that ended in the last seconds.
    pub(crate) rate: Option<AttemptRate>,
    /// By worker, then longest-running first.
    pub(crate) running: Vec<Job>,
    pub(crate) history: Timeline,
    pub(crate) rows: Rows,
    pub(crate) job: Option<JobRecord>,
}

/// The rows of a tab.
#[derive(Clone, Debug)]
pub(crate) enum Rows {
    Overview {
        queues: Vec<QueueMetrics>,
        failures: Vec<FailedAttempt>,
        upcoming: Vec<Coming>,
    },
    Jobs(JobRows),
    Dead(Vec<CauseSummary>),
    Queues(Vec<QueueMetrics>),
    /// The status has the workers, and the snapshot what they run.
    Workers(usize),
    Schedules(Vec<(Schedule, Option<Run>)>),
    Batches(Vec<Batch>),
    /// Newest first.
    Events(Vec<Event>),
}

#[derive(Clone, Debug, Default)]
pub(crate) struct JobRows {
    pub(crate) jobs: Vec<Job>,
    /// How many match, and whether all were compared.
    pub(crate) count: u64,
    pub(crate) is_exact: bool,
    /// How many numbers the search covered, if its time was up.
    pub(crate) searched: Option<u64>,
    /// Why the filter cannot be used.
    pub(crate) error: Option<String>,
}

impl Rows {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Overview { failures, .. } => failures.len(),
            Self::Jobs(rows) => rows.jobs.len(),
            Self::Dead(causes) => causes.len(),
            Self::Queues(queues) => queues.len(),
            Self::Workers(count) => *count,
            Self::Schedules(schedules) => schedules.len(),
            Self::Batches(batches) => batches.len(),
            Self::Events(events) => events.len(),
        }
    }
}

impl Snapshot {
    /// What tells a row apart from the others, so that the cursor stays on it when rows come and leave.
    pub(crate) fn key(&self, at: usize) -> Option<String> {
        match &self.rows {
            Rows::Overview { failures, .. } => {
                failures.get(at).map(|failed| format!("{} {}", failed.number, failed.attempt))
            }
            Rows::Jobs(rows) => rows.jobs.get(at).map(|job| job.number.to_string()),
            Rows::Dead(causes) => causes.get(at).map(|cause| cause.cause.id().to_string()),
            Rows::Queues(queues) => queues.get(at).map(|metrics| metrics.queue.name.to_string()),
            Rows::Workers(_) => self.status.workers.get(at).map(|worker| worker.id.to_string()),
            Rows::Schedules(schedules) => schedules.get(at).map(|(schedule, _)| schedule.name.to_string()),
            Rows::Batches(batches) => batches.get(at).map(|batch| batch.name.to_string()),
            Rows::Events(events) => events.get(at).map(|event| event.number.to_string()),
        }
    }

    /// The job of a row, in tabs whose rows have one.
    pub(crate) fn job_at(&self, at: usize) -> Option<JobId> {
        match &self.rows {
            Rows::Overview { failures, .. } => failures.get(at).map(|failed| failed.job.clone()),
            Rows::Jobs(rows) => rows.jobs.get(at).map(|job| job.id.clone()),
            Rows::Dead(causes) => causes.get(at).map(|cause| cause.example.id.clone()),
            Rows::Events(events) => events.get(at).and_then(|event| event.job.clone()),
            Rows::Schedules(schedules) => {
                schedules.get(at).and_then(|(_, run)| run.as_ref().map(|run| run.id.clone()))
            }
            Rows::Workers(_) => {
                let worker = self.status.workers.get(at)?;
                let runs = |job: &&Job| job.life.state.lease().is_some_and(|lease| lease.worker == worker.id);
                self.running.iter().find(runs).map(|job| job.id.clone())
            }
            Rows::Queues(_) | Rows::Batches(_) => None,
        }
    }
}

/// The parts that `ops::status::watch` does not read.
pub(crate) struct Parts {
    pub(crate) history: Timeline,
    pub(crate) rows: Rows,
    pub(crate) job: Option<JobRecord>,
}

pub(crate) fn read_parts(
    store: &dyn Store,
    home: &Path,
    question: &Question,
    status: &Status,
) -> Result<Parts, OpError> {
    let rows = read_rows(store, question, status)?;
    let job = question.job.as_ref().map(|id| store.record(id)).transpose()?.flatten();
    if job.is_some() {
        store.prepare_logs(&home.join(domain::log::FOLDER))?;
    }
    Ok(Parts { history: history(store, HISTORY_RANGE, None)?, rows, job })
}

fn read_rows(store: &dyn Store, question: &Question, status: &Status) -> Result<Rows, OpError> {
    let recent = || store.now().and_then(|now| store.recent_metrics(now.saturating_sub(RECENT)));
    Ok(match question.tab {
        Tab::Overview => Rows::Overview {
            queues: recent()?,
            failures: store.newest_failures(None, MAX_FAILURES)?,
            upcoming: upcoming(store, MAX_UPCOMING)?.0,
        },
        Tab::Jobs => Rows::Jobs(read_jobs(store, question)?),
        Tab::Dead => Rows::Dead(store.causes(None, MAX_ROWS)?),
        Tab::Queues => Rows::Queues(recent()?),
        Tab::Workers => Rows::Workers(status.workers.len()),
        Tab::Schedules => Rows::Schedules(store.schedules()?),
        Tab::Batches => Rows::Batches(store.batches(MAX_ROWS)?),
        Tab::Events => {
            let mut events = latest(store, None, None, question.rows.clamp(1, MAX_ROWS))?;
            events.reverse();
            Rows::Events(events)
        }
    })
}

fn read_jobs(store: &dyn Store, question: &Question) -> Result<JobRows, OpError> {
    let failed = |error: String| JobRows { error: Some(error), ..JobRows::default() };
    let filter = match question.filter.resolve(store) {
        Ok(filter) => filter,
        Err(error) => return Ok(failed(error.to_string())),
    };
    if question.filter.is_empty() && question.order == Order::Newest {
        return first_jobs(store, question.rows);
    }
    let ordered = match in_order_of(&filter, question.order) {
        Ok(ordered) => ordered,
        Err(error) => return Ok(failed(error.to_string())),
    };
    let count = store.count(&ordered, Some(SEARCH_BUDGET))?;
    let search = Search {
        filter: ordered,
        order: question.order,
        limit: question.rows,
        after: None,
        budget: Some(SEARCH_BUDGET),
    };
    let found = store.search(&search)?;
    // No filter counts jobs with a failed attempt; those that were found are counted.
    let (count, is_exact) = match question.order {
        Order::LastFailed => (found.jobs.len() as u64, found.next.is_none()),
        Order::Newest | Order::Oldest | Order::Claim | Order::Soonest | Order::LongestRunning => {
            (count.count, count.is_exact)
        }
    };
    Ok(JobRows {
        jobs: found.jobs,
        count,
        is_exact,
        searched: (!found.is_complete).then_some(found.searched),
        error: None,
    })
}

/// Without a filter, the jobs that a person wants to see first, as `list` has them.
fn first_jobs(store: &dyn Store, rows: usize) -> Result<JobRows, OpError> {
    let jobs: Result<Vec<Job>, _> = in_groups(store, &JobFilter::default(), rows)?.collect();
    let count = store.count_jobs()?;
    Ok(JobRows { jobs: jobs?, count, is_exact: true, searched: None, error: None })
}
