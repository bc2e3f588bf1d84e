//! I1 and I2: what was acknowledged is there, and nothing else.

use super::case::Case;
use super::invariant::Invariant;
use super::schedules;
use super::verdict::Verdict;
use domain::values::name::BatchName;

pub(super) fn check(case: &Case<'_>, verdict: &mut Verdict) {
    let is_stored = case.job.is_some();
    if let Some(call) = case.calls.iter().find(|call| call.acknowledges(case.id)) {
        verdict.expect(Invariant::Kept, Some(case.id), is_stored, || {
            format!("it is gone, and there was: {call}")
        });
    }
    if let Some(line) = case.lines.first() {
        verdict
            .expect(Invariant::Kept, Some(case.id), is_stored, || format!("it is gone, and it ran: {line}"));
    }
    let Some(job) = case.job else {
        return;
    };
    if let Some(of) = case.schedule {
        let is_its = schedules::asks_for(&of.schedule, &job.record);
        verdict.expect(Invariant::Wanted, Some(case.id), is_its, || {
            let (name, at) = (&of.schedule.name, job.record.scheduled_for);
            format!("it is there for {at:?}, and schedule {name} has no such moment, or another job for it")
        });
    } else {
        let was_wanted = case.calls.iter().any(|call| call.may_have_stored(case.id));
        verdict.expect(Invariant::Wanted, Some(case.id), was_wanted, || {
            "it is there, but every call that wanted it said that nothing was changed".to_owned()
        });
    }
    let batch = job.record.job.batch.as_ref().map(BatchName::as_str);
    let wanted = case.plan.and_then(|plan| plan.batch);
    verdict.expect(Invariant::Wanted, Some(case.id), batch == wanted, || {
        format!("it is in batch {batch:?}, and was to be in {wanted:?}")
    });
}
