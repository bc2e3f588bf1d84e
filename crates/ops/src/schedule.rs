//! Schedules: adding, showing, pausing, removing and running them.

pub mod json;

use jiff::tz::TimeZone;

use super::OpError;
use super::error::Named;
use super::jobs::enqueue::Caller;
use domain::job::spec::{JobSpec, Origin, check_first_word};
use domain::schedule::{Policy, Run, Schedule, ScheduleError, When, check_job, unknown_zone};
use domain::values::name::{JobIdSequence, ScheduleName};
use domain::values::timestamp::Timestamp;
use store::settings::in_force;
use store::{EnqueueResult, NewSchedule, Notice, Pause, ScheduleEdit, ScheduleRefusal, Store, StoreError};
use sys::zone;

/// A schedule as the user wants it: the job and when to enqueue it.
#[derive(Clone, Debug)]
pub struct ScheduleRequest {
    pub name: ScheduleName,
    pub when: When,
    pub policy: Policy,
    pub job: JobSpec,
}

/// A schedule as it is to be from now on.
#[derive(Clone, Debug)]
pub struct ScheduleChange {
    pub request: ScheduleRequest,
    /// From which a relative `cwd` starts.
    pub caller: Caller,
    /// Jobs get the worker's environment instead of the one that was captured.
    pub drops_environment: bool,
}

/// Parses a cron line in the named time zone, or in this machine's zone.
pub fn cron(line: &str, zone_name: Option<&str>) -> Result<When, OpError> {
    Ok(When::cron(line, zone(zone_name)?).map_err(ScheduleError::from)?)
}

/// The zone with this name, or this machine's zone.
pub fn zone(name: Option<&str>) -> Result<TimeZone, OpError> {
    match name {
        Some(name) => Ok(zone::find(name).ok_or_else(|| unknown_zone(name, &zone::names()))?),
        None => Ok(zone::of_machine().unwrap_or(TimeZone::UTC)),
    }
}

/// Adds a schedule and wakes the workers, because it may be due next.
pub fn add(
    store: &dyn Store,
    request: ScheduleRequest,
    caller: Caller,
    by: &str,
) -> Result<Schedule, OpError> {
    let ScheduleRequest { name, when, policy, job } = request;
    check_new_command(&job)?;
    let job = checked(store, job, policy, &caller)?;
    let new = NewSchedule { name, when, job, environment: caller.environment, policy };
    let schedule = store.add_schedule(&new, by)?;
    store.announce(Notice::Orders)?;
    Ok(schedule)
}

/// The job with an absolute `cwd`. An invalid job is reported now instead of at every run.
fn checked(store: &dyn Store, mut job: JobSpec, policy: Policy, caller: &Caller) -> Result<JobSpec, OpError> {
    check_job(&job, policy)?;
    let origin = Origin { settings: in_force(store)?, caller: caller.clone() };
    let resolved = job.clone().resolve(&origin, || JobIdSequence::default().next(Timestamp::EPOCH, 0))?;
    job.cwd = resolved.cwd;
    Ok(job)
}

fn check_new_command(job: &JobSpec) -> Result<(), OpError> {
    Ok(job.command.as_deref().map_or(Ok(()), check_first_word)?)
}

/// Changes a schedule from the version that the caller has seen, and wakes the workers.
pub fn edit(
    store: &dyn Store,
    seen: &Schedule,
    change: ScheduleChange,
    by: &str,
) -> Result<Schedule, OpError> {
    let ScheduleChange { request: ScheduleRequest { name, when, policy, job }, caller, drops_environment } =
        change;
    if job.command != seen.job.command {
        check_new_command(&job)?;
    }
    let job = checked(store, job, policy, &caller)?;
    let edit = ScheduleEdit { when, job, policy, drops_environment };
    let Some(schedule) = store.edit_schedule(seen, &edit, by)? else {
        return Err(no_such(store, &name)?);
    };
    store.announce(Notice::Orders)?;
    Ok(schedule)
}

impl From<ScheduleRefusal> for OpError {
    fn from(refusal: ScheduleRefusal) -> Self {
        match refusal {
            ScheduleRefusal::Changed(name) => Self::ScheduleChanged(name),
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
