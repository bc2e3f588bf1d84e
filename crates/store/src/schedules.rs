//! Schedules: jobs that are enqueued repeatedly at given times.

use std::sync::Arc;

use super::{EnqueueResult, Pause, StoreError};
use domain::job::environment::Environment;
use domain::job::request::JobRequest;
use domain::schedule::{Policy, Run, Schedule, When, WhenError};
use domain::values::name::{JobId, ScheduleName};
use domain::values::timestamp::Timestamp;

pub trait Schedules {
    fn add_schedule(
        &self,
        schedule: &NewSchedule,
        by: &str,
    ) -> Result<Result<Schedule, ScheduleRefusal>, StoreError>;
    /// All schedules by name, each with its latest run.
    fn schedules(&self) -> Result<Vec<(Schedule, Option<Run>)>, StoreError>;
    /// A schedule with its latest runs, the newest first.
    fn schedule(&self, name: &ScheduleName) -> Result<Option<(Schedule, Vec<Run>)>, StoreError>;
    /// Pauses a schedule, or resumes it when `pause` is `None`; `false` if it does not exist.
    fn set_schedule_pause(
        &self,
        name: &ScheduleName,
        pause: Option<&Pause>,
        by: &str,
    ) -> Result<bool, StoreError>;
    /// Deletes a schedule; its jobs stay. `false` if it does not exist.
    fn remove_schedule(&self, name: &ScheduleName, by: &str) -> Result<bool, StoreError>;
    /// Enqueues a schedule's job now, in addition to its times and regardless of unfinished runs.
    fn run_schedule(&self, name: &ScheduleName, by: &str) -> Result<Option<EnqueueResult>, StoreError>;
    /// Enqueues the jobs of due schedules, as many as one transaction should. A concurrent caller finds nothing due.
    fn fire_due(&self) -> Result<FireResult, StoreError>;
}

/// A schedule to add, with every check done that does not need the current time.
#[derive(Clone, Debug)]
pub struct NewSchedule {
    pub name: ScheduleName,
    pub when: When,
    /// Its `cwd` is absolute; it has no id and no dependencies.
    pub job: JobRequest,
    /// The environment of the caller that adds it; without one, jobs get the worker's.
    pub environment: Option<Arc<Environment>>,
    pub policy: Policy,
}

/// Why a schedule was not added.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleRefusal {
    #[error("there is already a schedule `{0}`")]
    NameTaken(ScheduleName),
    #[error(transparent)]
    When(#[from] WhenError),
}

/// The result of firing due schedules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FireResult {
    pub jobs: Vec<JobId>,
    /// Schedules that were paused because their row is malformed, and why.
    pub held: Vec<(ScheduleName, String)>,
    /// When the next schedule is due; it may be overdue already.
    pub next_at: Option<Timestamp>,
}
