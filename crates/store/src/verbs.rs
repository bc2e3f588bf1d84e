//! What goes into the verbs of a store and what comes out.

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

/// What `enqueue` did for one job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Enqueued {
    Created(JobId),
    /// An earlier job has its id or its unique key.
    Existing(JobId),
}

impl Enqueued {
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

/// A job as a selection saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub id: JobId,
    /// See [`domain::job::Job::number`].
    pub number: u64,
    pub state: StateName,
}

/// What somebody can want done to jobs.
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

/// What became of one job that somebody wanted changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Done; the job is now in this state (or was, if it is gone).
    Done(StateName),
    NotFound,
    Conflict(Conflict),
}

/// What one short transaction made of the first of the jobs that it was given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Portion {
    /// In the order of the jobs. Where there are fewer of them than jobs, the rest is for the next call; there is at least
    /// one.
    pub changes: Vec<Change>,
    /// Jobs that were cancelled because they depend on one of these.
    pub dependents: Vec<Dependent>,
    /// More of them are left: the workers cancel them now, in short transactions too.
    pub leaves_dependents: bool,
}

/// Changes all of these, portion after portion. The answers are in the order of the ids.
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

/// A job that was cancelled because it depends, itself or through others, on one that was cancelled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dependent {
    pub id: JobId,
    /// The one that the caller cancelled.
    pub of: JobId,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Conflict {
    #[error("it is {}", .0.name())]
    State(StateName),
    #[error("job `{holder}` holds its unique key")]
    KeyTaken { holder: JobId },
    /// Counted up to [`Conflict::MOST_COUNTED`].
    #[error("{} on it", depend(*count))]
    WaitedFor { count: u64 },
    #[error("its time would lie after the year 9999")]
    TooLate,
    #[error("it depends on job `{through}`, which depends on it: a cycle")]
    Cycle { through: JobId },
}

impl Conflict {
    /// Where more jobs wait than this, it does not matter how many they are.
    pub const MOST_COUNTED: u64 = 50;
}

fn depend(count: u64) -> String {
    match count {
        1 => "an unfinished job depends".to_owned(),
        Conflict::MOST_COUNTED.. => format!("at least {count} unfinished jobs depend"),
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

/// What a worker serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Served {
    /// All of them, later ones too.
    All,
    /// These, each only when those before it have nothing ready.
    InOrder(Vec<QueueName>),
    /// This one job and nothing else.
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
    pub served: Served,
    pub concurrency: u32,
    /// Where its files are; absolute. A store that keeps it may give it back under the name that a reader has for it.
    pub folder: PathBuf,
    /// The newest stop order when its pool began; `None`: the newest there is now. What came later concerns it.
    pub stop_seen: Option<u64>,
}

/// What a worker gets when it registers.
#[derive(Debug)]
pub struct Registered {
    /// Rings when there may be work.
    pub bell: Bell,
    /// For whoever takes the worker's place in its pool; see [`NewWorker::stop_seen`].
    pub stop_seen: u64,
}

/// How many attempts a worker can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerSlots {
    pub concurrency: u32,
    /// How many run that were started when it was higher, beside those of free slots; at least `concurrency`.
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
    pub served: Served,
    pub concurrency: u32,
    /// How many leases it holds. Those that no slot has taken yet are not started.
    pub held: u32,
    /// How many attempts it has started, as far as the store can know: a lease that is held waits for a slot only where all
    /// slots are taken. An outcome counts as running until it is recorded.
    pub running: u32,
    pub state: WorkerState,
    pub started_at: Timestamp,
    pub last_heartbeat: Timestamp,
    /// See [`NewWorker::folder`].
    pub folder: PathBuf,
    /// The earliest end of its leases.
    pub lease_until: Option<Timestamp>,
    /// Whether it holds a lease past its time.
    pub overdue: bool,
}

