//! Schedules: adding, showing, pausing, removing and running them.

pub mod json;

use super::OpError;
use super::error::Named;
use super::jobs::enqueue::Caller;
use domain::job::spec::{JobSpec, Origin, check_first_word};
use domain::schedule::{Policy, Run, Schedule, ScheduleError, When, check_job, unknown_zone};
use domain::values::name::{JobIdSequence, ScheduleName};
use domain::values::timestamp::Timestamp;
use store::settings::in_force;
use store::{EnqueueResult, NewSchedule, Notice, Pause, ScheduleRefusal, Store, StoreError};
use sys::zone;

/// A new schedule: the job and when to enqueue it.
#[derive(Clone, Debug)]
pub struct ScheduleRequest {
    pub name: ScheduleName,
    pub when: When,
    pub policy: Policy,
    pub job: JobSpec,
}

/// Parses a cron line in the named time zone, or in this machine's zone.
pub fn cron(line: &str, zone_name: Option<&str>) -> Result<When, OpError> {
    let zone = match zone_name {
        Some(name) => zone::find(name).ok_or_else(|| unknown_zone(name, &zone::names())),
        None => Ok(zone::of_machine().unwrap_or(jiff::tz::TimeZone::UTC)),
    };
    Ok(When::cron(line, zone?).map_err(ScheduleError::from)?)
}

/// Adds a schedule and wakes the workers, because it may be due next.
pub fn add(
    store: &dyn Store,
    request: ScheduleRequest,
    caller: Caller,
    by: &str,
) -> Result<Schedule, OpError> {
    let ScheduleRequest { name, when, policy, mut job } = request;
    check_job(&job, policy)?;
    job.command.as_deref().map_or(Ok(()), check_first_word)?;
    let origin = Origin { settings: in_force(store)?, caller };
    // Report an invalid job now instead of at every run.
    let checked = job.clone().resolve(&origin, || JobIdSequence::default().next(Timestamp::EPOCH, 0))?;
    job.cwd = checked.cwd;
    let new = NewSchedule { name, when, job, environment: origin.caller.environment, policy };
    let schedule = store.add_schedule(&new, by)?;
    store.announce(Notice::Orders)?;
    Ok(schedule)
}

impl From<ScheduleRefusal> for OpError {
    fn from(refusal: ScheduleRefusal) -> Self {
        match refusal {
            ScheduleRefusal::NameTaken(name) => Self::ScheduleTaken(name),
            ScheduleRefusal::When(error) => Self::Schedule(error.into()),
        }
    }
}

pub fn find(store: &dyn Store, name: &ScheduleName) -> Result<(Schedule, Vec<Run>), OpError> {
    match store.schedule(name)? {
        Some(found) => Ok(found),
        None => Err(no_such(store, name)?),
    }
}

/// Pauses a schedule, or resumes it if `pause` is `None`.
pub fn set_pause(
    store: &dyn Store,
    name: &ScheduleName,
    pause: Option<&Pause>,
    by: &str,
) -> Result<Schedule, OpError> {
    if !store.set_schedule_pause(name, pause, by)? {
        return Err(no_such(store, name)?);
    }
    store.announce(Notice::Orders)?;
    Ok(find(store, name)?.0)
}

/// Removes a schedule and returns its last version.
pub fn remove(store: &dyn Store, name: &ScheduleName, by: &str) -> Result<Schedule, OpError> {
    let (schedule, _) = find(store, name)?;
    if !store.remove_schedule(name, by)? {
        return Err(no_such(store, name)?);
    }
    Ok(schedule)
}

/// Enqueues a schedule's job now.
pub fn run(store: &dyn Store, name: &ScheduleName, by: &str) -> Result<EnqueueResult, OpError> {
    match store.run_schedule(name, by)? {
        Some(enqueued) => Ok(enqueued),
        None => Err(no_such(store, name)?),
    }
}

fn no_such(store: &dyn Store, name: &ScheduleName) -> Result<OpError, StoreError> {
    let known = store.schedules()?;
    let names = known.iter().map(|(schedule, _)| schedule.name.as_str());
    Ok(OpError::no_such(Named::Schedule, name.as_str(), names))
}
