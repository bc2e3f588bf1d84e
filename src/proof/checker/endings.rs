//! I3, I4 and I8: every job comes to an end, and what is recorded is what happened.

use super::case::{Case, is_own_doing};
use super::invariant::Invariant;
use super::verdict::Verdict;
use crate::domain::job::{Attempt, Ending};
use crate::domain::life::StateName;
use crate::domain::outcome::Outcome;
use crate::proof::ledger::What;

pub(super) fn check(case: &Case<'_>, verdict: &mut Verdict) {
    let Some(job) = case.job else {
        return;
    };
    let state = job.record.job.life.state.name();
    let has_ended = match state {
        StateName::Completed | StateName::Dead | StateName::Cancelled => true,
        StateName::Pending | StateName::Processing | StateName::Failed => false,
    };
    verdict.expect(Invariant::Terminal, Some(case.id), has_ended, || format!("it is still {}", state.name()));
    check_successes(case, verdict);
    for attempt in case.history() {
        if let Some(ending) = attempt.ending.as_ref().filter(|ending| is_own_doing(ending)) {
            check_outcome(case, attempt, ending, verdict);
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
        // It may come to its end and be killed in the same moment.
        Outcome::Timeout => case.plan.is_some_and(|plan| plan.timeout.is_some()),
        Outcome::Success | Outcome::Failure { .. } | Outcome::Signal { .. } => real == Some(ending.outcome),
        Outcome::SpawnError | Outcome::Lost | Outcome::Cancelled | Outcome::Released => false,
    };
    verdict.expect(Invariant::RealOutcome, Some(case.id), is_real, || {
        let really = real.map_or("nothing is known of its end".to_owned(), |real| format!("it was: {real}"));
        let said = ending.error.as_deref().unwrap_or("no error");
        format!("attempt {number} is recorded as: {} ({said}); {really}", ending.outcome)
    });
}
