//! I14: whoever wanted to be told is told, at least once, and only of what happened.

use std::collections::{HashMap, HashSet};

use super::invariant::Invariant;
use super::verdict::Verdict;
use crate::evidence::{Evidence, JobEvidence};
use crate::hook_log::{BATCH_FINISHED, DEAD, SUCCESS};
use domain::job::life::State;
use domain::job::outcome::Outcome;

pub(super) fn check(evidence: &Evidence, verdict: &mut Verdict) {
    check_repeats(evidence, verdict);
    check_successes(evidence, verdict);
    // What was to be told while the clock was ahead is due in a day.
    if !evidence.is_clock_turned {
        check_told(evidence, verdict);
    }
}

fn check_told(evidence: &Evidence, verdict: &mut Verdict) {
    let told: HashSet<(&str, &str)> =
        evidence.told.iter().map(|one| (one.event.as_str(), one.about.as_str())).collect();
    for job in &evidence.jobs {
        if let Some(event) = event(job) {
            verdict.expect(Invariant::Heard, Some(job.id()), told.contains(&(event, job.id())), || {
                format!("it is {}, and nobody was told", job.record.job.life.state.name().name())
            });
        }
    }
    for batch in evidence.batches.iter().filter(|batch| batch.finished_at.is_some()) {
        let name = batch.name.as_str();
        verdict.expect(Invariant::Heard, None, told.contains(&(BATCH_FINISHED, name)), || {
            format!("batch {name} is finished, and nobody was told")
        });
    }
    verdict.expect(Invariant::Heard, None, evidence.to_be_told == 0, || {
        format!("hooks are still to be told of {} events", evidence.to_be_told)
    });
}

/// What is told of the end of a job.
fn event(job: &JobEvidence) -> Option<&'static str> {
    match job.record.job.life.state {
        State::Completed { .. } => Some(SUCCESS),
        State::Dead { .. } => Some(DEAD),
        State::Pending { .. } | State::Processing(_) | State::Failed | State::Cancelled { .. } => None,
    }
}

/// Told again it is the same, to the byte.
fn check_repeats(evidence: &Evidence, verdict: &mut Verdict) {
    let mut first: HashMap<&str, &str> = HashMap::new();
    for one in &evidence.told {
        let text = *first.entry(&one.delivery).or_insert(&one.text);
        verdict.expect(Invariant::Heard, None, text == one.text, || {
            format!("{} was told as {text} and as {}", one.delivery, one.text)
        });
    }
}

/// Nobody is told of a success that never was.
fn check_successes(evidence: &Evidence, verdict: &mut Verdict) {
    let successes: HashSet<&str> =
        evidence.jobs.iter().filter(|job| was_completed(job)).map(JobEvidence::id).collect();
    for one in evidence.told.iter().filter(|one| one.event == SUCCESS) {
        let about = one.about.as_str();
        verdict.expect(Invariant::Heard, Some(about), successes.contains(about), || {
            "a hook was told of its success, and there was none".to_owned()
        });
    }
}

/// It is, or it was before somebody retried it.
fn was_completed(job: &JobEvidence) -> bool {
    let endings = job.record.history.iter().filter_map(|attempt| attempt.ending.as_ref());
    event(job) == Some(SUCCESS) || endings.into_iter().any(|ending| ending.outcome == Outcome::Success)
}
