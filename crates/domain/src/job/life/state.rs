//! The states of a job, and the data that each has.

use crate::values::name::WorkerId;
use crate::values::signal::Signal;
use crate::values::timestamp::Timestamp;

#[derive(Clone, Debug, PartialEq)]
pub enum State {
    /// Waits for its start time, for a free slot, or for `blocked_by` other jobs.
    Pending {
        blocked_by: u32,
    },
    /// A worker holds the lease.
    Processing(Lease),
    Completed {
        finished_at: Timestamp,
    },
    /// Waits for its backoff, then runs again.
    Failed,
    /// In the dead-letter queue.
    Dead {
        finished_at: Timestamp,
        reason: DeadReason,
    },
    Cancelled {
        finished_at: Timestamp,
        reason: CancelReason,
    },
}

/// A worker's expiring right to a job.
#[derive(Clone, Debug, PartialEq)]
pub struct Lease {
    pub worker: WorkerId,
    pub started_at: Timestamp,
    pub until: Timestamp,
    /// A cancellation was requested, with its reason: the worker kills the command and settles the attempt.
    pub cancel_requested: Option<CancelReason>,
    /// The signal that the request names; SIGTERM if it names none.
    pub cancel_signal: Option<Signal>,
    /// Since when its worker has to keep the command stopped.
    pub paused_at: Option<Timestamp>,
}

crate::named_enum! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum DeadReason {
        RetriesExhausted = "retries_exhausted",
        CrashLimit = "crash_limit",
        /// It ended with an exit code that is not retried.
        NotRetried = "not_retried",
    }
}

crate::named_enum! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum CancelReason {
        User = "user",
        Dependency = "dependency",
        /// Its schedule replaced it with a newer run.
        Replaced = "replaced",
    }
}

crate::named_enum! {
    /// The state without its data: for filters, counters and display.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum StateName {
        Pending = "pending",
        Processing = "processing",
        Completed = "completed",
        Failed = "failed",
        Dead = "dead",
        Cancelled = "cancelled",
    }
}

impl Lease {
    /// A new lease, without any request.
    pub fn new(worker: WorkerId, started_at: Timestamp, until: Timestamp) -> Self {
        Self { worker, started_at, until, cancel_requested: None, cancel_signal: None, paused_at: None }
    }
}

impl StateName {
    /// Whether the job stays in this state until a user retries or removes it.
    pub fn is_finished(self) -> bool {
        match self {
            Self::Completed | Self::Dead | Self::Cancelled => true,
            Self::Pending | Self::Processing | Self::Failed => false,
        }
    }
}

impl State {
    pub fn name(&self) -> StateName {
        match self {
            Self::Pending { .. } => StateName::Pending,
            Self::Processing(_) => StateName::Processing,
            Self::Completed { .. } => StateName::Completed,
            Self::Failed => StateName::Failed,
            Self::Dead { .. } => StateName::Dead,
            Self::Cancelled { .. } => StateName::Cancelled,
        }
    }

    pub fn finished_at(&self) -> Option<Timestamp> {
        match self {
            Self::Completed { finished_at }
            | Self::Dead { finished_at, .. }
            | Self::Cancelled { finished_at, .. } => Some(*finished_at),
            Self::Pending { .. } | Self::Processing(_) | Self::Failed => None,
        }
    }

    /// How many unfinished jobs it waits for.
    pub fn blocked_by(&self) -> u32 {
        if let Self::Pending { blocked_by } = self { *blocked_by } else { 0 }
    }

    /// Since when its attempt has been paused.
    pub fn paused_at(&self) -> Option<Timestamp> {
        self.lease()?.paused_at
    }

    /// The lease of the worker that runs it.
    pub fn lease(&self) -> Option<&Lease> {
        if let Self::Processing(lease) = self { Some(lease) } else { None }
    }

    pub fn dead_reason(&self) -> Option<DeadReason> {
        if let Self::Dead { reason, .. } = self { Some(*reason) } else { None }
    }

    /// The name of the reason why it is dead or cancelled.
    pub fn reason(&self) -> Option<&'static str> {
        match self {
            Self::Dead { reason, .. } => Some(reason.name()),
            Self::Cancelled { reason, .. } => Some(reason.name()),
            Self::Pending { .. } | Self::Processing(_) | Self::Completed { .. } | Self::Failed => None,
        }
    }
}
