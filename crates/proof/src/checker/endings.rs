//! I4 and I8: what is recorded is what happened.

use std::time::Duration;

use super::case::{Case, is_own_doing};
use super::invariant::Invariant;
use super::verdict::Verdict;
use crate::ledger::What;
use domain::job::outcome::Outcome;
use domain::job::{Attempt, Ending};

/// How late a command may be killed on a busy machine, its grace included.
const LATE: Duration = Duration::from_secs(30);

pub(super) fn check(case: &Case<'_>, verdict: &mut Verdict) {
    check_successes(case, verdict);
    for attempt in case.history() {
        if let Some(ending) = attempt.ending.as_ref().filter(|ending| is_own_doing(ending)) {
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
            format!("the success of attempt {} is recorded, and it never came to its end", success.number)
        });
    }
    let last = case.history().last().map(|attempt| attempt.number);
    let went_on = successes.first().is_some_and(|success| Some(success.number) != last);
    verdict.expect(Invariant::OneSuccess, Some(case.id), !went_on || case.retry_count() > 0, || {
        "it went on after it had succeeded".to_owned()
    });
}

fn check_outcome(case: &Case<'_>, attempt: &Attempt, ending: &Ending, verdict: &mut Verdict) {
    let number = attempt.number;
    let real = case.end_of(number).map(|line| match &line.what {
        What::End { how } => how.outcome(),
        // Only such lines are asked for.
        What::Start { .. } | What::Tick { .. } => Outcome::Lost,
    });
    let is_real = match ending.outcome {
        // It may come to its end and be killed in the same moment; see below.
        Outcome::Timeout => true,
        Outcome::Success | Outcome::Failure { .. } | Outcome::Signal { .. } => real == Some(ending.outcome),
        Outcome::SpawnError | Outcome::Lost | Outcome::Cancelled | Outcome::Released => false,
    };
    verdict.expect(Invariant::RealOutcome, Some(case.id), is_real, || {
        let really = real.map_or("nothing is known of its end".to_owned(), |real| format!("it was: {real}"));
        let said = ending.error.as_deref().unwrap_or("no error");
        format!("attempt {number} is recorded as: {} ({said}); {really}", ending.outcome)
    });
}

/// A timeout is one that was asked for and has passed, and nothing else runs for much longer.
fn check_timeout(case: &Case<'_>, attempt: &Attempt, ending: &Ending, verdict: &mut Verdict) {
    let asked = case.plan.and_then(|plan| plan.timeout);
    let is_timeout = ending.outcome == Outcome::Timeout;
    let is_right = match asked {
        None => !is_timeout,
        Some(timeout) if is_timeout => ending.duration >= timeout,
        Some(timeout) => ending.duration <= timeout + LATE,
    };
    verdict.expect(Invariant::RealOutcome, Some(case.id), is_right, || {
        let (number, outcome, ran) = (attempt.number, ending.outcome, ending.duration);
        format!("attempt {number} ran for {ran:?} with a timeout of {asked:?} and is recorded as: {outcome}")
    });
}
