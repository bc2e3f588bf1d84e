//! The JSON forms of jobs, queues, workers, batches and status, for `--json` and HTTP.

use std::collections::BTreeMap;

use serde::Serialize;

use super::jobs::change::{ChangedJob, Verb};
use super::jobs::explain::JobExplanation;
use super::metrics::recent::{LastHourJson, Recent};
use super::status::Status;
use super::status::throughput::AttemptRate;
use super::status::watch::Snapshot;
use domain::job::backoff::BackoffChoice;
use domain::job::graph::Graph;
pub use domain::job::json::JobJson;
use domain::job::life::StateName;
use domain::job::limits::Limits;
use domain::job::retry_rules::ExitCodes;
use domain::job::unique::UniqueFor;
use domain::job::{Attempt, JobEvent, JobRecord, OnDependencyFailure};
use domain::values::name::{BatchName, JobId, ScheduleName};
use domain::values::timestamp::Timestamp;
use store::{
    Batch, FailedAttempt, HookDeliveries, JobCount, Queue, ServedJobs, TryResult, WaitingDelivery, Worker,
};

/// Declares the JSON of a type: the names and values of its fields, in order.
macro_rules! json_object {
    ($(#[$doc:meta])* $json:ident($of:ident: $type:ty) { $($field:ident: $value:expr,)+ }) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $json<'a>(&'a $type);

        impl<'a> From<&'a $type> for $json<'a> {
            fn from($of: &'a $type) -> Self {
                Self($of)
            }
        }

        impl serde::Serialize for $json<'_> {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let $of = self.0;
                let mut object = serializer.serialize_map(None)?;
                $(serde::ser::SerializeMap::serialize_entry(&mut object, stringify!($field), &$value)?;)+
                serde::ser::SerializeMap::end(object)
            }
        }
    };
}
pub(crate) use json_object;

/// An enqueued job; `existing` is true if an earlier job was returned.
#[derive(Debug, Serialize)]
pub struct EnqueuedJson<'a> {
    #[serde(flatten)]
    pub job: JobJson<'a>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub existing: bool,
}

/// A job that was changed by its id and, if it was cancelled, the dependents that were cancelled with it.
#[derive(Debug, Serialize)]
pub struct ChangedJobJson<'a> {
    #[serde(flatten)]
    job: JobJson<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cancelled_dependents: Option<&'a [JobId]>,
}

impl<'a> ChangedJobJson<'a> {
    pub fn new(changed: &'a ChangedJob, verb: Verb) -> Self {
        let cancelled_dependents = verb.is_cancel().then_some(&changed.dependents[..]);
        Self { job: JobJson::from(&changed.job), cancelled_dependents }
    }
}

/// The output of `show`.
#[derive(Debug, Serialize)]
pub struct RecordJson<'a> {
    #[serde(flatten)]
    job: JobJson<'a>,
    backoff: Option<BackoffChoice>,
    limits: Option<Limits>,
    retry_on: Option<ExitCodes>,
    no_retry_on: Option<ExitCodes>,
    batch: Option<&'a BatchName>,
    /// Null without a unique key.
    unique_for: Option<UniqueFor>,
    on_dependency_failure: OnDependencyFailure,
    /// The schedule that enqueued it.
    schedule: Option<&'a ScheduleName>,
    scheduled_for: Option<Timestamp>,
    env: Vec<&'a str>,
    /// The size of its standard input, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    stdin_bytes: Option<u64>,
    events: &'a [JobEvent],
    history: Vec<AttemptJson<'a>>,
}

impl<'a> From<&'a JobRecord> for RecordJson<'a> {
    fn from(record: &'a JobRecord) -> Self {
        let (job, options) = (&record.job, &record.job.options);
        Self {
            job: job.into(),
            backoff: options.backoff,
            limits: given_limits(options.limits),
            retry_on: options.retry_on,
            no_retry_on: options.no_retry_on,
            batch: job.batch.as_ref(),
            unique_for: job.unique_key.as_ref().map(|_| options.unique_for),
            on_dependency_failure: options.on_dependency_failure(),
            schedule: record.schedule.as_ref(),
            scheduled_for: record.scheduled_for,
            env: options.env.keys().map(String::as_str).collect(),
            stdin_bytes: Some(options.stdin_bytes).filter(|bytes| *bytes > 0),
            events: &record.events,
            history: record.history.iter().map(AttemptJson::from).collect(),
        }
    }
}

