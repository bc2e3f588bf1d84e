//! I1 and I2: every acknowledged job exists, and no other.

use super::case::Case;
use super::invariant::Invariant;
use super::schedules;
use super::verdict::Verdict;
use crate::evidence::LostTail;
use domain::values::name::BatchName;

pub(super) fn check(case: &Case<'_>, tails: &[LostTail], verdict: &mut Verdict) {
    let is_stored = case.job.is_some();
    let mut acknowledged = case.calls.iter().filter(|call| call.acknowledges(case.id)).peekable();
    let was_acknowledged = acknowledged.peek().is_some();
    let kept = acknowledged.find(|call| !tails.iter().any(|tail| tail.overlaps(call)));
    verdict.lost_in_tails += u64::from(was_acknowledged && kept.is_none() && !is_stored);
    if let Some(call) = kept {
        verdict.expect(Invariant::NoneLost, Some(case.id), is_stored, || {
            format!("it does not exist, but it was acknowledged: {call}")
        });
    }
    if let Some(line) = case.lines.first().filter(|_| !case.is_in_lost_tail) {
        verdict.expect(Invariant::NoneLost, Some(case.id), is_stored, || {
            format!("it does not exist, but it ran: {line}")
        });
    }
    let Some(job) = case.job else {
        return;
    };
    if let Some(of) = case.schedule {
        let is_its = schedules::asks_for(&of.schedule, &job.record);
        verdict.expect(Invariant::NoneInvented, Some(case.id), is_its, || {
            let (name, at) = (&of.schedule.name, job.record.scheduled_for);
            format!(
                "it exists for {at:?}, but schedule {name} has no run at that time, or another job for it"
            )
        });
    } else {
        let was_wanted = case.calls.iter().any(|call| call.may_have_stored(case.id));
        verdict.expect(Invariant::NoneInvented, Some(case.id), was_wanted, || {
            "it exists, but every call that requested it reported that nothing was changed".to_owned()
        });
    }
    let batch = job.record.job.batch.as_ref().map(BatchName::as_str);
    let wanted = case.plan.and_then(|plan| plan.batch);
    verdict.expect(Invariant::NoneInvented, Some(case.id), batch == wanted, || {
        format!("it is in batch {batch:?}, but was requested in {wanted:?}")
    });
}
