//! I9 and I10: no attempt starts before its time or after an acknowledged cancel.
//!
//! All times are from the monotonic clock, so changes of the wall clock do not matter. Only schedules use the wall clock.

use std::time::Duration;

use super::case::{Case, is_command_failure};
use super::invariant::Invariant;
use super::verdict::Verdict;
use crate::ledger::Line;
use crate::plan::JobPlan;

/// The store keeps times in milliseconds.
const ROUNDING: Duration = Duration::from_millis(1);

pub(super) fn check(case: &Case<'_>, verdict: &mut Verdict) {
    check_cancels(case, verdict);
    check_moment(case, verdict);
    // After a retry the job may run at once.
    if let (Some(plan), 0) = (case.plan, case.retry_count()) {
        check_delay(case, plan, verdict);
        check_backoff(case, plan, verdict);
    }
}

fn check_cancels(case: &Case<'_>, verdict: &mut Verdict) {
    for cancel in case.calls.iter().filter(|call| call.has_cancelled(case.id)) {
        let later = case.retries().filter(|retry| retry.ended > cancel.began);
        let revived = later.map(|retry| retry.began).min();
        let is_late =
            |line: &&Line| line.at > cancel.ended && revived.is_none_or(|revived| line.at < revived);
        let late = case.starts().find(is_late);
        verdict.expect(Invariant::CancelHolds, Some(case.id), late.is_none(), || {
            let attempt = late.map_or(0, |line| line.attempt);
            format!("attempt {attempt} started after the cancel was acknowledged")
        });
    }
}

/// No run of a schedule was claimed before its time.
fn check_moment(case: &Case<'_>, verdict: &mut Verdict) {
    let moment = case.job.and_then(|job| job.record.scheduled_for);
    let Some(moment) = moment.filter(|_| !case.is_clock_set) else {
        return;
    };
    for attempt in case.history() {
        let (number, claimed) = (attempt.number, attempt.started_at);
        verdict.expect(Invariant::NotTooEarly, Some(case.id), claimed >= moment, || {
            format!("attempt {number} was claimed at {claimed}, but was scheduled for {moment}")
        });
    }
}

fn check_delay(case: &Case<'_>, plan: &JobPlan, verdict: &mut Verdict) {
    let (Some(delay), Some(start)) = (plan.delay, case.starts().next()) else {
        return;
    };
    let asked = case.calls.iter().filter(|call| call.may_have_stored(case.id)).map(|call| call.began).min();
    let Some(asked) = asked else {
        return;
    };
    verdict.expect(Invariant::NotTooEarly, Some(case.id), start.at + ROUNDING >= asked + delay, || {
        format!(
            "it started {:?} after its request, but its delay was {delay:?}",
            start.at.saturating_sub(asked)
        )
    });
}

/// After each failure the next start waits for the backoff, counted from the last line of the failed attempt, even if
/// claims were made and released in between.
fn check_backoff(case: &Case<'_>, plan: &JobPlan, verdict: &mut Verdict) {
    let mut failures = 0;
    let mut not_before = Duration::ZERO;
    for attempt in case.history() {
        if let Some(start) = case.start_of(attempt.number) {
            verdict.expect(Invariant::NotTooEarly, Some(case.id), start.at + ROUNDING >= not_before, || {
                let early = not_before.saturating_sub(start.at);
                format!("attempt {} started {early:?} before its backoff was over", attempt.number)
            });
        }
        if attempt.ending.as_ref().is_some_and(is_command_failure) {
            failures += 1;
            let last = case.lines_of(attempt.number).filter(|line| line.is_by_command()).last();
            let wait = plan.retry_delay * 2_u32.saturating_pow(failures);
            not_before = last.map_or(not_before, |line| line.at + wait);
        }
    }
}

/// A job starts only after its dependency has succeeded, or has ended if `runs_anyway`.
pub(super) fn check_dependency(case: &Case<'_>, plan: &JobPlan, on: &Case<'_>, verdict: &mut Verdict) {
    if case.retry_count() + on.retry_count() > 0 {
        return;
    }
    let Some(start) = case.starts().next() else {
        return;
    };
    if plan.runs_anyway {
        let late = on.lines.iter().find(|line| line.is_by_command() && line.at > start.at);
        return verdict.expect(Invariant::NotTooEarly, Some(case.id), late.is_none(), || {
            format!("it started before its dependency {} had ended", on.id)
        });
    }
    let success = on
        .history()
        .iter()
        .find(|attempt| attempt.ending.as_ref().is_some_and(|ending| ending.outcome.exit_code() == Some(0)));
    let end = success.and_then(|success| on.end_of(success.number));
    verdict.expect(Invariant::NotTooEarly, Some(case.id), end.is_some_and(|end| end.at <= start.at), || {
        format!("it started before its dependency {} had succeeded", on.id)
    });
}