fn given_limits(limits: Limits) -> Option<Limits> {
    Some(limits).filter(|limits| !limits.is_none())
}

json_object! {
    AttemptJson(attempt: Attempt) {
        attempt: attempt.number,
        worker_id: attempt.worker,
        host: attempt.host,
        started_at: attempt.started_at,
        finished_at: attempt.ending.as_ref().map(|ending| ending.finished_at),
        outcome: attempt.ending.as_ref().map(|ending| ending.outcome.name()),
        exit_code: attempt.ending.as_ref().and_then(|ending| ending.outcome.exit_code()),
        signal: attempt.ending.as_ref().and_then(|ending| ending.outcome.signal()).map(|signal| signal.to_string()),
        error: attempt.ending.as_ref().and_then(|ending| ending.error.as_deref()),
        duration_ms: attempt.ending.as_ref().map(|ending| ending.duration.as_millis()),
        cpu_ms: attempt.ending.as_ref().and_then(|ending| ending.usage.cpu).map(|cpu| cpu.as_millis()),
        max_rss_bytes: attempt.ending.as_ref().and_then(|ending| ending.usage.max_rss_bytes),
        log_bytes: attempt.ending.as_ref().map(|ending| ending.log_bytes),
    }
}

/// A piece of an attempt's output.
#[derive(Debug, Serialize)]
pub struct OutputJson<'a> {
    pub job: &'a JobId,
    pub attempt: u32,
    pub stream: &'static str,
    pub at: Timestamp,
    pub text: &'a str,
}

/// A gap where an attempt's output was not kept.
#[derive(Debug, Serialize)]
pub struct CutJson<'a> {
    pub job: &'a JobId,
    pub attempt: u32,
    pub cut_bytes: u64,
}

json_object! {
    StatusJson(status: Status) {
        jobs: by_state(&status.jobs),
        queues: status.queues.iter().map(QueueJson::from).collect::<Vec<_>>(),
        workers: status.workers.iter().map(WorkerJson::from).collect::<Vec<_>>(),
        problems: status.problems,
    }
}

/// The output of `status`.
#[derive(Debug, Serialize)]
pub struct StatusReportJson<'a> {
    #[serde(flatten)]
    status: StatusJson<'a>,
    last_hour: LastHourJson,
}

impl<'a> StatusReportJson<'a> {
    pub fn new(status: &'a Status, recent: &Recent) -> Self {
        Self { status: status.into(), last_hour: recent.into() }
    }
}

/// One update of `status --watch`.
#[derive(Debug, Serialize)]
pub struct SnapshotJson<'a> {
    at: Timestamp,
    #[serde(flatten)]
    status: StatusReportJson<'a>,
    /// Null in the first update.
    throughput: Option<ThroughputJson>,
    running: Vec<JobJson<'a>>,
    next_retries: Vec<JobJson<'a>>,
}

impl<'a> From<&'a Snapshot> for SnapshotJson<'a> {
    fn from(snapshot: &'a Snapshot) -> Self {
        Self {
            at: snapshot.at,
            status: StatusReportJson::new(&snapshot.status, &snapshot.hour),
            throughput: snapshot
                .latest
                .zip(snapshot.minute)
                .map(|(now, minute)| ThroughputJson { now: now.into(), minute: minute.into() }),
            running: snapshot.running.iter().map(JobJson::from).collect(),
            next_retries: snapshot.retries.iter().map(JobJson::from).collect(),
        }
    }
}

#[derive(Debug, Serialize)]
struct ThroughputJson {
    now: AttemptRateJson,
    minute: AttemptRateJson,
}

#[derive(Debug, Serialize)]
struct AttemptRateJson {
    completed_per_second: f64,
    failed_per_second: f64,
}

impl From<AttemptRate> for AttemptRateJson {
    fn from(counted: AttemptRate) -> Self {
        let per_second = |count: u64| {
            let rate = f64::from(u32::try_from(count).unwrap_or(u32::MAX)) / counted.over.as_secs_f64();
            (rate * 1_000.0).round() / 1_000.0
        };
        Self {
            completed_per_second: per_second(counted.completed),
            failed_per_second: per_second(counted.failed),
        }
    }
}

/// Zeros included.
fn by_state(counts: &BTreeMap<StateName, u64>) -> BTreeMap<&'static str, u64> {
    let count = |state: StateName| (state.name(), counts.get(&state).copied().unwrap_or(0));
    StateName::ALL.into_iter().map(count).collect()
}

