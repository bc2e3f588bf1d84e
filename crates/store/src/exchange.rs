//! A worker's turn: the outcomes that it reports, and the jobs that it gets.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use domain::job::Usage;
use domain::job::environment::Environment;
use domain::job::life::{DeadReason, StateName};
use domain::job::limits::Limits;
use domain::job::outcome::Outcome;
use domain::job::trace::TraceContext;
use domain::values::name::{JobId, QueueName, WorkerId};
use domain::values::signal::Signal;
use domain::values::timestamp::Timestamp;

/// A lease by job and attempt: the fencing token of every later write.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LeaseRef {
    pub job: JobId,
    pub attempt: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseStatus {
    Held,
    /// Still held, but the job's cancellation was requested: the command first gets this signal.
    CancelRequested(Signal),
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
    /// The trace in which it was enqueued.
    pub trace: Option<Box<TraceContext>>,
    /// Its standard input; `None` if it is empty.
    pub stdin: Option<Vec<u8>>,
    pub timeout: Option<Duration>,
    /// The limits of the job, its queue and the settings combined.
    pub limits: Limits,
    /// The worker must run nothing else concurrently: see [`domain::job::life::Life::runs_alone`].
    pub runs_alone: bool,
}
