//! Data that a store derives from its jobs, and where it disagrees with them.

use crate::rows::keys::{BatchKey, JobSeq, QueueKey};
use domain::job::cause::CauseId;

/// Derived data that disagrees with the jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contradiction {
    pub derived: DerivedData,
    /// The problem, in words.
    pub message: String,
}

/// Derived data, identified by row numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DerivedData {
    /// The number of jobs of a queue in each state.
    Counter { queue_id: QueueKey },
    /// The same for a batch, and whether it is finished.
    BatchCounter { batch_id: BatchKey },
    /// The number of dead jobs of a queue that died of a cause.
    Cause { id: CauseId, queue_id: QueueKey },
    /// Whether a job has a cause: only a dead one does.
    JobCause { seq: JobSeq },
    /// The `ready` or `waiting` row of a job.
    IndexRow { seq: JobSeq },
    /// A row of `ready`.
    Ready { queue_id: QueueKey, priority: i64, due_at: i64, seq: JobSeq },
    /// A row of `waiting`.
    Waiting { due_at: i64, seq: JobSeq },
    /// The number of jobs that a job waits for.
    Blocked { seq: JobSeq },
    /// A finished job still has dependents to unblock, but no pending unblock is recorded.
    MissingUnblock { parent_seq: JobSeq },
    /// A pending unblock of a job that is missing or unfinished.
    StrayUnblock { parent_seq: JobSeq },
    /// The link between a job and its dependency.
    Link { parent_seq: JobSeq, child_seq: JobSeq },
    /// A tag in the tag index.
    Tag { tag: String, seq: JobSeq },
    /// A unique key held by a job that does not have it.
    StrayKey { key: String },
    /// A job does not hold its own unique key.
    MissingKey { seq: JobSeq },
    /// A unique key shared by two unfinished jobs.
    SharedKey { seq: JobSeq },
}

impl DerivedData {
    /// The table that is inconsistent.
    pub fn table(&self) -> &'static str {
        match self {
            Self::Counter { .. } => "counters",
            Self::Cause { .. } | Self::JobCause { .. } => "causes",
            Self::BatchCounter { .. } => "batch_counters",
            Self::IndexRow { .. } | Self::Ready { .. } => "ready",
            Self::Waiting { .. } => "waiting",
            Self::Blocked { .. } | Self::Link { .. } => "dependencies",
            Self::MissingUnblock { .. } | Self::StrayUnblock { .. } => "pending_unblocks",
            Self::Tag { .. } => "job_tags",
            Self::StrayKey { .. } | Self::MissingKey { .. } | Self::SharedKey { .. } => "unique_keys",
        }
    }
}
