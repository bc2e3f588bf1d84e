//! Every call of the program in a trial: what was wanted, when, and what was answered.

use std::process::Output;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::plan::{JobPlan, Wish};

#[derive(Clone, Debug)]
pub struct Call {
    pub wish: Wish,
    /// On the clock of the ledger.
    pub began: Duration,
    pub ended: Duration,
    pub answer: Answer,
    /// The ids that were printed: each of them is an acknowledgement.
    pub printed: Vec<String>,
    /// What it said on standard error.
    pub said: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Ok,
    /// Exit codes 2 to 5, which all say that nothing was changed.
    Failed(i32),
    /// Anything else: it may have been done or not.
    Unknown,
}

impl Answer {
    /// What the exit code means; a process that was killed has none.
    pub fn of(code: Option<i32>) -> Self {
        match code {
            Some(0) => Self::Ok,
            Some(code @ 2..=5) => Self::Failed(code),
            Some(_) | None => Self::Unknown,
        }
    }
}

/// Exit code of a call that found something in its way.
pub const CONFLICT: i32 = 4;

impl Call {
    pub fn new(wish: Wish, span: (Duration, Duration), output: &Output) -> Self {
        let printed = String::from_utf8_lossy(&output.stdout);
        Self {
            wish,
            began: span.0,
            ended: span.1,
            answer: Answer::of(output.status.code()),
            printed: printed.lines().map(str::to_owned).collect(),
            said: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        }
    }

    /// The jobs that it wanted stored.
    pub fn jobs(&self) -> &[JobPlan] {
        match &self.wish {
            Wish::Enqueue(jobs) => jobs,
            Wish::Cancel(_) | Wish::Retry(_) => &[],
        }
    }

    /// Whether somebody who saw it knows that this job is stored: its id was printed, or another call found it there.
    pub fn acknowledges(&self, id: &str) -> bool {
        let wanted = self.jobs().iter().find(|job| job.id == id);
        // In the place of one with a key another may have been found, and then that one's id was printed.
        let stands_for_itself = wanted.is_some_and(|job| job.unique_key.is_none());
        let all_are_there = match self.answer {
            Answer::Ok => true,
            Answer::Failed(code) => code == CONFLICT && self.jobs().len() == 1,
            Answer::Unknown => false,
        };
        wanted.is_some()
            && (all_are_there && stands_for_itself || self.printed.iter().any(|printed| printed == id))
    }

    /// Whether it may have stored this job.
    pub fn may_have_stored(&self, id: &str) -> bool {
        let nothing_changed = matches!(self.answer, Answer::Failed(_));
        self.jobs().iter().any(|job| job.id == id) && !nothing_changed
    }

    /// Whether somebody who saw it knows that the job is cancelled. One that ran and has not ended within the patience of
    /// `cancel` is only marked.
    pub fn has_cancelled(&self, id: &str) -> bool {
        let jobs: serde_json::Value = serde_json::from_str(&self.printed.join("\n")).unwrap_or_default();
        self.cancels(id) && self.answer == Answer::Ok && jobs[0]["state"] == "cancelled"
    }

    pub fn cancels(&self, id: &str) -> bool {
        matches!(&self.wish, Wish::Cancel(wanted) if wanted == id)
    }

    pub fn retries(&self, id: &str) -> bool {
        matches!(&self.wish, Wish::Retry(wanted) if wanted == id)
    }

    pub fn concerns(&self, id: &str) -> bool {
        self.cancels(id) || self.retries(id) || self.jobs().iter().any(|job| job.id == id)
    }
}

impl std::fmt::Display for Call {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.wish {
            Wish::Enqueue(jobs) => write!(out, "enqueue of {} jobs", jobs.len()),
            Wish::Cancel(_) => out.write_str("cancel"),
            Wish::Retry(_) => out.write_str("retry"),
        }?;
        write!(out, ", answered after {:?}: {:?}", self.ended.saturating_sub(self.began), self.answer)?;
        if self.said.is_empty() { Ok(()) } else { write!(out, " ({})", self.said) }
    }
}

/// All calls of a trial, in the order in which they were answered.
#[derive(Debug, Default)]
pub struct CallLog(Mutex<Vec<Call>>);

impl CallLog {
    pub fn add(&self, call: Call) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(call);
    }

    pub fn all(&self) -> Vec<Call> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