/// What a worker is to do.
#[derive(Clone, Debug, PartialEq)]
pub struct Orders {
    pub state: WorkerState,
    /// Claim nothing more and leave when nothing runs.
    pub drain: bool,
    /// When to kill what still runs.
    pub kill_at: Option<Timestamp>,
    /// Its leases on jobs that somebody wants cancelled.
    pub cancelled: Vec<LeaseRef>,
    pub settings: Settings,
    /// When the next schedule is due, whose jobs anybody may run.
    pub next_fire: Option<Timestamp>,
    /// Nothing that it serves is ready, processing or waiting for a retry, with any worker. Paused queues and jobs whose
    /// time has not come do not count.
    pub idle: bool,
    /// When there is something to tell a hook that nobody is telling anything.
    pub next_delivery: Option<Timestamp>,
}

/// The bell of one worker, in its folder: rung when there are orders for it.
pub fn worker_bell(folder: &Path, worker: &WorkerId) -> PathBuf {
    folder.join(format!("{worker}.bell"))
}

/// An order to all workers of the pools that are there now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop {
    /// The home whose workers have to stop, on its machine, whatever its boot; `None`: those of every home.
    pub home: Option<HostKey>,
    /// When what still runs is killed; `None`: it may finish.
    pub kill_at: Option<Timestamp>,
}

/// A lease by job and attempt: the proof that goes with every later write.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LeaseRef {
    pub job: JobId,
    pub attempt: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseStatus {
    Held,
    /// Still held, but somebody wants the job cancelled.
    CancelRequested,
    /// Another has it, or nobody: kill the command, record nothing.
    Lost,
}

/// One turn of a worker.
#[derive(Clone, Debug)]
pub struct Exchange<'a> {
    pub worker: &'a WorkerId,
    pub settlements: &'a [Settlement],
    /// How many jobs to claim at most.
    pub want: usize,
    /// How many of them may be of queues with a limit: what lies in a hand uses up a limit that others could use.
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
    /// When it ended, if not just now: between then and its recording others may be recorded, or the store may fail.
    pub ended: Option<Instant>,
    pub usage: Usage,
    pub log_bytes: u64,
    /// Output small enough to be stored with the attempt.
    pub output: Option<Vec<u8>>,
}

impl Settlement {
    /// That of a claim that was not started. If somebody cancelled it meanwhile, it will be cancelled.
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
pub struct Exchanged {
    pub claimed: Vec<Claim>,
    /// There was more that others could take, in queues with a limit.
    pub has_left_some: bool,
    /// What became of the jobs whose settlements were recorded, in the order of these.
    pub settled: Vec<Settled>,
    /// Settlements that changed nothing, because their lease was lost.
    pub stale: Vec<LeaseRef>,
    /// The worker was retired, or reaped in its absence: it gets nothing any more.
    pub retired: bool,
    /// When the next job that waits for its time becomes due, or one may start that waits for the rate of its queue;
    /// now, where more is to be done than one turn does.
    pub next_due: Option<Timestamp>,
}

/// What followed a settlement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled {
    pub lease: LeaseRef,
    pub state: StateName,
    pub next_retry_at: Option<Timestamp>,
    /// Why it is dead, if it is.
    pub dead: Option<DeadReason>,
}

/// A process of a running attempt that could not be killed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unkillable {
    pub lease: LeaseRef,
    pub pid: u32,
    /// In clock ticks since boot: with the pid it names one process for good.
    pub start_time: u64,
    pub why: String,
}

impl Unkillable {
    /// Whether it lives, as far as that can be seen from here.
    pub fn is_there(&self) -> bool {
        let stat = Pid::from_raw(self.pid.cast_signed()).and_then(process::stat);
        stat.is_some_and(|stat| !stat.is_zombie && stat.start_time == self.start_time)
    }
}

/// A job that was claimed: what it takes to run it.
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
    /// The environment it was enqueued in; without one the worker's is taken.
    pub environment: Option<Arc<Environment>>,
    /// Added to the environment.
    pub env: BTreeMap<String, String>,
    pub timeout: Option<Duration>,
    /// The job's own, its queue's and those of the settings together.
    pub limits: Limits,
    /// The worker runs nothing else beside it: see [`domain::job::life::Life::runs_alone`].
    pub runs_alone: bool,
}
