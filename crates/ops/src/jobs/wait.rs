//! Waiting until jobs are finished.
//!
//! Nothing here sleeps: [`Wait::poll`] says what has become of the jobs since the last look, and the caller decides
//! how long to wait before the next.

use std::collections::VecDeque;

use crate::OpError;
use domain::job::Job;
use domain::job::life::{State, StateName};
use domain::values::name::JobId;
use domain::values::timestamp::Timestamp;
use store::{Store, StoreError};

/// How many jobs one poll looks at, so that waiting for thousands costs no more than waiting for some.
const JOBS_PER_POLL: usize = 500;

/// Jobs that somebody waits for.
#[derive(Debug)]
pub struct Wait {
    unfinished: VecDeque<Unfinished>,
}

/// A job as it was when it was last looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfinished {
    pub id: JobId,
    /// `None` before the first look.
    pub state: Option<StateName>,
    /// Since when it runs, if it does.
    pub running_since: Option<Timestamp>,
}

/// Why a job is no longer waited for.
#[derive(Debug)]
pub enum Ended {
    /// It is completed, dead or cancelled.
    Finished(Box<Job>),
    /// There was no such job from the beginning.
    Unknown(JobId),
    /// Somebody removed it.
    Removed(JobId),
}

impl Wait {
    pub fn new(ids: impl IntoIterator<Item = JobId>) -> Self {
        let unseen = |id| Unfinished { id, state: None, running_since: None };
        Self { unfinished: ids.into_iter().map(unseen).collect() }
    }

    pub fn is_over(&self) -> bool {
        self.unfinished.is_empty()
    }

    pub fn unfinished(&self) -> impl ExactSizeIterator<Item = &Unfinished> {
        self.unfinished.iter()
    }

    /// Looks at every unfinished job.
    pub fn poll_all(&mut self, store: &dyn Store) -> Result<Vec<Ended>, StoreError> {
        let mut ended = Vec::new();
        let mut left = self.unfinished.len();
        while left > 0 {
            let count = JOBS_PER_POLL.min(left);
            ended.extend(self.look_at_next(count, store)?);
            left -= count;
        }
        Ok(ended)
    }

    /// Looks at some of the unfinished jobs; where there are many, they take turns.
    pub fn poll(&mut self, store: &dyn Store) -> Result<Vec<Ended>, StoreError> {
        self.look_at_next(JOBS_PER_POLL.min(self.unfinished.len()), store)
    }

    fn look_at_next(&mut self, count: usize, store: &dyn Store) -> Result<Vec<Ended>, StoreError> {
        // All are found before any is taken out: an error must not lose one.
        let found = self.unfinished.range(..count).map(|last| store.find(&last.id));
        let found: Vec<Option<Job>> = found.collect::<Result<_, _>>()?;
        let looked_at: Vec<Unfinished> = self.unfinished.drain(..count).collect();
        let mut ended = Vec::new();
        for (last, found) in looked_at.into_iter().zip(found) {
            match look(last, found) {
                Ok(unfinished) => self.unfinished.push_back(unfinished),
                Err(end) => ended.push(end),
            }
        }
        Ok(ended)
    }
}

fn look(last: Unfinished, found: Option<Job>) -> Result<Unfinished, Ended> {
    let Some(job) = found else {
        return Err(if last.state.is_none() { Ended::Unknown(last.id) } else { Ended::Removed(last.id) });
    };
    let running_since = match &job.life.state {
        State::Processing(lease) => Some(lease.started_at),
        State::Pending { .. } | State::Failed => None,
        State::Completed { .. } | State::Dead { .. } | State::Cancelled { .. } => {
            return Err(Ended::Finished(Box::new(job)));
        }
    };
    Ok(Unfinished { id: last.id, state: Some(job.life.state.name()), running_since })
}

impl Ended {
    /// The job if it completed; else why that is not what one hoped for.
    pub fn verdict(&self) -> Result<&Job, OpError> {
        match self {
            Self::Finished(job) => succeeded(job),
            Self::Unknown(id) => Err(OpError::NoSuchJob(id.clone())),
            Self::Removed(id) => Err(OpError::Removed(id.clone())),
        }
    }
}

fn succeeded(job: &Job) -> Result<&Job, OpError> {
    let (reason, error) = match &job.life.state {
        State::Dead { reason, .. } => (reason.name(), job.latest.error.as_ref()),
        // The last attempt may have said something, but that is not why.
        State::Cancelled { reason, .. } => (reason.name(), None),
        State::Pending { .. } | State::Processing(_) | State::Completed { .. } | State::Failed => {
            return Ok(job);
        }
    };
    Err(OpError::Unsuccessful {
        id: job.id.clone(),
        state: job.life.state.name(),
        why: match error {
            Some(error) => format!("{}: {error}", reason.replace('_', " ")),
            None => reason.replace('_', " "),
        },
    })
}
