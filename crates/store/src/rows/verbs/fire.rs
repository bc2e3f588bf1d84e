//! Enqueuing the jobs of due schedules.
//!
//! A firing and the record of it are one transaction, which also reads the schedule. So a concurrent caller finds
//! nothing due, and a crash leaves all of it or nothing.

use super::enqueue;
use crate::rows::jobs::apply;
use crate::rows::jobs::environments;
use crate::rows::jobs::row;
use crate::rows::tables::schedules;
use crate::rows::tables::schedules::ScheduleRow;
use crate::rows::tables::{events, runs, settings};
use crate::rows::tx::Tx;
use crate::{EnqueueError, EnqueueResult, FireResult, Pause, RefusedJob, Result, StoreError};
use domain::job::NewJob;
use domain::job::life::{Event, StateName, transition};
use domain::job::options::JobOptions;
use domain::job::spec::{Caller, Origin};
use domain::schedule::{OnOverlap, Run, fire};
use domain::values::name::{JobId, ScheduleName};
use domain::values::timestamp::Timestamp;

/// How many schedules one transaction fires at most, so that many due at once do not stall other writers.
const FIRED_PER_TRANSACTION: usize = 100;
/// The actor recorded for pausing a malformed schedule.
const QUEUECTL: &str = "queuectl";

pub(crate) fn fire_due(tx: &mut Tx<'_>) -> Result<FireResult> {
    let mut fired = FireResult::default();
    for (id, name) in schedules::due(tx, FIRED_PER_TRANSACTION)? {
        match fire_one(tx, &name) {
            Ok(jobs) => fired.jobs.extend(jobs),
            // A row that was edited by hand, or written by a newer program, must not stop the other schedules.
            Err(StoreError::Malformed { detail, .. }) => {
                let reason = format!("its definition is invalid: {detail}");
                let pause = Pause { by: QUEUECTL.to_owned(), reason: Some(reason.clone()) };
                schedules::set_pause(tx, id, Some(&pause))?;
                fired.held.push((name, reason));
            }
            Err(error) => return Err(error),
        }
    }
    fired.next_at = schedules::next_fire(tx)?;
    Ok(fired)
}

fn fire_one(tx: &mut Tx<'_>, name: &ScheduleName) -> Result<Vec<JobId>> {
    let Some(known) = schedules::find(tx, name)? else {
        return Ok(Vec::new());
    };
    let unfinished = runs::unfinished(tx, known.id)?;
    let count = match known.schedule.policy.on_overlap {
        OnOverlap::Queue => runs::count_unfinished(tx, known.id)?,
        OnOverlap::Skip | OnOverlap::Replace => unfinished.len(),
    };
    let Some(firing) = fire(&known.schedule, count, tx.now) else {
        return Ok(Vec::new());
    };
    // Before any change, so that a malformed schedule is left as it is.
    let job = new_job(tx, &known)?;
    schedules::note_fired(tx, known.id, &firing)?;
    let mut before = unfinished;
    if known.schedule.policy.on_overlap == OnOverlap::Replace && !firing.occurrences.is_empty() {
        before = replace(tx, before)?;
    }
    let mut jobs = Vec::new();
    let mut before: Vec<JobId> = before.into_iter().map(|run| run.id).collect();
    for at in &firing.occurrences {
        let Some(id) = enqueue_occurrence(tx, &known, &job, *at, before)? else {
            schedules::note_skipped(tx, known.id, *at)?;
            before = Vec::new();
            continue;
        };
        before = vec![id.clone()];
        jobs.push(id);
    }
    Ok(jobs)
}

/// Cancels unfinished runs, and returns those that may still be running.
fn replace(tx: &mut Tx<'_>, unfinished: Vec<Run>) -> Result<Vec<Run>> {
    for run in &unfinished {
        let job = row::by_id(tx, &run.id)?.ok_or_else(|| StoreError::NoSuchJob(run.id.clone()))?;
        let policy = settings::policy(tx, &job)?;
        if let Ok(replaced) = transition(&job.life, Event::Replace, &policy, tx.now) {
            apply(tx, &job, &replaced, &job.latest)?;
        }
    }
    Ok(unfinished.into_iter().filter(|run| run.state == StateName::Processing).collect())
}

/// Enqueues the job for one occurrence, to run after these runs; `None` if its unique key is taken.
fn enqueue_occurrence(
    tx: &mut Tx<'_>,
    known: &ScheduleRow,
    job: &NewJob,
    at: Timestamp,
    after: Vec<JobId>,
) -> Result<Option<JobId>> {
    let job = NewJob {
        id: free_id(tx, known, at)?,
        depends_on: after,
        options: JobOptions { run_on_dependency_failure: true, ..job.options.clone() },
        ..job.clone()
    };
    match enqueue_one(tx, &job)? {
        EnqueueResult::Created(id) => {
            runs::assign(tx, &id, known.id, Some(at))?;
            Ok(Some(id))
        }
        EnqueueResult::Existing(_) => Ok(None),
    }
}

/// Enqueues a schedule's job now, in addition to its times.
pub(crate) fn run(tx: &mut Tx<'_>, name: &ScheduleName, by: &str) -> Result<Option<EnqueueResult>> {
    let Some(known) = schedules::find(tx, name)? else {
        return Ok(None);
    };
    let job = NewJob { id: free_id(tx, &known, tx.now)?, ..new_job(tx, &known)? };
    let answer = enqueue_one(tx, &job)?;
    if let EnqueueResult::Created(id) = &answer {
        runs::assign(tx, id, known.id, None)?;
        let seq = row::by_id(tx, id)?.map(|job| job.seq);
        events::record(tx, seq, "schedule_run", by, Some(name.as_str()))?;
    }
    Ok(Some(answer))
}

fn enqueue_one(tx: &mut Tx<'_>, job: &NewJob) -> Result<EnqueueResult> {
    match enqueue::enqueue(tx, std::slice::from_ref(job)) {
        Ok(mut answers) => Ok(answers.pop().expect("one answer for each job")),
        Err(EnqueueError::Store(error)) => Err(error),
        Err(EnqueueError::Refused(RefusedJob { reason, .. })) => Err(row::malformed("schedule", reason)),
    }
}

/// The job of a schedule under the current settings; the caller chooses its id.
fn new_job(tx: &Tx<'_>, known: &ScheduleRow) -> Result<NewJob> {
    let environment = known.environment_id.map(|id| environments::load(tx, id)).transpose()?;
    // A schedule has an absolute directory, or none where its jobs may run on any machine.
    let caller = Caller { environment, runs_elsewhere: tx.dialect().pick(false, true), ..Caller::default() };
    let origin = Origin { settings: tx.settings()?.clone(), caller };
    let job = known.schedule.job.clone().resolve(&origin, || known.schedule.job_id(tx.now, 1));
    job.map_err(|error| row::malformed("schedule", error))
}

fn free_id(tx: &Tx<'_>, known: &ScheduleRow, at: Timestamp) -> Result<JobId> {
    let mut attempt = 1;
    loop {
        let id = known.schedule.job_id(at, attempt);
        if !enqueue::is_taken(tx, &id)? {
            return Ok(id);
        }
        attempt += 1;
    }
}
