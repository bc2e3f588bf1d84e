//! Schedules: jobs that are enqueued when their time comes, again and again.

use std::sync::Arc;

use super::{Enqueued, Pause, StoreError};
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
    ) -> Result<Result<Schedule, ScheduleRefused>, StoreError>;
    /// All of them by name, each with its latest run.
    fn schedules(&self) -> Result<Vec<(Schedule, Option<Run>)>, StoreError>;
    /// A schedule with its latest runs, the newest first.
    fn schedule(&self, name: &ScheduleName) -> Result<Option<(Schedule, Vec<Run>)>, StoreError>;
    /// Holds a schedule back, or lets it go on when `pause` is `None`. `false`: there is no such schedule.
    fn hold_schedule(&self, name: &ScheduleName, pause: Option<&Pause>, by: &str)
    -> Result<bool, StoreError>;
    /// Forgets a schedule; its jobs stay. `false`: there is no such schedule.
    fn remove_schedule(&self, name: &ScheduleName, by: &str) -> Result<bool, StoreError>;
    /// Enqueues a schedule's job now, beside its times, whatever else of it runs.
    fn run_schedule(&self, name: &ScheduleName, by: &str) -> Result<Option<Enqueued>, StoreError>;
    /// Enqueues what is due, as far as one transaction should. Whoever comes second finds nothing due.
    fn fire_due(&self) -> Result<Fired, StoreError>;
}

/// A schedule that is about to be added: everything checked that can be without the time.
#[derive(Clone, Debug)]
pub struct NewSchedule {
    pub name: ScheduleName,
    pub when: When,
    /// Its `cwd` is absolute; it has no id and waits for nothing.
    pub job: JobRequest,
    /// Of whoever adds it; without one the worker's is taken.
    pub environment: Option<Arc<Environment>>,
    pub policy: Policy,
}

/// Why a schedule was not added.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleRefused {
    #[error("there is already a schedule `{0}`")]
    NameTaken(ScheduleName),
    #[error(transparent)]
    When(#[from] WhenError),
}

/// What came of a look at the schedules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fired {
    pub jobs: Vec<JobId>,
    /// Schedules that were held back because they cannot be understood, and why.
    pub held: Vec<(ScheduleName, String)>,
    /// When the next one is due; it may be due already.
    pub next_at: Option<Timestamp>,
}
