//! The last hour, for people: rates, success, waiting and run times, queue by queue and in all.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use super::only_queue;
use crate::OpError;
use domain::job::life::StateName;
use domain::job::outcome::OutcomeName;
use domain::metrics::activity::Activity;
use domain::metrics::histogram::{RUN_BOUNDS, WAIT_BOUNDS};
use domain::metrics::resolution::{minute_of, start_of_minute};
use domain::values::name::QueueName;
use domain::values::timestamp::Timestamp;
use store::{QueueMetrics, Store};

/// In minutes; the current one is not over.
const WINDOW: i64 = 60;

/// What happened in the last hour.
#[derive(Clone, Debug)]
pub struct Recent {
    pub since: Timestamp,
    pub now: Timestamp,
    /// By name.
    pub queues: Vec<QueueMetrics>,
}

/// Reads the last hour; with `only`, of this queue.
pub fn recent(store: &dyn Store, only: Option<&QueueName>) -> Result<Recent, OpError> {
    let now = store.now()?;
    let since = start_of_minute(minute_of(now) - (WINDOW - 1));
    Ok(Recent { since, now, queues: only_queue(store.recent_metrics(since)?, only)? })
}

/// One queue, or all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    pub enqueued: u64,
    pub activity: Activity,
    /// How long the oldest job that could run has been waiting.
    pub oldest: Option<Duration>,
}

impl Figures {
    pub fn waited(&self, fraction: f64) -> Option<Duration> {
        self.activity.waits.quantile(fraction, &WAIT_BOUNDS)
    }

    pub fn ran(&self, fraction: f64) -> Option<Duration> {
        self.activity.runs.quantile(fraction, &RUN_BOUNDS)
    }
}

impl Recent {
    pub fn of(&self, queue: &QueueMetrics) -> Figures {
        Figures {
            enqueued: queue.enqueued,
            activity: queue.activity,
            oldest: queue.oldest_ready_at.map(|since| self.now.since(since)),
        }
    }

    pub fn of_all(&self) -> Figures {
        let mut all = Figures::default();
        for queue in self.queues.iter().map(|queue| self.of(queue)) {
            all.enqueued += queue.enqueued;
            all.activity.add(&queue.activity);
            all.oldest = all.oldest.max(queue.oldest);
        }
        all
    }

    /// A count as a rate per minute.
    pub fn per_minute(&self, count: u64) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
        let count = count as f64;
        count * 60.0 / self.now.since(self.since).as_secs_f64().max(1.0)
    }
}

/// The last hour of all queues in a few numbers, as part of a status. Durations are in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LastHourJson {
    since: Timestamp,
    started: u64,
    finished: u64,
    finished_per_minute: f64,
    died: u64,
    wait_p50_ms: Option<u64>,
    wait_p95_ms: Option<u64>,
    run_p50_ms: Option<u64>,
    run_p95_ms: Option<u64>,
}

impl From<&Recent> for LastHourJson {
    fn from(recent: &Recent) -> Self {
        let all = recent.of_all();
        let finished = all.activity.finished();
        Self {
            since: recent.since,
            started: all.activity.started,
            finished,
            finished_per_minute: (recent.per_minute(finished) * 1_000.0).round() / 1_000.0,
            died: all.activity.died,
            wait_p50_ms: millis(all.waited(0.5)),
            wait_p95_ms: millis(all.waited(0.95)),
            run_p50_ms: millis(all.ran(0.5)),
            run_p95_ms: millis(all.ran(0.95)),
        }
    }
}

/// The output of `metrics --json`: the last hour, and everything since the store counts.
#[derive(Debug, Serialize)]
pub struct MetricsJson<'a> {
    since: Timestamp,
    until: Timestamp,
    all: FiguresJson,
    queues: Vec<QueueJson<'a>>,
}

#[derive(Debug, Serialize)]
struct QueueJson<'a> {
    queue: &'a QueueName,
    #[serde(flatten)]
    recent: FiguresJson,
    total: TotalJson,
}

/// Durations are in milliseconds.
#[derive(Debug, Serialize)]
struct FiguresJson {
    enqueued: u64,
    started: u64,
    finished: u64,
    retries: u64,
    died: u64,
    outcomes: BTreeMap<&'static str, u64>,
    success_rate: Option<f64>,
    wait_p50_ms: Option<u64>,
    wait_p95_ms: Option<u64>,
    run_p50_ms: Option<u64>,
    run_p95_ms: Option<u64>,
    oldest_waiting_ms: Option<u64>,
}

#[derive(Debug, Serialize)]
struct TotalJson {
    enqueued: u64,
    started: u64,
    retries: u64,
    finished: BTreeMap<&'static str, u64>,
    outcomes: BTreeMap<&'static str, u64>,
    cpu_ms: u64,
}

impl<'a> MetricsJson<'a> {
    /// The totals are those of the same store, and may have more queues.
    pub fn new(recent: &'a Recent, totals: &[QueueMetrics]) -> Self {
        let total = |queue: &QueueMetrics| totals.iter().find(|total| total.queue.name == queue.queue.name);
        let queue = |queue: &'a QueueMetrics| QueueJson {
            queue: &queue.queue.name,
            recent: FiguresJson::of(&recent.of(queue)),
            total: TotalJson::of(total(queue).unwrap_or(queue)),
        };
        Self {
            since: recent.since,
            until: recent.now,
            all: FiguresJson::of(&recent.of_all()),
            queues: recent.queues.iter().map(queue).collect(),
        }
    }
}

impl FiguresJson {
    fn of(figures: &Figures) -> Self {
        let activity = &figures.activity;
        Self {
            enqueued: figures.enqueued,
            started: activity.started,
            finished: activity.finished(),
            retries: activity.retries(),
            died: activity.died,
            outcomes: outcomes(activity),
            success_rate: activity.success_rate(),
            wait_p50_ms: millis(figures.waited(0.5)),
            wait_p95_ms: millis(figures.waited(0.95)),
            run_p50_ms: millis(figures.ran(0.5)),
            run_p95_ms: millis(figures.ran(0.95)),
            oldest_waiting_ms: millis(figures.oldest),
        }
    }
}

impl TotalJson {
    fn of(queue: &QueueMetrics) -> Self {
        let entered = |state: StateName| queue.entered.get(&state).copied().unwrap_or(0);
        let finished = StateName::ALL.into_iter().filter(|state| state.is_finished());
        Self {
            enqueued: entered(StateName::Pending),
            started: queue.activity.started,
            retries: entered(StateName::Failed),
            finished: finished.map(|state| (state.name(), entered(state))).collect(),
            outcomes: outcomes(&queue.activity),
            cpu_ms: queue.activity.cpu_ms,
        }
    }
}

fn outcomes(activity: &Activity) -> BTreeMap<&'static str, u64> {
    OutcomeName::ALL.into_iter().map(|outcome| (outcome.name(), activity.ended(outcome))).collect()
}

fn millis(duration: Option<Duration>) -> Option<u64> {
    duration.map(|duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}
