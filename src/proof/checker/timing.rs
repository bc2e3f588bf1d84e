//! I9 and I10: nothing starts before its time, and nothing after it was cancelled.
//!
//! All times are of the one clock that neither jumps nor sleeps, so a clock that is set is no excuse.

use std::time::Duration;

use super::case::{Case, is_own_failure};
use super::invariant::Invariant;
use super::verdict::Verdict;
use crate::domain::job::Attempt;
use crate::proof::calls::Answer;
use crate::proof::ledger::Line;
use crate::proof::plan::JobPlan;

/// Times are kept in milliseconds.
const ROUNDING: Duration = Duration::from_millis(1);

pub(super) fn check(case: &Case<'_>, verdict: &mut Verdict) {
    check_cancels(case, verdict);
    // A retry is somebody's wish to run now.
    if let (Some(plan), 0) = (case.plan, case.retry_count()) {
        check_delay(case, plan, verdict);
        check_backoff(case, plan, verdict);
    }
}

fn check_cancels(case: &Case<'_>, verdict: &mut Verdict) {
    let cancels = case.calls.iter().filter(|call| call.cancels(case.id) && call.answer == Answer::Ok);
    for cancel in cancels {
        let revived = case.retries().find(|retry| retry.ended > cancel.began).map(|retry| retry.began);
        let is_late =
            |line: &&Line| line.at > cancel.ended && revived.is_none_or(|revived| line.at < revived);
        let late = case.starts().find(is_late);
        verdict.expect(Invariant::CancelHolds, Some(case.id), late.is_none(), || {
            let attempt = late.map_or(0, |line| line.attempt);
            format!("attempt {attempt} started after the cancel was acknowledged")
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
    verdict.expect(Invariant::InTime, Some(case.id), start.at + ROUNDING >= asked + delay, || {
        format!(
            "it started {:?} after it was asked for, and was to wait {delay:?}",
            start.at.saturating_sub(asked)
        )
    });
}

fn check_backoff(case: &Case<'_>, plan: &JobPlan, verdict: &mut Verdict) {
    let mut failures = 0;
    for pair in case.history().windows(2) {
        failures += u32::from(pair[0].ending.as_ref().is_some_and(is_own_failure));
        let wait = plan.retry_delay * 2_u32.saturating_pow(failures);
        let Some((last, start)) = gap(case, &pair[0], &pair[1]) else {
            continue;
        };
        verdict.expect(Invariant::InTime, Some(case.id), start.at + ROUNDING >= last.at + wait, || {
            format!(
                "attempt {} started {:?} after attempt {} had failed, and was to wait {wait:?}",
                pair[1].number,
                start.at.saturating_sub(last.at),
                pair[0].number
            )
        });
    }
}

/// The last sign of life of an attempt that failed, and the start of the next.
fn gap<'e>(case: &Case<'e>, failed: &Attempt, next: &Attempt) -> Option<(&'e Line, &'e Line)> {
    failed.ending.as_ref().filter(|ending| is_own_failure(ending))?;
    let is_its = |line: &&Line| line.is_by_command();
    Some((case.lines_of(failed.number).filter(is_its).last()?, case.start_of(next.number)?))
}

/// Whether a job that waits for another started only after that had succeeded.
pub(super) fn check_dependency(case: &Case<'_>, on: &Case<'_>, verdict: &mut Verdict) {
    if case.retry_count() + on.retry_count() > 0 {
        return;
    }
    let Some(start) = case.starts().next() else {
        return;
    };
    let success = on
        .history()
        .iter()
        .find(|attempt| attempt.ending.as_ref().is_some_and(|ending| ending.outcome.exit_code() == Some(0)));
    let end = success.and_then(|success| on.end_of(success.number));
    verdict.expect(Invariant::InTime, Some(case.id), end.is_some_and(|end| end.at <= start.at), || {
        format!("it started before {}, on which it depends, had succeeded", on.id)
    });
}
