//! A schedule: a job that is enqueued again and again, and when.
//!
//! `cron` reads lines of five or six fields, `when` says at which moments a schedule fires, `fire` decides what is to be
//! enqueued when a moment has come, `policy` is what somebody can say about that.

mod cron;
mod error;
mod fire;
mod policy;
mod when;

use std::fmt;

pub use cron::{CronError, CronLine, NICKNAMES};
pub use error::{ScheduleError, check_job, unknown_zone};
pub use fire::{Firing, GRACE, fire};
pub use policy::{
    DEFAULT_MISSED_LIMIT, MAX_MISSED_LIMIT, MAX_UNFINISHED_RUNS, OnMissed, OnOverlap, Policy, PolicyError,
};
pub use when::{MIN_PERIOD, When, WhenError};

use super::job::life::StateName;
use super::job::request::JobRequest;
use super::values::name::{JobId, ScheduleName};
use super::values::timestamp::Timestamp;

/// How many of the next runs are told.
pub const NEXT_RUNS: usize = 5;
/// How many of the last runs are told, and looked at for one that waits.
pub const LAST_RUNS: usize = 10;

/// A schedule as it is stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    pub name: ScheduleName,
    pub when: When,
    pub job: JobRequest,
    pub policy: Policy,
    pub created_at: Timestamp,
    pub created_by: String,
    /// The latest occurrence that was dealt with, whatever came of it.
    pub last_at: Option<Timestamp>,
    /// The next occurrence; `None` when there is none any more.
    pub next_at: Option<Timestamp>,
    /// The latest occurrence for which no worker was there in time.
    pub missed_at: Option<Timestamp>,
    /// The latest occurrence that was left out because an earlier run was unfinished, or too many were.
    pub skipped_at: Option<Timestamp>,
    pub held: Option<Held>,
}

/// Since when a schedule is held back, by whom, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    pub since: Timestamp,
    pub by: String,
    pub reason: Option<String>,
}

/// A job that a schedule has made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    pub id: JobId,
    pub state: StateName,
    /// `None`: somebody asked for it beside its times.
    pub scheduled_for: Option<Timestamp>,
    pub created_at: Timestamp,
    pub finished_at: Option<Timestamp>,
}

impl Schedule {
    /// The first occurrence after this moment.
    pub fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        self.when.next_after(self.created_at, after)
    }

    /// Whether its latest occurrence was left out.
    pub fn skipped_its_latest(&self) -> bool {
        self.skipped_at.is_some() && self.skipped_at >= self.last_at
    }

    /// When it will fire, as far as can be told: not at all while it is paused.
    pub fn next_runs(&self, count: usize) -> Vec<Timestamp> {
        let first = self.next_at.filter(|_| self.held.is_none());
        std::iter::successors(first, |at| self.next_after(*at)).take(count).collect()
    }

    /// When it fires next if it is let go now. What came while it was held back is not made up for; but the only moment
    /// of a schedule that fires once is not forgotten.
    pub fn resumed_at(&self, now: Timestamp) -> Option<Timestamp> {
        match &self.when {
            When::At(at) => self.last_at.is_none().then_some(*at),
            // Never again what was dealt with, even if the clock was set back.
            When::Cron { .. } | When::Every(_) => {
                self.next_after(self.last_at.map_or(now, |last| last.max(now)))
            }
        }
    }

    /// The id of the job for this moment; the first choice is `attempt` 1, for when it is taken the next ones.
    pub fn job_id(&self, at: Timestamp, attempt: u32) -> JobId {
        let id = match attempt {
            0 | 1 => format!("{}:{}", self.name, Compact(at)),
            more => format!("{}:{}-{more}", self.name, Compact(at)),
        };
        id.parse().expect("a schedule's name and digits make an id")
    }
}

/// A moment in few characters: `20261116T030000Z`.
struct Compact(Timestamp);

impl fmt::Display for Compact {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = self.0.to_string();
        let seconds = whole.split('.').next().unwrap_or_default();
        seconds.chars().filter(char::is_ascii_alphanumeric).try_for_each(|c| write!(out, "{c}"))?;
        out.write_str("Z")
    }
}

#[cfg(test)]
mod tests;
