//! Schedules: jobs that are enqueued repeatedly at given times.

use std::sync::Arc;

use crate::rows::tables::{runs, schedules};
use crate::rows::verbs::fire;
use crate::rows::views::upcoming;
use crate::{EnqueueResult, Pause, Result, Store, WriteError};
use domain::job::Job;
use domain::job::environment::Environment;
use domain::job::spec::JobSpec;
use domain::schedule::{LAST_RUNS, Policy, Run, Schedule, When, WhenError};
use domain::values::name::{JobId, ScheduleName};
use domain::values::timestamp::Timestamp;

impl dyn Store + '_ {
    pub fn add_schedule(
        &self,
        schedule: &NewSchedule,
        by: &str,
    ) -> Result<Schedule, WriteError<ScheduleRefusal>> {
        self.transact("add_schedule", |tx| schedules::add(tx, schedule, by))
    }

    /// Changes a schedule if it is still as the caller has seen it; `None` if it does not exist.
    pub fn edit_schedule(
        &self,
        seen: &Schedule,
        edit: &ScheduleEdit,
        by: &str,
    ) -> Result<Option<Schedule>, WriteError<ScheduleRefusal>> {
        self.transact("edit_schedule", |tx| schedules::edit(tx, seen, edit, by))
    }

    /// All schedules by name, each with its latest run.
    pub fn schedules(&self) -> Result<Vec<(Schedule, Option<Run>)>> {
        self.view(runs::all_with_latest)
    }

    /// All schedules by name, each with its latest runs, the newest first.
    pub fn schedules_with_runs(&self, limit: usize) -> Result<Vec<(Schedule, Vec<Run>)>> {
        self.view(|tx| runs::all_with_runs(tx, limit))
    }

    /// A schedule with its latest runs, the newest first.
    pub fn schedule(&self, name: &ScheduleName) -> Result<Option<(Schedule, Vec<Run>)>> {
        self.view(|tx| runs::find_with_latest(tx, name, LAST_RUNS))
    }

    /// Pauses a schedule, or resumes it when `pause` is `None`; `false` if it does not exist.
    pub fn set_schedule_pause(&self, name: &ScheduleName, pause: Option<&Pause>, by: &str) -> Result<bool> {
        self.transact("set_schedule_pause", |tx| schedules::change_pause(tx, name, pause, by))
    }

    /// Deletes a schedule; its jobs stay. `false` if it does not exist.
    pub fn remove_schedule(&self, name: &ScheduleName, by: &str) -> Result<bool> {
        self.transact("remove_schedule", |tx| schedules::remove(tx, name, by))
    }

    /// Enqueues a schedule's job now, in addition to its times and regardless of unfinished runs.
    pub fn run_schedule(&self, name: &ScheduleName, by: &str) -> Result<Option<EnqueueResult>> {
        self.transact("run_schedule", |tx| fire::run(tx, name, by))
    }

    /// The waiting jobs and the schedules that come next, at most this many of each.
    pub fn upcoming(&self, limit: usize) -> Result<Upcoming> {
        self.view(|tx| upcoming::upcoming(tx, limit))
    }

    /// Enqueues the jobs of due schedules, as many as one transaction should. A concurrent caller finds nothing due.
    pub fn fire_due(&self) -> Result<FireResult> {
        self.transact("fire", fire::fire_due)
    }
}

/// A schedule to add, with every check done that does not need the current time.
#[derive(Clone, Debug)]
pub struct NewSchedule {
    pub name: ScheduleName,
    pub when: When,
    /// Its `cwd` is absolute; it has no id and no dependencies.
    pub job: JobSpec,
    /// The environment of the caller that adds it; without one, jobs get the worker's.
    pub environment: Option<Arc<Environment>>,
    pub policy: Policy,
}

/// What happens next, each list in the order of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Upcoming {
    /// Jobs that wait for a retry or for their start time.
    pub jobs: Vec<Job>,
    pub schedules: Vec<Schedule>,
}

/// A changed schedule.
#[derive(Clone, Debug)]
pub struct ScheduleEdit {
    pub when: When,
    /// Its `cwd` is absolute; it has no id and no dependencies.
    pub job: JobSpec,
    pub policy: Policy,
    /// Jobs get the worker's environment from now on.
    pub drops_environment: bool,
}

/// Why a schedule was not added or changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleRefusal {
    #[error("there is already a schedule `{0}`")]
    NameTaken(ScheduleName),
    #[error("schedule `{0}` was changed in the meantime")]
    Changed(ScheduleName),
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
