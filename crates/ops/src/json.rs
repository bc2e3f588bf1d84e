//! The JSON forms of jobs, workers, status and settings, for `--json` and HTTP.

use std::collections::BTreeMap;

use serde::Serialize;

use super::status::throughput::AttemptRate;
use super::status::watch::Snapshot;
use super::status::{Problem, Status};
use domain::job::backoff::BackoffChoice;
use domain::job::graph::{Graph, Node};
pub use domain::job::json::JobJson;
use domain::job::life::StateName;
use domain::job::limits::Limits;
use domain::job::retry_rules::ExitCodes;
use domain::job::unique::UniqueFor;
use domain::job::{Attempt, JobEvent, JobRecord, OnDependencyFailure};
use domain::values::name::{BatchName, QueueName, ScheduleName};
use domain::values::timestamp::Timestamp;
use store::{Queue, ServedJobs, Worker};

/// An enqueued job; `existing` is true if an earlier job was returned.
#[derive(Debug, Serialize)]
pub struct EnqueuedJson<'a> {
    #[serde(flatten)]
    pub job: JobJson<'a>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub existing: bool,
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
            events: &record.events,
            history: record.history.iter().map(AttemptJson::from).collect(),
        }
    }
}

fn given_limits(limits: Limits) -> Option<Limits> {
    Some(limits).filter(|limits| !limits.is_none())
}

#[derive(Debug, Serialize)]
struct AttemptJson<'a> {
    attempt: u32,
    worker_id: &'a str,
    host: &'a str,
    started_at: Timestamp,
    finished_at: Option<Timestamp>,
    outcome: Option<&'static str>,
    exit_code: Option<i32>,
    signal: Option<String>,
    error: Option<&'a str>,
    duration_ms: Option<u128>,
    cpu_ms: Option<u128>,
    max_rss_bytes: Option<u64>,
    log_bytes: Option<u64>,
}

impl<'a> From<&'a Attempt> for AttemptJson<'a> {
    fn from(attempt: &'a Attempt) -> Self {
        let ending = attempt.ending.as_ref();
        Self {
            attempt: attempt.number,
            worker_id: attempt.worker.as_str(),
            host: &attempt.host,
            started_at: attempt.started_at,
            finished_at: ending.map(|ending| ending.finished_at),
            outcome: ending.map(|ending| ending.outcome.name()),
            exit_code: ending.and_then(|ending| ending.outcome.exit_code()),
            signal: ending.and_then(|ending| ending.outcome.signal()).map(|signal| signal.to_string()),
            error: ending.and_then(|ending| ending.error.as_deref()),
            duration_ms: ending.map(|ending| ending.duration.as_millis()),
            cpu_ms: ending.and_then(|ending| ending.usage.cpu).map(|cpu| cpu.as_millis()),
            max_rss_bytes: ending.and_then(|ending| ending.usage.max_rss_bytes),
            log_bytes: ending.map(|ending| ending.log_bytes),
        }
    }
}

/// A piece of an attempt's output.
#[derive(Debug, Serialize)]
pub struct OutputJson<'a> {
    pub attempt: u32,
    pub stream: &'static str,
    pub at: Timestamp,
    pub text: &'a str,
}

/// A gap where an attempt's output was not kept.
#[derive(Debug, Serialize)]
pub struct CutJson {
    pub attempt: u32,
    pub cut_bytes: u64,
}

#[derive(Debug, Serialize)]
pub struct StatusJson<'a> {
    jobs: BTreeMap<&'static str, u64>,
    queues: Vec<QueueJson<'a>>,
    workers: Vec<WorkerJson<'a>>,
    problems: &'a [Problem],
}

impl<'a> From<&'a Status> for StatusJson<'a> {
    fn from(status: &'a Status) -> Self {
        Self {
            jobs: by_state(&status.jobs),
            queues: status.queues.iter().map(QueueJson::from).collect(),
            workers: status.workers.iter().map(WorkerJson::from).collect(),
            problems: &status.problems,
        }
    }
}

