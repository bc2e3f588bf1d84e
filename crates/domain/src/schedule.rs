//! A schedule: a job that is enqueued repeatedly, and the times at which that happens.
//!
//! `cron` parses lines of five or six fields, `when` computes the times at which a schedule fires, `fire` decides which
//! runs to enqueue when a schedule is due, and `policy` has the options for missed and overlapping runs.

mod cron;
mod error;
mod fire;
mod in_words;
mod policy;
mod when;

use std::fmt;

use serde::Serialize;

pub use cron::{CronError, CronExpression, NICKNAMES};
pub use error::{ScheduleError, check_job, unknown_zone};
pub use fire::{Firing, MISSED_AFTER, fire};
pub use policy::{
    DEFAULT_MISSED_LIMIT, MAX_MISSED_LIMIT, MAX_UNFINISHED_RUNS, OnMissed, OnOverlap, Policy, PolicyError,
};
pub use when::{MIN_PERIOD, When, WhenError};

use super::explain::wait_reason::Pause;
use super::job::life::StateName;
use super::job::spec::JobSpec;
use super::values::name::{JobId, ScheduleName};
use super::values::timestamp::Timestamp;

/// How many of the next runs are shown.
pub const NEXT_RUNS: usize = 5;
/// How many of the last runs are shown, and searched for one that is waiting.
pub const LAST_RUNS: usize = 10;

/// A schedule as it is stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    pub name: ScheduleName,
    pub when: When,
    pub job: JobSpec,
    pub policy: Policy,
    pub created_at: Timestamp,
    pub created_by: String,
    /// The latest occurrence that was handled, whether or not it led to a run.
    pub last_at: Option<Timestamp>,
    /// The next occurrence; `None` if there is none left.
    pub next_at: Option<Timestamp>,
    /// The latest occurrence that was missed because no worker ran in time.
    pub missed_at: Option<Timestamp>,
    /// The latest occurrence that was skipped because an earlier run was unfinished, or too many were.
    pub skipped_at: Option<Timestamp>,
    /// When and why it was paused.
    pub paused: Option<(Timestamp, Pause)>,
}

/// A job that a schedule has enqueued.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Run {
    pub id: JobId,
    pub state: StateName,
    /// `None` if a user started it with `schedule run`.
    pub scheduled_for: Option<Timestamp>,
    pub created_at: Timestamp,
    pub finished_at: Option<Timestamp>,
}

impl Schedule {
    /// The first occurrence after this time.
    pub fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        self.when.next_after(self.created_at, after)
    }

    /// Whether its latest occurrence was skipped.
    pub fn skipped_its_latest(&self) -> bool {
        self.skipped_at.is_some() && self.skipped_at >= self.last_at
    }

    /// The next occurrences; none while it is paused.
    pub fn next_runs(&self, count: usize) -> Vec<Timestamp> {
        let first = self.next_at.filter(|_| self.paused.is_none());
        std::iter::successors(first, |at| self.next_after(*at)).take(count).collect()
    }

    /// The next occurrence if the schedule is resumed now. Occurrences during the pause are not made up for, except the
    /// only occurrence of a schedule that fires once.
    pub fn resumed_at(&self, now: Timestamp) -> Option<Timestamp> {
        match &self.when {
            When::At(at) => self.last_at.is_none_or(|last| last < *at).then_some(*at),
            // An occurrence that was handled does not come again, even if the clock was set back.
            When::Cron { .. } | When::Every(_) => {
                self.next_after(self.last_at.map_or(now, |last| last.max(now)))
            }
        }
    }

    /// The id of the job for this occurrence: `attempt` 1 is the first choice, higher ones are for when it is taken.
    pub fn job_id(&self, at: Timestamp, attempt: u32) -> JobId {
        let id = match attempt {
            0 | 1 => format!("{}:{}", self.name, CompactTime(at)),
            more => format!("{}:{}-{more}", self.name, CompactTime(at)),
        };
        id.parse().expect("a schedule's name and digits form a valid id")
    }
}

/// A time in few characters: `20261116T030000Z`.
struct CompactTime(Timestamp);

impl fmt::Display for CompactTime {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let full = self.0.to_string();
        let seconds = full.split('.').next().unwrap_or_default();
        seconds.chars().filter(char::is_ascii_alphanumeric).try_for_each(|c| write!(out, "{c}"))?;
        out.write_str("Z")
    }
}

#[cfg(test)]
mod tests;
