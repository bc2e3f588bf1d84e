//! I3: every job reaches a final state that agrees with its history.

use super::case::{Case, is_command_failure};
use super::invariant::Invariant;
use super::verdict::Verdict;
use crate::calls::Answer;
use domain::job::life::{CancelReason, DeadReason, State};
use domain::job::outcome::Outcome;

pub(super) fn check(case: &Case<'_>, verdict: &mut Verdict) {
    let Some(job) = case.job else {
        return;
    };
    let state = &job.record.job.life.state;
    let problem = match state {
        State::Pending { .. } | State::Processing(_) | State::Failed => {
            Some(format!("it is still {}", state.name().name()))
        }
        // What led to it may have been lost.
        State::Completed { .. } | State::Dead { .. } | State::Cancelled { .. } if case.is_in_lost_tail => {
            None
        }
        State::Completed { .. } => completed(case),
        State::Dead { reason: DeadReason::RetriesExhausted, .. } => exhausted(case),
        State::Dead { reason: DeadReason::CrashLimit, .. } => {
            Some("it is dead because of the crash limit, which a trial never reaches".to_owned())
        }
        State::Dead { reason: DeadReason::NotRetried, .. } => {
            Some("it is dead because of its exit code, but a trial retries all exit codes".to_owned())
        }
        State::Cancelled { reason: CancelReason::User, .. } => cancelled_by_user(case),
        State::Cancelled { reason: CancelReason::Dependency, .. } => cancelled_by_dependency(case),
        State::Cancelled { reason: CancelReason::Replaced, .. } => {
            Some("it was replaced by a newer run, but no schedule of a trial does that".to_owned())
        }
    };
    verdict.expect(Invariant::Terminal, Some(case.id), problem.is_none(), || problem.unwrap_or_default());
}

fn last_outcome(case: &Case<'_>) -> Option<Outcome> {
    Some(case.history().last()?.ending.as_ref()?.outcome)
}

fn completed(case: &Case<'_>) -> Option<String> {
    let last = last_outcome(case);
    (last != Some(Outcome::Success))
        .then(|| format!("it is completed, but its last attempt ended with: {last:?}"))
}

/// A retry resets the count, but the history does not show when.
fn exhausted(case: &Case<'_>) -> Option<String> {
    let endings = case.history().iter().filter_map(|attempt| attempt.ending.as_ref());
    let failures = endings.filter(|ending| is_command_failure(ending)).count() as u64;
    let allowed = u64::from(case.plan?.max_retries) + 1;
    let is_enough = failures == allowed || case.retry_count() > 0 && failures >= allowed;
    (!is_enough).then(|| format!("it is dead after {failures} failures, but {allowed} were allowed"))
}

fn cancelled_by_user(case: &Case<'_>) -> Option<String> {
    let may_have = |answer: Answer| !matches!(answer, Answer::Failed(_));
    let was_asked = case.calls.iter().any(|call| call.cancels(case.id) && may_have(call.answer));
    (!was_asked).then(|| "it is cancelled without a request".to_owned())
}

fn cancelled_by_dependency(case: &Case<'_>) -> Option<String> {
    let depends = case.plan.is_some_and(|plan| !plan.depends_on.is_empty() && !plan.runs_anyway);
    (!depends).then(|| "it is cancelled because of a dependency, but it has none that can do that".to_owned())
}
