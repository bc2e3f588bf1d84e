//! The parameters and results of a store's verbs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::Pid;

use super::{Store, StoreError};
use domain::job::Usage;
use domain::job::environment::Environment;
use domain::job::life::{DeadReason, StateName};
use domain::job::limits::Limits;
use domain::job::outcome::Outcome;
use domain::settings::Settings;
use domain::values::name::{JobId, QueueName, WorkerId};
use domain::values::timestamp::Timestamp;
use sys::bell::Bell;
use sys::host::{HostKey, Origin};
use sys::process;

/// The result of `enqueue` for one job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnqueueResult {
    Created(JobId),
    /// An existing job has its id or its unique key.
    Existing(JobId),
}

impl EnqueueResult {
    pub fn id(&self) -> &JobId {
        match self {
            Self::Created(id) | Self::Existing(id) => id,
        }
    }

    pub fn is_created(&self) -> bool {
        match self {
            Self::Created(_) => true,
            Self::Existing(_) => false,
        }
    }
}

/// A job as a selection found it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobRef {
    pub id: JobId,
    /// See [`domain::job::Job::number`].
    pub number: u64,
    pub state: StateName,
}

/// A change that a caller can request for jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobVerb {
    Cancel,
    Retry,
    Remove,
}

impl JobVerb {
    pub fn name(self) -> &'static str {
        match self {
            Self::Cancel => "cancel",
            Self::Retry => "retry",
            Self::Remove => "remove",
        }
    }
}

/// The result of a requested change of one job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Done. The job is now in this state, or was before it was removed.
    Done(StateName),
    NotFound,
    Conflict(Conflict),
}

/// The result of one short transaction for the first of the given jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartialChange {
    /// In the order of the jobs, at least one. If there are fewer than jobs, the rest is left to the next call.
    pub changes: Vec<Change>,
    /// Jobs that were cancelled because they depend on one of these.
    pub dependents: Vec<Dependent>,
    /// More dependents remain; the workers cancel them now, in short transactions too.
    pub leaves_dependents: bool,
}

/// Changes all of these, one portion after the other. The answers are in the order of the ids.
pub(super) fn change_all<S: Store + ?Sized>(
    store: &S,
    verb: JobVerb,
    ids: &[JobId],
    by: &str,
) -> Result<Vec<Change>, StoreError> {
    let mut changes: Vec<Change> = Vec::with_capacity(ids.len());
    while changes.len() < ids.len() {
        changes.extend(store.change_ids(verb, &ids[changes.len()..], by)?.changes);
    }
    Ok(changes)
}

/// A job that was cancelled because it depends, directly or through others, on a cancelled one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dependent {
    pub id: JobId,
    /// The job that the caller cancelled.
    pub of: JobId,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Conflict {
    #[error("it is {}", .0.name())]
    State(StateName),
    #[error("job `{holder}` holds its unique key")]
    KeyTaken { holder: JobId },
    /// Counted up to [`Conflict::MAX_COUNTED`].
    #[error("{} on it", depend(*count))]
    WaitedFor { count: u64 },
    #[error("its due time would be after the year 9999")]
    TooLate,
    #[error("it depends on job `{through}`, which depends on it: a cycle")]
    Cycle { through: JobId },
}

impl Conflict {
    /// Dependents are counted up to this number; beyond it the exact number does not matter.
    pub const MAX_COUNTED: u64 = 50;
}

fn depend(count: u64) -> String {
    match count {
        1 => "an unfinished job depends".to_owned(),
        Conflict::MAX_COUNTED.. => format!("at least {count} unfinished jobs depend"),
        fewer => format!("{fewer} unfinished jobs depend"),
    }
}

/// Dead jobs with the same reason and the same error line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadGroup {
    pub reason: String,
    pub error: Option<String>,
    pub count: u64,
    pub last_at: Timestamp,
    pub example: JobId,
}

/// Which jobs a worker runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServedJobs {
    /// Those of all queues, including later ones.
    All,
    /// Those of these queues; each queue only while the ones before it have nothing ready.
    InOrder(Vec<QueueName>),
    /// This one job only.
    Job(JobId),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewWorker {
    pub id: WorkerId,
    /// The name of its machine, for people.
    pub host: String,
    pub origin: Origin,
    pub pid: u32,
    pub supervisor_pid: Option<u32>,
    pub served: ServedJobs,
    pub concurrency: u32,
    /// The absolute folder of its files. The store may return it under the path by which the reader knows it.
    pub folder: PathBuf,
    /// The newest stop order when its pool started; `None` for the newest now. Later orders apply to it.
    pub stop_seen: Option<u64>,
}

/// The result of a registration.
#[derive(Debug)]
pub struct Registration {
    /// Rings when there may be work.
    pub bell: Bell,
    /// For a worker that replaces this one in its pool; see [`NewWorker::stop_seen`].
    pub stop_seen: u64,
}

/// How many attempts a worker can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerSlots {
    pub concurrency: u32,
    /// At least `concurrency`: more while attempts from before a reduction are still running.
    pub most: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerState {
    Running,
    Draining,
    Stopped,
}

