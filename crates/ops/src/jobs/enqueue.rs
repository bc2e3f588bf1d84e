//! Resolving job requests and storing the jobs.

pub mod document;
pub mod each;
pub mod lines;
mod repeat;

use std::io::ErrorKind;

use crate::OpError;
use domain::job::NewJob;
pub use domain::job::spec::Caller;
use domain::job::spec::{JobSpec, Origin, check_first_word};
use domain::settings::Settings;
use domain::values::name::{JobId, JobIdSequence};
use domain::values::timestamp::Timestamp;
use store::settings::in_force;
use store::{EnqueueError, EnqueueResult, RefusedJob, Store, StoreError};

/// Enqueues for one caller.
#[derive(Debug)]
pub struct Enqueuer<'s> {
    store: &'s dyn Store,
    origin: Origin,
    ids: JobIdSequence,
    now: Timestamp,
    /// The working directory that was last found to exist: many jobs name the same.
    checked_cwd: Option<String>,
    /// The first working directory that does not exist, of a job that starts later.
    missing_cwd: Option<OpError>,
}

impl<'s> Enqueuer<'s> {
    pub fn new(store: &'s dyn Store, caller: Caller) -> Result<Self, OpError> {
        let origin = Origin { settings: in_force(store)?, caller };
        let (ids, now) = (JobIdSequence::default(), store.now()?);
        Ok(Self { store, origin, ids, now, checked_cwd: None, missing_cwd: None })
    }

    pub fn store(&self) -> &'s dyn Store {
        self.store
    }

    /// The settings as they were read for these jobs.
    pub fn settings(&self) -> &Settings {
        &self.origin.settings
    }

    pub fn refuses_taken_ids(&self) -> bool {
        !self.origin.caller.if_absent
    }

    pub fn resolve(&mut self, request: JobSpec) -> Result<NewJob, OpError> {
        let (ids, now) = (&mut self.ids, self.now);
        request.command.as_deref().map_or(Ok(()), check_first_word)?;
        // Another machine may have the directory.
        let names_folder = request.cwd.is_some() && !self.origin.caller.runs_elsewhere;
        let starts_later = starts_later(&request, now);
        let job = request.resolve(&self.origin, || ids.next(now, fastrand::u64(..)))?;
        if names_folder && job.cwd != self.checked_cwd {
            match job.cwd.as_deref().map_or(Ok(()), check_folder) {
                Err(missing) if starts_later => {
                    self.missing_cwd.get_or_insert(missing);
                }
                checked => {
                    checked?;
                    self.checked_cwd.clone_from(&job.cwd);
                }
            }
        }
        Ok(job)
    }

    /// The problem with the first working directory that a job needs later and that does not exist yet.
    pub fn missing_cwd(&self) -> Option<&OpError> {
        self.missing_cwd.as_ref()
    }

    /// Reads the clock. Generated ids contain the time of the last call.
    pub fn tick(&mut self) -> Result<(), OpError> {
        self.now = self.store.now()?;
        Ok(())
    }

    /// Stores all of these jobs, or none.
    pub fn enqueue(&mut self, requests: Vec<JobSpec>) -> Result<Vec<EnqueueResult>, OpError> {
        let jobs: Result<Vec<NewJob>, OpError> =
            requests.into_iter().map(|request| self.resolve(request)).collect();
        let jobs = jobs?;
        repeat::enqueue(self.store, &jobs).map_err(|error| with_ids(error, &jobs))
    }
}

/// Whether its directory may be created before it starts: by the jobs that it depends on, or before its time comes.
fn starts_later(request: &JobSpec, now: Timestamp) -> bool {
    let is_delayed = request.delay.is_some_and(|delay| !delay.is_zero());
    is_delayed || request.run_at.is_some_and(|at| at > now) || !request.depends_on.is_empty()
}

/// Refuses a working directory that does not exist on this machine. One that cannot be examined may exist.
pub fn check_folder(cwd: &str) -> Result<(), OpError> {
    let is_file = match std::fs::metadata(cwd) {
        Ok(meta) if meta.is_dir() => return Ok(()),
        Ok(_) => true,
        Err(error) if error.kind() == ErrorKind::NotFound => false,
        Err(error) if error.kind() == ErrorKind::NotADirectory => true,
        Err(_) => return Ok(()),
    };
    Err(OpError::UnusableFolder { cwd: cwd.to_owned(), is_file })
}

/// Adds the ids, including the generated ones, to an error with unknown outcome: the caller needs them to check again.
pub(crate) fn with_ids(error: EnqueueError, jobs: &[NewJob]) -> OpError {
    match error {
        EnqueueError::Store(StoreError::OutcomeUnknown { source }) => {
            let ids = jobs.iter().map(|job| job.id.clone()).collect();
            OpError::Unacknowledged { ids, witness: witness(jobs), source }
        }
        EnqueueError::Store(_) | EnqueueError::Refused(_) => error.into(),
    }
}

/// A job whose existence proves that the commit happened. All jobs are stored in one commit, so any of them would do, except
/// one that may have existed before or whose unique key may have matched another job.
fn witness(jobs: &[NewJob]) -> Option<JobId> {
    let is_new = |job: &&NewJob| !job.if_absent && job.unique_key.is_none();
    jobs.iter().find(is_new).map(|job| job.id.clone())
}

impl From<RefusedJob> for OpError {
    fn from(refused: RefusedJob) -> Self {
        Self::Refused(refused.reason)
    }
}
