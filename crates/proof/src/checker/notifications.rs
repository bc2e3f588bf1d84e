//! I14: every event of a hook is delivered at least once, and only if it happened.

use std::collections::{HashMap, HashSet};

use super::invariant::Invariant;
use super::verdict::Verdict;
use crate::evidence::{Evidence, JobEvidence};
use crate::notifications::{BATCH_FINISHED, DEAD, SUCCESS};
use domain::job::life::State;
use domain::job::outcome::Outcome;

pub(super) fn check(evidence: &Evidence, verdict: &mut Verdict) {
    // A delivery may have been recorded by a commit that was lost.
    if evidence.disturbances.lost_tails.is_empty() {
        check_repeats(evidence, verdict);
        check_successes(evidence, verdict);
    }
    // Deliveries that were created while the clock was ahead are due in a day.
    if !evidence.is_clock_set {
        check_delivered(evidence, verdict);
    }
}

fn check_delivered(evidence: &Evidence, verdict: &mut Verdict) {
    let delivered: HashSet<(&str, &str)> =
        evidence.notifications.iter().map(|one| (one.event.as_str(), one.about.as_str())).collect();
    for job in &evidence.jobs {
        if let Some(event) = event(job) {
            verdict.expect(
                Invariant::HooksNotified,
                Some(job.id()),
                delivered.contains(&(event, job.id())),
                || {
                    format!(
                        "it is {}, but its hook was not notified",
                        job.record.job.life.state.name().name()
                    )
                },
            );
        }
    }
    for batch in evidence.batches.iter().filter(|batch| batch.finished_at.is_some()) {
        let name = batch.name.as_str();
        verdict.expect(Invariant::HooksNotified, None, delivered.contains(&(BATCH_FINISHED, name)), || {
            format!("batch {name} is finished, but its hook was not notified")
        });
    }
    verdict.expect(Invariant::HooksNotified, None, evidence.pending_notifications == 0, || {
        format!("{} deliveries are still pending", evidence.pending_notifications)
    });
}

/// The event for the final state of a job.
fn event(job: &JobEvidence) -> Option<&'static str> {
    match job.record.job.life.state {
        State::Completed { .. } => Some(SUCCESS),
        State::Dead { .. } => Some(DEAD),
        State::Pending { .. } | State::Processing(_) | State::Failed | State::Cancelled { .. } => None,
    }
}

/// Repeated deliveries are identical.
fn check_repeats(evidence: &Evidence, verdict: &mut Verdict) {
    let mut first: HashMap<&str, &str> = HashMap::new();
    for one in &evidence.notifications {
        let text = *first.entry(&one.delivery).or_insert(&one.text);
        verdict.expect(Invariant::HooksNotified, None, text == one.text, || {
            format!("{} was delivered as {text} and as {}", one.delivery, one.text)
        });
    }
}

/// No hook is notified of a success that did not happen.
fn check_successes(evidence: &Evidence, verdict: &mut Verdict) {
    let successes: HashSet<&str> =
        evidence.jobs.iter().filter(|job| was_completed(job)).map(JobEvidence::id).collect();
    for one in evidence.notifications.iter().filter(|one| one.event == SUCCESS) {
        let about = one.about.as_str();
        verdict.expect(Invariant::HooksNotified, Some(about), successes.contains(about), || {
            "a hook was notified of its success, but it did not succeed".to_owned()
        });
    }
}

/// Whether it is completed, or was before a retry.
fn was_completed(job: &JobEvidence) -> bool {
    let endings = job.record.history.iter().filter_map(|attempt| attempt.ending.as_ref());
    event(job) == Some(SUCCESS) || endings.into_iter().any(|ending| ending.outcome == Outcome::Success)
}