impl WorkerState {
    pub const ALL: [Self; 3] = [Self::Running, Self::Draining, Self::Stopped];

    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Draining => "draining",
            Self::Stopped => "stopped",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worker {
    pub id: WorkerId,
    /// The name of its machine, for people.
    pub host: String,
    pub origin: Origin,
    pub pid: u32,
    pub supervisor_pid: Option<u32>,
    pub served: ServedJobs,
    pub concurrency: u32,
    /// How many leases it holds. Those without a slot are not started yet.
    pub held: u32,
    /// How many attempts it has started, as far as the store can know: a held lease waits for a slot only if all slots
    /// are taken. An attempt counts as running until its outcome is recorded.
    pub running: u32,
    pub state: WorkerState,
    pub started_at: Timestamp,
    pub last_heartbeat: Timestamp,
    /// See [`NewWorker::folder`].
    pub folder: PathBuf,
    /// The earliest end of its leases.
    pub lease_until: Option<Timestamp>,
    /// Whether one of its leases has expired.
    pub overdue: bool,
}

/// The orders for a worker.
#[derive(Clone, Debug, PartialEq)]
pub struct Orders {
    pub state: WorkerState,
    /// Claim nothing more, and exit when nothing runs.
    pub drain: bool,
    /// When to kill the remaining commands.
    pub kill_at: Option<Timestamp>,
    /// Its leases on jobs whose cancellation was requested.
    pub cancelled: Vec<LeaseRef>,
    pub settings: Settings,
    /// When the next schedule is due; any worker may run its jobs.
    pub next_fire: Option<Timestamp>,
    /// Nothing that it serves is ready, processing or waiting for a retry, on any worker. Paused queues and jobs that
    /// are not due do not count.
    pub idle: bool,
    /// When the next delivery is due, among the hooks that have none in flight.
    pub next_delivery: Option<Timestamp>,
}

/// The bell of one worker, in its folder: rung when there are orders for it.
pub fn worker_bell(folder: &Path, worker: &WorkerId) -> PathBuf {
    folder.join(format!("{worker}.bell"))
}

/// A stop order to all workers of the pools that exist now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop {
    /// The home whose workers have to stop, on its machine and in any boot; `None` for every home.
    pub home: Option<HostKey>,
    /// When to kill running commands; `None` to let them finish.
    pub kill_at: Option<Timestamp>,
}

/// A lease by job and attempt: the fencing token of every later write.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LeaseRef {
    pub job: JobId,
    pub attempt: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseStatus {
    Held,
    /// Still held, but the job's cancellation was requested.
    CancelRequested,
    /// The lease has ended: kill the command and record nothing.
    Lost,
}

/// One turn of a worker.
#[derive(Clone, Debug)]
pub struct Exchange<'a> {
    pub worker: &'a WorkerId,
    pub settlements: &'a [Settlement],
    /// How many jobs to claim at most.
    pub want: usize,
    /// How many of them may belong to limited queues: a prefetched claim would use up a limit that other workers could
    /// use.
    pub want_limited: usize,
}

/// How an attempt ended, as its worker saw it.
#[derive(Clone, Debug, PartialEq)]
pub struct Settlement {
    pub lease: LeaseRef,
    pub outcome: Outcome,
    /// One line; see [`domain::job::LatestAttempt::error`].
    pub error: Option<String>,
    pub duration: Duration,
    /// When it ended, if earlier than now: recording may be delayed by a shared commit or a store failure.
    pub ended: Option<Instant>,
    pub usage: Usage,
    pub log_bytes: u64,
    /// Output small enough to be stored with the attempt.
    pub output: Option<Vec<u8>>,
}

impl Settlement {
    /// For a claim that was not started. If its cancellation was requested meanwhile, the job is cancelled.
    pub fn never_started(lease: LeaseRef) -> Self {
        Self {
            lease,
            outcome: Outcome::Released,
            error: None,
            duration: Duration::ZERO,
            ended: None,
            usage: Usage::default(),
            log_bytes: 0,
            output: None,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExchangeResult {
    pub claimed: Vec<Claim>,
    /// Limited queues had more jobs, which other workers could take.
    pub has_left_some: bool,
    /// The jobs whose settlements were recorded, in their order.
    pub settled: Vec<SettledJob>,
    /// Settlements that changed nothing, because their lease was lost.
    pub stale: Vec<LeaseRef>,
    /// The worker was stopped, or reaped in its absence, and gets no more jobs.
    pub retired: bool,
    /// When the next waiting job becomes due, or a rate allows the next start; now, if more work remains than one turn
    /// does.
    pub next_due: Option<Timestamp>,
}

/// A job after its settlement was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettledJob {
    pub lease: LeaseRef,
    pub state: StateName,
    pub next_retry_at: Option<Timestamp>,
    /// The reason if it is dead.
    pub dead: Option<DeadReason>,
}

/// A process of a running attempt that could not be killed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnkillableProcess {
    pub lease: LeaseRef,
    pub pid: u32,
    /// In clock ticks since boot: together with the pid it identifies a process.
    pub start_time: u64,
    pub why: String,
}

impl UnkillableProcess {
    /// Whether it is still alive, as far as this process can see.
    pub fn is_alive(&self) -> bool {
        let stat = Pid::from_raw(self.pid.cast_signed()).and_then(process::stat);
        stat.is_some_and(|stat| !stat.is_zombie && stat.start_time == self.start_time)
    }
}

/// A claimed job with what is needed to run it.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    pub lease: LeaseRef,
    /// See [`domain::job::Job::number`].
    pub number: u64,
    pub lease_until: Timestamp,
    pub queue: QueueName,
    /// Its queue has a limit.
    pub is_limited: bool,
    pub priority: i32,
    pub due_at: Timestamp,
    pub command: String,
    pub cwd: Option<String>,
    /// The environment in which it was enqueued; without one, the worker's is used.
    pub environment: Option<Arc<Environment>>,
    /// Added to the environment.
    pub env: BTreeMap<String, String>,
    pub timeout: Option<Duration>,
    /// The limits of the job, its queue and the settings combined.
    pub limits: Limits,
    /// The worker must run nothing else concurrently: see [`domain::job::life::Life::runs_alone`].
    pub runs_alone: bool,
}
