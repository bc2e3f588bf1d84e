//! I1 and I2: what was acknowledged is there, and nothing else.

use super::case::Case;
use super::invariant::Invariant;
use super::verdict::Verdict;

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
    if is_stored {
        let was_wanted = case.calls.iter().any(|call| call.may_have_stored(case.id));
        verdict.expect(Invariant::Wanted, Some(case.id), was_wanted, || {
            "it is there, but every call that wanted it said that nothing was changed".to_owned()
        });
    }
}