json_object! {
    /// `next_start_at` is when the rate limit allows the next start, if that is in the future.
    QueueJson(queue: Queue) {
        name: queue.name,
        paused: queue.paused.is_some(),
        paused_at: queue.paused.as_ref().map(|(at, _)| at),
        paused_by: queue.paused.as_ref().map(|(_, pause)| &pause.by),
        pause_reason: queue.paused.as_ref().and_then(|(_, pause)| pause.reason.as_ref()),
        concurrency: queue.concurrency,
        rate: queue.rate.map(|rate| rate.to_string()),
        next_start_at: queue.next_start_at,
        limits: given_limits(queue.limits),
        retry_on: queue.retry.retry_on,
        no_retry_on: queue.retry.no_retry_on,
        jobs: by_state(&queue.counts),
    }
}

json_object! {
    WorkerJson(worker: Worker) {
        id: worker.id,
        pid: worker.pid,
        supervisor_pid: worker.supervisor_pid,
        host: worker.host,
        queues: match &worker.served {
            ServedJobs::All => None,
            ServedJobs::InOrder(queues) => Some(&queues[..]),
            // The worker runs a single job.
            ServedJobs::Batch(_) | ServedJobs::Job(_) => Some(&[][..]),
        },
        concurrency: worker.concurrency,
        running: worker.running,
        state: worker.state,
        started_at: worker.started_at,
        last_heartbeat: worker.last_heartbeat,
    }
}

json_object! {
    /// The output of `graph`; `cut` is whether jobs were omitted.
    GraphJson(graph: Graph) {
        id: graph.nodes.first().map(|node| &node.id),
        nodes: graph.nodes,
        edges: graph
            .edges
            .iter()
            .map(|edge| EdgeJson {
                job: &graph.nodes[edge.job].id,
                depends_on: &graph.nodes[edge.depends_on].id,
            })
            .collect::<Vec<_>>(),
        cut: graph.is_cut,
    }
}

#[derive(Debug, Serialize)]
struct EdgeJson<'a> {
    job: &'a JobId,
    depends_on: &'a JobId,
}

json_object! {
    /// `finished_at` is null while any of its jobs is unfinished.
    BatchJson(batch: Batch) {
        name: batch.name,
        created_at: batch.created_at,
        finished_at: batch.finished_at,
        total: batch.total(),
        jobs: by_state(&batch.counts),
    }
}

/// The output of `batch show`.
#[derive(Debug, Serialize)]
pub struct BatchRecordJson<'a> {
    #[serde(flatten)]
    pub batch: BatchJson<'a>,
    /// The time that it still needs, in milliseconds; null if it cannot be estimated, or if the batch has finished.
    pub eta_ms: Option<u64>,
}

json_object! {
    /// How many jobs match a filter; not `exact` if the time was up before all were looked at.
    CountJson(count: JobCount) {
        count: count.count,
        exact: count.is_exact,
        by_state: by_state(&count.by_state),
        by_queue: count.by_queue,
    }
}

json_object! {
    FailedAttemptJson(failed: FailedAttempt) {
        number: failed.number,
        id: failed.job,
        queue: failed.queue,
        command: failed.command,
        state: failed.state,
        attempt: failed.attempt,
        finished_at: failed.finished_at,
        duration_ms: failed.duration.as_millis(),
        outcome: failed.outcome.name(),
        exit_code: failed.exit_code,
        signal: failed.signal.map(|signal| signal.to_string()),
        error: failed.error,
    }
}

json_object! {
    /// `waiting` has the next deliveries, `results` the last tries, newest first.
    DeliveriesJson(deliveries: HookDeliveries) {
        waiting: deliveries.waiting.iter().map(WaitingDeliveryJson::from).collect::<Vec<_>>(),
        results: deliveries.results.iter().map(TryResultJson::from).collect::<Vec<_>>(),
    }
}

json_object! {
    WaitingDeliveryJson(delivery: WaitingDelivery) {
        id: delivery.name,
        created_at: delivery.created_at,
        due_at: delivery.due_at,
        tries: delivery.tries,
        sending: delivery.is_sending,
    }
}

json_object! {
    TryResultJson(result: TryResult) {
        at: result.at,
        delivery: result.delivery,
        error: result.error,
    }
}

json_object! {
    ExplanationJson(explained: JobExplanation) {
        id: explained.job.id,
        state: explained.job.life.state.name(),
        reasons: explained.explanation.reasons,
        probable_start: explained.explanation.probable_start,
        guessed_from: explained.explanation.estimated_from,
    }
}
