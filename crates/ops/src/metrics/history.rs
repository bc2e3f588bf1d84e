//! What happened over a time, point by point: for `history` and for charts.

use std::time::Duration;

use serde::Serialize;

use crate::OpError;
use crate::error::Named;
use domain::job::outcome::OutcomeName;
use domain::metrics::histogram::{RUN_BOUNDS, WAIT_BOUNDS};
use domain::metrics::history::{Point, Timeline};
use domain::values::name::QueueName;
use domain::values::timestamp::Timestamp;
use store::Store;

/// The history of one queue, which must exist, or of all, over a time that ends now.
pub fn history(store: &dyn Store, range: Duration, queue: Option<&QueueName>) -> Result<Timeline, OpError> {
    if let Some(timeline) = store.history(range, queue)? {
        return Ok(timeline);
    }
    let queues = store.queues()?;
    let known = queues.iter().map(|queue| queue.name.as_str());
    Err(OpError::no_such(Named::Queue, queue.map_or("", QueueName::as_str), known))
}

/// The output of `history --json`.
#[derive(Debug, Serialize)]
pub struct HistoryJson {
    step_ms: u128,
    points: Vec<PointJson>,
}

/// Times are in milliseconds; those that nothing is known of are null.
#[derive(Debug, Serialize)]
struct PointJson {
    at: Timestamp,
    enqueued: u64,
    started: u64,
    success: u64,
    failed: u64,
    died: u64,
    lost: u64,
    run_p50_ms: Option<u128>,
    run_p95_ms: Option<u128>,
    run_p99_ms: Option<u128>,
    wait_p50_ms: Option<u128>,
    wait_p95_ms: Option<u128>,
    wait_p99_ms: Option<u128>,
    pending: Option<u64>,
    processing: Option<u64>,
}

impl From<&Timeline> for HistoryJson {
    fn from(timeline: &Timeline) -> Self {
        Self {
            step_ms: timeline.step().as_millis(),
            points: timeline.points().map(|(at, point)| PointJson::new(at, point)).collect(),
        }
    }
}

impl PointJson {
    fn new(at: Timestamp, point: &Point) -> Self {
        let activity = &point.activity;
        let run = |fraction| activity.runs.quantile(fraction, &RUN_BOUNDS).map(|ran| ran.as_millis());
        let wait =
            |fraction| activity.waits.quantile(fraction, &WAIT_BOUNDS).map(|waited| waited.as_millis());
        Self {
            at,
            enqueued: point.enqueued,
            started: activity.started,
            success: activity.ended(OutcomeName::Success),
            failed: activity.failed(),
            died: activity.died,
            lost: activity.ended(OutcomeName::Lost),
            run_p50_ms: run(0.5),
            run_p95_ms: run(0.95),
            run_p99_ms: run(0.99),
            wait_p50_ms: wait(0.5),
            wait_p95_ms: wait(0.95),
            wait_p99_ms: wait(0.99),
            pending: point.depth.map(|depth| depth.pending),
            processing: point.depth.map(|depth| depth.processing),
        }
    }
}
