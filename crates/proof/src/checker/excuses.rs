//! Stated exceptions from the promises across hosts.
//!
//! A host whose processes are all stopped cannot end its commands. When they continue, an attempt that was given to another
//! host may still run for a moment. A standby that is promoted without the last commits of the primary loses exactly these.

use std::collections::HashSet;
use std::time::Duration;

use super::case::{Case, ended_by_command};
use crate::calls::Call;
use crate::evidence::{Disturbances, Evidence, JobEvidence, LostTail};
use crate::ledger::Line;

/// How long after it continues a host may take to end the commands of lost leases, on a busy machine.
const AWAKENING: Duration = Duration::from_secs(3);

#[derive(Debug)]
pub(super) struct Excuses<'e> {
    disturbances: &'e Disturbances,
    /// The attempts that were taken from their host.
    taken: HashSet<(&'e str, u32)>,
}

impl<'e> Excuses<'e> {
    pub(super) fn of(evidence: &'e Evidence) -> Self {
        let jobs = evidence.jobs.iter().filter(|_| !evidence.disturbances.frozen.is_empty());
        Self { disturbances: &evidence.disturbances, taken: jobs.flat_map(taken_attempts).collect() }
    }

    /// Whether an attempt that was taken from a stopped host wrote the line when the host continued.
    pub(super) fn cover(&self, line: &Line) -> bool {
        let was_frozen = self.disturbances.frozen.iter().any(|frozen| {
            frozen.host == line.host && (frozen.from..=frozen.to + AWAKENING).contains(&line.at)
        });
        was_frozen && self.taken.contains(&(line.job.as_str(), line.attempt))
    }

    /// Whether anything happened to the job while commits were lost.
    pub(super) fn may_have_lost_commits(&self, case: &Case<'_>) -> bool {
        self.disturbances.lost_tails.iter().any(|tail| {
            case.calls.iter().any(|call| tail.overlaps(call))
                || case.lines.iter().any(|line| (tail.from..=tail.to).contains(&line.at))
        })
    }
}

/// The attempts of a job that did not end by themselves.
fn taken_attempts(job: &JobEvidence) -> impl Iterator<Item = (&str, u32)> {
    let attempts = job.record.history.iter();
    let taken =
        attempts.filter(|attempt| attempt.ending.as_ref().is_some_and(|ending| !ended_by_command(ending)));
    taken.map(|attempt| (job.id(), attempt.number))
}

impl LostTail {
    /// Whether the call may have been acknowledged by a commit that was lost.
    pub(super) fn overlaps(&self, call: &Call) -> bool {
        call.began <= self.to && call.ended >= self.from
    }
}
