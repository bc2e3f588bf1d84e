//! I4 and I8: the recorded outcomes are the real ones.

use std::time::Duration;

use super::case::{Case, ended_by_command};
use super::invariant::Invariant;
use super::verdict::Verdict;
use crate::ledger::LedgerEvent;
use domain::job::outcome::Outcome;
use domain::job::{Attempt, Ending};

/// How late a command may be killed on a busy machine, including its grace period and short pauses.
const MAX_KILL_DELAY: Duration = Duration::from_secs(30);

pub(super) fn check(case: &Case<'_>, verdict: &mut Verdict) {
    check_successes(case, verdict);
    for attempt in case.history() {
        if let Some(ending) = attempt.ending.as_ref().filter(|ending| ended_by_command(ending)) {
            check_outcome(case, attempt, ending, verdict);
            check_timeout(case, attempt, ending, verdict);
        }
    }
}

fn check_successes(case: &Case<'_>, verdict: &mut Verdict) {
    let is_success =
        |attempt: &&Attempt| attempt.ending.as_ref().is_some_and(|ending| ending.outcome == Outcome::Success);
    let successes: Vec<&Attempt> = case.history().iter().filter(is_success).collect();
    let allowed = 1 + case.retry_count();
    verdict.expect(Invariant::OneSuccess, Some(case.id), successes.len() as u64 <= allowed, || {
        format!("{} successes are recorded", successes.len())
    });
    for success in &successes {
        let end = case.end_of(success.number);
        verdict.expect(Invariant::OneSuccess, Some(case.id), end.is_some(), || {
            format!("a success of attempt {} is recorded, but its command never ended", success.number)
        });
    }
    let last = case.history().last().map(|attempt| attempt.number);
    let ran_again = successes.first().is_some_and(|success| Some(success.number) != last);
    verdict.expect(Invariant::OneSuccess, Some(case.id), !ran_again || case.retry_count() > 0, || {
        "it ran again after it had succeeded".to_owned()
    });
}

fn check_outcome(case: &Case<'_>, attempt: &Attempt, ending: &Ending, verdict: &mut Verdict) {
    let number = attempt.number;
    let real = case.end_of(number).map(|line| match &line.event {
        LedgerEvent::End { how } => how.outcome(),
        // `end_of` returns only End lines.
        LedgerEvent::Start { .. } | LedgerEvent::Tick { .. } => Outcome::Lost,
    });
    let is_real = match ending.outcome {
        // It may end and be killed at the same moment; `check_timeout` covers it.
        Outcome::Timeout => true,
        Outcome::Success | Outcome::Failure { .. } | Outcome::Signal { .. } => real == Some(ending.outcome),
        Outcome::SpawnError | Outcome::Lost | Outcome::Cancelled | Outcome::Released => false,
    };
    verdict.expect(Invariant::RealOutcome, Some(case.id), is_real, || {
        let really = real
            .map_or("the ledger has no end of it".to_owned(), |real| format!("the real outcome is: {real}"));
        let said = ending.error.as_deref().unwrap_or("no error");
        format!("attempt {number} is recorded as: {} ({said}); {really}", ending.outcome)
    });
}

/// A recorded timeout was requested and has passed, and no other attempt ran much longer than its timeout.
fn check_timeout(case: &Case<'_>, attempt: &Attempt, ending: &Ending, verdict: &mut Verdict) {
    let asked = case.plan.and_then(|plan| plan.timeout);
    let is_timeout = ending.outcome == Outcome::Timeout;
    let is_right = match asked {
        None => !is_timeout,
        Some(timeout) if is_timeout => ending.duration >= timeout,
        Some(timeout) => ending.duration <= timeout + MAX_KILL_DELAY,
    };
    verdict.expect(Invariant::RealOutcome, Some(case.id), is_right, || {
        let (number, outcome, ran) = (attempt.number, ending.outcome, ending.duration);
        format!("attempt {number} ran for {ran:?} with a timeout of {asked:?} and is recorded as: {outcome}")
    });
}
