//! The evidence about one job.

use std::collections::BTreeMap;

use super::excuses::Excuses;
use crate::calls::{Answer, Call};
use crate::evidence::{Evidence, JobEvidence, ScheduleEvidence};
use crate::ledger::{LedgerEvent, Line};
use crate::plan::JobPlan;
use domain::job::outcome::Outcome;
use domain::job::{Attempt, Ending};

#[derive(Debug, Default)]
pub struct Case<'e> {
    pub id: &'e str,
    /// How it was requested, if it was.
    pub plan: Option<&'e JobPlan>,
    /// The schedule that it is a run of.
    pub schedule: Option<&'e ScheduleEvidence>,
    pub calls: Vec<&'e Call>,
    /// In the order of writing, without those that are excused.
    pub lines: Vec<&'e Line>,
    /// Lines of attempts whose host was stopped, so that it could not end them.
    pub excused: Vec<&'e Line>,
    /// Some of its commits may have been lost.
    pub is_in_lost_tail: bool,
    /// The stored job, if it exists.
    pub job: Option<&'e JobEvidence>,
    /// See [`Evidence::may_lose_output`].
    pub may_lose_output: bool,
    /// See [`Evidence::is_clock_set`].
    pub is_clock_set: bool,
}

/// One case for each job that was requested, has run, or is stored.
pub(super) fn cases(evidence: &Evidence) -> Vec<Case<'_>> {
    let mut cases: BTreeMap<&str, Case<'_>> = BTreeMap::new();
    for call in &evidence.calls {
        for job in call.jobs() {
            cases.entry(&job.id).or_default().plan = Some(job);
        }
    }
    let excuses = Excuses::of(evidence);
    for line in &evidence.lines {
        let case = cases.entry(&line.job).or_default();
        if excuses.cover(line) { &mut case.excused } else { &mut case.lines }.push(line);
    }
    for job in &evidence.jobs {
        cases.entry(job.id()).or_default().job = Some(job);
    }
    for (id, case) in &mut cases {
        case.id = id;
        case.may_lose_output = evidence.may_lose_output;
        case.is_clock_set = evidence.is_clock_set;
        case.schedule = evidence.schedule_of(id);
        case.plan = case.plan.or(case.schedule.map(|schedule| &schedule.job));
        case.calls = evidence.calls.iter().filter(|call| call.concerns(id)).collect();
        case.is_in_lost_tail = excuses.may_have_lost_commits(case);
    }
    cases.into_values().collect()
}

impl<'e> Case<'e> {
    pub(super) fn history(&self) -> &'e [Attempt] {
        self.job.map_or(&[], |job| &job.record.history)
    }

    pub(super) fn lines_of(&self, attempt: u32) -> impl Iterator<Item = &'e Line> {
        self.lines.iter().copied().filter(move |line| line.attempt == attempt)
    }

    pub(super) fn starts(&self) -> impl Iterator<Item = &'e Line> {
        self.lines.iter().copied().filter(|line| matches!(line.event, LedgerEvent::Start { .. }))
    }

    pub(super) fn start_of(&self, attempt: u32) -> Option<&'e Line> {
        self.starts().find(|line| line.attempt == attempt)
    }

    pub(super) fn end_of(&self, attempt: u32) -> Option<&'e Line> {
        self.lines_of(attempt).find(|line| matches!(line.event, LedgerEvent::End { .. }))
    }

    /// The calls that may have made it pending again.
    pub(super) fn retries(&self) -> impl Iterator<Item = &'e Call> {
        let counts = |call: &&Call| !matches!(call.answer, Answer::Failed(_));
        self.calls.iter().copied().filter(|call| call.retries(self.id)).filter(counts)
    }

    pub(super) fn retry_count(&self) -> u64 {
        self.retries().count() as u64
    }
}

/// Whether the command itself ended the attempt.
pub(super) fn ended_by_command(ending: &Ending) -> bool {
    is_command_failure(ending) || ending.outcome == Outcome::Success
}

/// Whether the attempt used up a retry.
pub(super) fn is_command_failure(ending: &Ending) -> bool {
    match ending.outcome {
        Outcome::Failure { .. } | Outcome::Signal { .. } | Outcome::Timeout | Outcome::SpawnError => true,
        Outcome::Success | Outcome::Lost | Outcome::Cancelled | Outcome::Released => false,
    }
}
