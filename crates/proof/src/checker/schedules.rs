//! I1 and I2 for schedules: each enqueued exactly the jobs of its times.

use super::invariant::Invariant;
use super::verdict::Verdict;
use crate::evidence::{Evidence, JobEvidence, ScheduleEvidence};
use domain::job::JobRecord;
use domain::schedule::{OnOverlap, Schedule};
use domain::values::timestamp::Timestamp;

/// Whether this is the job for one of the schedule's times.
pub(super) fn asks_for(schedule: &Schedule, record: &JobRecord) -> bool {
    let Some(at) = record.scheduled_for else {
        return false;
    };
    moments(schedule, at).last() == Some(at) && record.job.id == schedule.job_id(at, 1)
}

/// The times of the schedule, up to and including `until`.
fn moments(schedule: &Schedule, until: Timestamp) -> impl Iterator<Item = Timestamp> {
    let first = schedule.next_after(schedule.created_at);
    std::iter::successors(first, |at| schedule.next_after(*at)).take_while(move |at| *at <= until)
}

pub(super) fn check(evidence: &Evidence, verdict: &mut Verdict) {
    // A run while the clock was ahead advances the schedule by a day, and the times in between are skipped.
    for ScheduleEvidence { schedule, .. } in evidence.schedules.iter().filter(|_| !evidence.is_clock_set) {
        let name = &schedule.name;
        let Some(last) = schedule.last_at else {
            verdict.expect(Invariant::NoneLost, None, false, || format!("schedule {name} never fired"));
            continue;
        };
        let has_run = evidence.jobs.iter().any(|job| is_run_of(schedule, job));
        verdict.expect(Invariant::NoneLost, None, has_run, || {
            format!("schedule {name} fired, but no job exists")
        });
        // Times that were skipped because of an overlap or a long absence of workers have no job.
        let is_whole = schedule.policy.on_overlap == OnOverlap::Queue && schedule.missed_at.is_none();
        for at in moments(schedule, last).filter(|_| is_whole) {
            let id = schedule.job_id(at, 1);
            let is_there = evidence.jobs.iter().any(|job| job.id() == id.as_str());
            verdict.expect(Invariant::NoneLost, Some(id.as_str()), is_there, || {
                format!("schedule {name} fired for {at}, but no job exists")
            });
        }
    }
}

fn is_run_of(schedule: &Schedule, job: &JobEvidence) -> bool {
    job.record.scheduled_for.is_some_and(|at| job.record.job.id == schedule.job_id(at, 1))
}
