//! I11: the starts of a queue never exceed its rate.

use std::time::Duration;

use super::invariant::Invariant;
use super::verdict::Verdict;
use crate::evidence::Evidence;
use domain::job::outcome::Outcome;
use domain::queue::rate::Rate;
use domain::values::timestamp::Timestamp;

pub(super) fn check(evidence: &Evidence, verdict: &mut Verdict) {
    // If the clock was changed, the elapsed time is unknown.
    let rates = evidence.rates.iter().filter(|_| !evidence.is_clock_set);
    for (queue, rate) in rates {
        let starts = starts(evidence, queue);
        for (at, (last, job)) in starts.iter().enumerate() {
            let counts = (0..=at).map(|first| (at - first + 1, last.since(starts[first].0)));
            let excess = counts.filter(|(count, span)| *count as u128 > allowed(*rate, *span)).max();
            verdict.expect(Invariant::WithinLimits, Some(job), excess.is_none(), || {
                let (count, span) = excess.unwrap_or_default();
                format!("{count} jobs of queue {queue} started within {span:?}, but its rate is {rate}")
            });
        }
    }
}

/// The times and jobs of all claims that were not released, in order.
fn starts<'e>(evidence: &'e Evidence, queue: &str) -> Vec<(Timestamp, &'e str)> {
    let jobs = evidence.jobs.iter().filter(|job| job.record.job.queue.as_str() == queue);
    let claims = jobs.flat_map(|job| job.record.history.iter().map(|attempt| (attempt, job.id())));
    let was_released = |outcome: Option<Outcome>| outcome == Some(Outcome::Released);
    let mut starts: Vec<_> = claims
        .filter(|(attempt, _)| !was_released(attempt.ending.as_ref().map(|ending| ending.outcome)))
        .map(|(attempt, job)| (attempt.started_at, job))
        .collect();
    starts.sort_unstable();
    starts
}

/// A full token bucket, its refill in the meantime, and one for rounding and for the time between a claim and its start.
fn allowed(rate: Rate, span: Duration) -> u128 {
    let capacity = u128::from(rate.count());
    capacity + capacity * span.as_millis() / rate.period().as_millis() + 1
}
