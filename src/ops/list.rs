//! Lists in an order of the reader's choice.

use std::cmp::{Ordering, Reverse};
use std::str::FromStr;

use crate::domain::job::Job;
use crate::domain::nearest::nearest;
use crate::domain::timestamp::Timestamp;
use crate::store::{After, JobFilter, Page, Store, StoreError};

/// How many jobs are read at once.
const CHUNK: usize = 1_000;

/// What to sort by, and in which direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sort {
    key: SortKey,
    descending: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SortKey {
    Created,
    Updated,
    Priority,
    RunAt,
    Started,
    Finished,
    Attempts,
    Failures,
    Queue,
    State,
    Id,
    Command,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SortError {
    #[error("jobs cannot be sorted by `{typed}`; did you mean `{nearest}`?")]
    Near { typed: String, nearest: &'static str },
    #[error("jobs cannot be sorted by `{typed}`; they can by {}", SortKey::ALL.map(SortKey::name).join(", "))]
    Unknown { typed: String },
}

/// A value to sort by; numbers and times are numbers.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Value<'a> {
    Number(i64),
    Text(&'a str),
}

impl SortKey {
    const ALL: [Self; 12] = [
        Self::Created,
        Self::Updated,
        Self::Priority,
        Self::RunAt,
        Self::Started,
        Self::Finished,
        Self::Attempts,
        Self::Failures,
        Self::Queue,
        Self::State,
        Self::Id,
        Self::Command,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Updated => "updated",
            Self::Priority => "priority",
            Self::RunAt => "run_at",
            Self::Started => "started",
            Self::Finished => "finished",
            Self::Attempts => "attempts",
            Self::Failures => "failures",
            Self::Queue => "queue",
            Self::State => "state",
            Self::Id => "id",
            Self::Command => "command",
        }
    }

    /// `None` where the job has nothing of the kind.
    fn value(self, job: &Job) -> Option<Value<'_>> {
        let moment = |at: Timestamp| Value::Number(at.as_millis());
        match self {
            Self::Created => Some(Value::Number(i64::try_from(job.number).unwrap_or(i64::MAX))),
            Self::Updated => Some(moment(job.updated_at)),
            Self::Priority => Some(Value::Number(job.priority.into())),
            Self::RunAt => job.life.run_at.map(moment),
            Self::Started => job.latest.started_at.map(moment),
            Self::Finished => job.life.state.finished_at().map(moment),
            Self::Attempts => Some(Value::Number(job.life.attempts.into())),
            Self::Failures => Some(Value::Number(job.life.failures.into())),
            Self::Queue => Some(Value::Text(job.queue.as_str())),
            Self::State => Some(Value::Text(job.life.state.name().name())),
            Self::Id => Some(Value::Text(job.id.as_str())),
            Self::Command => Some(Value::Text(&job.command)),
        }
    }
}

/// `priority`, `-updated`, and the names of JSON too: `created_at`.
impl FromStr for Sort {
    type Err = SortError;

    fn from_str(text: &str) -> Result<Self, SortError> {
        let (typed, descending) = text.strip_prefix('-').map_or((text, false), |name| (name, true));
        let named = |key: &SortKey| key.name() == typed || typed.strip_suffix("_at") == Some(key.name());
        if let Some(key) = SortKey::ALL.into_iter().find(|key| named(key)) {
            return Ok(Self { key, descending });
        }
        let typed = typed.to_owned();
        Err(match nearest(&typed, SortKey::ALL.map(SortKey::name)) {
            Some(nearest) => SortError::Near { typed, nearest },
            None => SortError::Unknown { typed },
        })
    }
}

impl Sort {
    /// Those that have no such value come last in both directions; among equals the newest comes first.
    fn compare(self, a: &Job, b: &Job) -> Ordering {
        let order = match (self.key.value(a), self.key.value(b)) {
            (Some(a), Some(b)) if self.descending => b.cmp(&a),
            (Some(a), Some(b)) => a.cmp(&b),
            (a, b) => b.is_some().cmp(&a.is_some()),
        };
        order.then_with(|| Reverse(a.number).cmp(&Reverse(b.number)))
    }
}

/// The first of all jobs that a filter lets through, and whether there are more. All are looked at, few are kept.
pub fn sorted(
    store: &dyn Store,
    filter: &JobFilter,
    sort: Sort,
    limit: usize,
) -> Result<(Vec<Job>, bool), StoreError> {
    let mut first: Vec<Job> = Vec::new();
    let mut more = false;
    let mut after = None;
    loop {
        let page = store.list(filter, &Page { limit: CHUNK, after })?;
        let Some(last) = page.last() else {
            return Ok((first, more));
        };
        // By its place: that job may be gone before the next page is read.
        after = Some(After::from(last));
        first.extend(page);
        first.sort_by(|a, b| sort.compare(a, b));
        more |= first.len() > limit;
        first.truncate(limit);
    }
}
