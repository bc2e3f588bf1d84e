//! The calls of the program in a trial: the request, its time and its answer.

use std::process::Output;
use std::time::Duration;

use super::plan::{JobPlan, Request};

#[derive(Clone, Debug)]
pub struct Call {
    pub request: Request,
    /// On the ledger's clock.
    pub began: Duration,
    pub ended: Duration,
    pub answer: Answer,
    /// The printed ids, each of which acknowledges a job.
    pub printed: Vec<String>,
    /// Its standard error.
    pub stderr: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Ok,
    /// Exit codes 2 to 5, which all mean that nothing was changed.
    Failed(i32),
    /// Anything else: the request may or may not have been carried out.
    Unknown,
}

impl Answer {
    /// The meaning of an exit code; a killed process has none.
    pub fn of(code: Option<i32>) -> Self {
        match code {
            Some(0) => Self::Ok,
            Some(code @ 2..=5) => Self::Failed(code),
            Some(_) | None => Self::Unknown,
        }
    }
}

/// The exit code for a conflict.
pub const CONFLICT: i32 = 4;

impl Call {
    pub fn new(request: Request, span: (Duration, Duration), output: &Output) -> Self {
        let printed = String::from_utf8_lossy(&output.stdout);
        Self {
            request,
            began: span.0,
            ended: span.1,
            answer: Answer::of(output.status.code()),
            printed: printed.lines().map(str::to_owned).collect(),
            stderr: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        }
    }

    /// The jobs that it asked to store.
    pub fn jobs(&self) -> &[JobPlan] {
        match &self.request {
            Request::Enqueue(jobs) => jobs,
            Request::Cancel(_) | Request::Retry(_) => &[],
        }
    }

    /// Whether this call proves to its caller that the job is stored: it printed the id, or reported that the id exists.
    pub fn acknowledges(&self, id: &str) -> bool {
        let wanted = self.jobs().iter().find(|job| job.id == id);
        // For a job with a unique key, the call may have found another job and printed that one's id.
        let has_no_key = wanted.is_some_and(|job| job.unique_key.is_none());
        let all_are_stored = match self.answer {
            Answer::Ok => true,
            Answer::Failed(code) => code == CONFLICT && self.jobs().len() == 1,
            Answer::Unknown => false,
        };
        wanted.is_some() && (all_are_stored && has_no_key || self.printed.iter().any(|printed| printed == id))
    }

    /// Whether it may have stored this job.
    pub fn may_have_stored(&self, id: &str) -> bool {
        let nothing_changed = matches!(self.answer, Answer::Failed(_));
        self.jobs().iter().any(|job| job.id == id) && !nothing_changed
    }

    /// Whether this call proves to its caller that the job is cancelled. A running job that did not end while `cancel` waited
    /// is only marked.
    pub fn has_cancelled(&self, id: &str) -> bool {
        let jobs: serde_json::Value = serde_json::from_str(&self.printed.join("\n")).unwrap_or_default();
        self.cancels(id) && self.answer == Answer::Ok && jobs[0]["state"] == "cancelled"
    }

    pub fn cancels(&self, id: &str) -> bool {
        matches!(&self.request, Request::Cancel(wanted) if wanted == id)
    }

    pub fn retries(&self, id: &str) -> bool {
        matches!(&self.request, Request::Retry(wanted) if wanted == id)
    }

    pub fn concerns(&self, id: &str) -> bool {
        self.cancels(id) || self.retries(id) || self.jobs().iter().any(|job| job.id == id)
    }
}

impl std::fmt::Display for Call {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.request {
            Request::Enqueue(jobs) => write!(out, "enqueue of {} jobs", jobs.len()),
            Request::Cancel(_) => out.write_str("cancel"),
            Request::Retry(_) => out.write_str("retry"),
        }?;
        write!(out, ", answered after {:?}: {:?}", self.ended.saturating_sub(self.began), self.answer)?;
        if self.stderr.is_empty() { Ok(()) } else { write!(out, " ({})", self.stderr) }
    }
}