/// One update of `status --watch`.
#[derive(Debug, Serialize)]
pub struct SnapshotJson<'a> {
    at: Timestamp,
    #[serde(flatten)]
    status: StatusJson<'a>,
    /// Null in the first update.
    throughput: Option<ThroughputJson>,
    running: Vec<JobJson<'a>>,
    next_retries: Vec<JobJson<'a>>,
}

impl<'a> From<&'a Snapshot> for SnapshotJson<'a> {
    fn from(snapshot: &'a Snapshot) -> Self {
        Self {
            at: snapshot.at,
            status: (&snapshot.status).into(),
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

#[derive(Debug, Serialize)]
pub struct QueueJson<'a> {
    name: &'a str,
    paused: bool,
    paused_at: Option<Timestamp>,
    paused_by: Option<&'a str>,
    pause_reason: Option<&'a str>,
    concurrency: Option<u32>,
    rate: Option<String>,
    /// When the rate limit allows the next start, if that is in the future.
    next_start_at: Option<Timestamp>,
    limits: Option<Limits>,
    retry_on: Option<ExitCodes>,
    no_retry_on: Option<ExitCodes>,
    jobs: BTreeMap<&'static str, u64>,
}

impl<'a> From<&'a Queue> for QueueJson<'a> {
    fn from(queue: &'a Queue) -> Self {
        let pause = queue.paused.as_ref().map(|(_, pause)| pause);
        Self {
            name: queue.name.as_str(),
            paused: queue.paused.is_some(),
            paused_at: queue.paused.as_ref().map(|(at, _)| *at),
            paused_by: pause.map(|pause| pause.by.as_str()),
            pause_reason: pause.and_then(|pause| pause.reason.as_deref()),
            concurrency: queue.concurrency,
            rate: queue.rate.map(|rate| rate.to_string()),
            next_start_at: queue.next_start_at,
            limits: given_limits(queue.limits),
            retry_on: queue.retry.retry_on,
            no_retry_on: queue.retry.no_retry_on,
            jobs: by_state(&queue.counts),
        }
    }
}

#[derive(Debug, Serialize)]
pub struct WorkerJson<'a> {
    id: &'a str,
    pid: u32,
    supervisor_pid: Option<u32>,
    host: &'a str,
    /// Null: all queues. Empty: the worker runs a single job.
    queues: Option<Vec<&'a str>>,
    concurrency: u32,
    running: u32,
    state: &'static str,
    started_at: Timestamp,
    last_heartbeat: Timestamp,
}

impl<'a> From<&'a Worker> for WorkerJson<'a> {
    fn from(worker: &'a Worker) -> Self {
        Self {
            id: worker.id.as_str(),
            pid: worker.pid,
            supervisor_pid: worker.supervisor_pid,
            host: &worker.host,
            queues: match &worker.served {
                ServedJobs::All => None,
                ServedJobs::InOrder(queues) => Some(queues.iter().map(QueueName::as_str).collect()),
                ServedJobs::Job(_) => Some(Vec::new()),
            },
            concurrency: worker.concurrency,
            running: worker.running,
            state: worker.state.name(),
            started_at: worker.started_at,
            last_heartbeat: worker.last_heartbeat,
        }
    }
}

/// The output of `graph`.
#[derive(Debug, Serialize)]
pub struct GraphJson<'a> {
    id: Option<&'a str>,
    nodes: &'a [Node],
    edges: Vec<EdgeJson<'a>>,
    /// Whether jobs were omitted.
    cut: bool,
}

#[derive(Debug, Serialize)]
struct EdgeJson<'a> {
    job: &'a str,
    depends_on: &'a str,
}

impl<'a> From<&'a Graph> for GraphJson<'a> {
    fn from(graph: &'a Graph) -> Self {
        let id = |place: usize| graph.nodes[place].id.as_str();
        Self {
            id: graph.nodes.first().map(|node| node.id.as_str()),
            nodes: &graph.nodes,
            edges: graph
                .edges
                .iter()
                .map(|edge| EdgeJson { job: id(edge.job), depends_on: id(edge.depends_on) })
                .collect(),
            cut: graph.is_cut,
        }
    }
}
