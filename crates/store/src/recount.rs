//! What a store keeps beside its jobs and could make anew from them, and where it does not agree with them.

/// Something that the jobs contradict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contradiction {
    pub derived: Derived,
    /// What is wrong, for a person.
    pub said: String,
}

/// Which of these it is, by the numbers that rows have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Derived {
    /// How many jobs of a queue are in each state.
    Counter { queue_id: i64 },
    /// The same of a batch, and whether it is finished.
    BatchCounter { batch_id: i64 },
    /// Where a job waits for its next attempt.
    Place { seq: i64 },
    /// A place in the line of ready jobs.
    Ready { queue_id: i64, priority: i64, due_at: i64, seq: i64 },
    /// A place in the line of jobs whose time has not come.
    Waiting { due_at: i64, seq: i64 },
    /// For how many others a job waits.
    Blocked { seq: i64 },
    /// A finished job still has dependents to notify.
    End { parent_seq: i64 },
    /// A note of that, of no finished job.
    Note { parent_seq: i64 },
    /// That one job depends on another.
    Link { parent_seq: i64, child_seq: i64 },
    /// That a job is found by a tag.
    Tag { tag: String, seq: i64 },
    /// That some job holds a unique key.
    Key { key: String },
    /// That this job holds its unique key.
    Held { seq: i64 },
    /// That only one unfinished job has a unique key.
    Shared { seq: i64 },
}

impl Derived {
    /// The table that is wrong.
    pub fn table(&self) -> &'static str {
        match self {
            Self::Counter { .. } => "counters",
            Self::BatchCounter { .. } => "batch_counters",
            Self::Place { .. } | Self::Ready { .. } => "ready",
            Self::Waiting { .. } => "waiting",
            Self::Blocked { .. } | Self::Link { .. } => "dependencies",
            Self::End { .. } | Self::Note { .. } => "releases",
            Self::Tag { .. } => "job_tags",
            Self::Key { .. } | Self::Held { .. } | Self::Shared { .. } => "unique_keys",
        }
    }
}
