//! Decides which runs to enqueue when a schedule is due.

use std::time::Duration;

use super::Schedule;
use super::policy::{MAX_UNFINISHED_RUNS, OnMissed, OnOverlap};
use crate::values::timestamp::Timestamp;

/// An occurrence that was not handled for this long was missed. Until then it is only late.
pub const MISSED_AFTER: Duration = Duration::from_secs(60);

/// The result of firing a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Firing {
    /// The occurrences that get a run, in order.
    pub occurrences: Vec<Timestamp>,
    /// The latest occurrence that was due.
    pub last_at: Timestamp,
    pub next_at: Option<Timestamp>,
    /// The latest occurrence that was missed, whether or not it gets a run.
    pub missed_at: Option<Timestamp>,
    /// The latest occurrence that is skipped because of another run.
    pub skipped_at: Option<Timestamp>,
}

/// Decides what a schedule does now; `None` if it is not due. `unfinished` is the number of unfinished earlier runs.
pub fn fire(schedule: &Schedule, unfinished: usize, now: Timestamp) -> Option<Firing> {
    let mut due = DueOccurrences::of(schedule, now)?;
    let last_at = due.on_time.last().or(due.missed.last()).copied()?;
    let missed_at = due.missed.last().copied();
    let mut occurrences = match schedule.policy.on_missed {
        OnMissed::Once if due.on_time.is_empty() => due.missed.split_off(due.missed.len().saturating_sub(1)),
        OnMissed::Skip | OnMissed::Once => due.on_time,
        OnMissed::All => [due.missed, due.on_time].concat(),
    };
    let skipped_at = skip_overlapping(schedule.policy.on_overlap, unfinished, &mut occurrences);
    let next_at = schedule.next_after(now.max(last_at));
    Some(Firing { occurrences, last_at, next_at, missed_at, skipped_at })
}

/// Removes the occurrences that would overlap with another run, and returns the latest of them.
fn skip_overlapping(
    on_overlap: OnOverlap,
    unfinished: usize,
    occurrences: &mut Vec<Timestamp>,
) -> Option<Timestamp> {
    let kept = match on_overlap {
        OnOverlap::Queue => MAX_UNFINISHED_RUNS.saturating_sub(unfinished),
        OnOverlap::Skip if unfinished > 0 => 0,
        // Several occurrences at once overlap each other.
        OnOverlap::Skip | OnOverlap::Replace => 1,
    };
    let skipped = occurrences.len().saturating_sub(kept);
    occurrences.drain(..skipped).next_back()
}

/// The occurrences up to now that may get a run, in order.
struct DueOccurrences {
    missed: Vec<Timestamp>,
    on_time: Vec<Timestamp>,
}

impl DueOccurrences {
    fn of(schedule: &Schedule, now: Timestamp) -> Option<Self> {
        let first = schedule.next_at.filter(|at| *at <= now)?;
        let grace = i64::try_from(MISSED_AFTER.as_millis()).unwrap_or(i64::MAX);
        let missed_before = Timestamp::from_millis(now.as_millis().saturating_sub(grace));
        let on_time_from = if first >= missed_before {
            Some(first)
        } else {
            schedule.next_after(just_before(missed_before))
        };
        let on_time = std::iter::successors(on_time_from, |at| schedule.next_after(*at))
            .take_while(|at| *at <= now)
            .collect();
        Some(Self { missed: missed(schedule, first, missed_before), on_time })
    }
}

/// The latest occurrences before this time, up to the limit of the policy.
fn missed(schedule: &Schedule, first: Timestamp, before: Timestamp) -> Vec<Timestamp> {
    let mut missed = Vec::new();
    let mut until = just_before(before);
    while missed.len() < schedule.policy.missed_limit as usize && first <= until {
        let latest = schedule.when.latest_until(schedule.created_at, first, until);
        missed.push(latest.unwrap_or(first));
        let Some(_) = latest else {
            break;
        };
        until = just_before(missed[missed.len() - 1]);
    }
    missed.reverse();
    missed
}

fn just_before(at: Timestamp) -> Timestamp {
    Timestamp::from_millis(at.as_millis() - 1)
}
