//! Data that a store derives from its jobs, and where it disagrees with them.

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
    Counter { queue_id: i64 },
    /// The same for a batch, and whether it is finished.
    BatchCounter { batch_id: i64 },
    /// The `ready` or `waiting` row of a job.
    IndexRow { seq: i64 },
    /// A row of `ready`.
    Ready { queue_id: i64, priority: i64, due_at: i64, seq: i64 },
    /// A row of `waiting`.
    Waiting { due_at: i64, seq: i64 },
    /// The number of jobs that a job waits for.
    Blocked { seq: i64 },
    /// A finished job still has dependents to unblock, but no pending unblock is recorded.
    MissingUnblock { parent_seq: i64 },
    /// A pending unblock of a job that is missing or unfinished.
    StrayUnblock { parent_seq: i64 },
    /// The link between a job and its dependency.
    Link { parent_seq: i64, child_seq: i64 },
    /// A tag in the tag index.
    Tag { tag: String, seq: i64 },
    /// A unique key held by a job that does not have it.
    StrayKey { key: String },
    /// A job does not hold its own unique key.
    MissingKey { seq: i64 },
    /// A unique key shared by two unfinished jobs.
    SharedKey { seq: i64 },
}

impl DerivedData {
    /// The table that is inconsistent.
    pub fn table(&self) -> &'static str {
        match self {
            Self::Counter { .. } => "counters",
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
