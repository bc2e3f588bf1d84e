//! I11: never more attempts run at once than the slots of a worker, the limit of a queue, a unique key or a schedule allow.

use std::collections::{HashMap, HashSet};
use std::fmt;

use super::case;
use super::excuses::Excuses;
use super::invariant::Invariant;
use super::verdict::Verdict;
use crate::evidence::{Evidence, JobEvidence};
use crate::ledger::{LedgerEvent, Line};

type Attempt<'e> = (&'e str, u32);

/// A scope with a concurrency limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum LimitScope<'e> {
    Worker(&'e str),
    Queue(&'e str),
    Key(&'e str),
    Schedule(&'e str),
}

impl fmt::Display for LimitScope<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Worker(name) => write!(out, "worker {name}"),
            Self::Queue(name) => write!(out, "queue {name}"),
            Self::Key(name) => write!(out, "key {name}"),
            Self::Schedule(name) => write!(out, "schedule {name}"),
        }
    }
}

pub(super) fn check(evidence: &Evidence, verdict: &mut Verdict) {
    let lines = judged_lines(evidence);
    let last = last_signs_of_life(&lines);
    let jobs: HashMap<&str, &JobEvidence> = evidence.jobs.iter().map(|job| (job.id(), job)).collect();
    let mut crowds: HashMap<LimitScope<'_>, HashSet<Attempt<'_>>> = HashMap::new();
    for (at, line) in lines.iter().enumerate() {
        let attempt = attempt(line);
        if let LedgerEvent::Start { worker } = &line.event {
            for (scope, limit) in limits(evidence, worker, jobs.get(line.job.as_str()).copied()) {
                let crowd = crowds.entry(scope).or_default();
                crowd.insert(attempt);
                let count = crowd.len();
                verdict.expect(Invariant::WithinLimits, Some(&line.job), count <= limit, || {
                    format!("{count} attempts ran at once, but {scope} allows {limit}")
                });
            }
        }
        if last.get(&attempt) == Some(&at) {
            for crowd in crowds.values_mut() {
                crowd.remove(&attempt);
            }
        }
    }
}

/// The scopes of an attempt, each with its limit.
fn limits<'e>(
    evidence: &'e Evidence,
    worker: &'e str,
    job: Option<&'e JobEvidence>,
) -> Vec<(LimitScope<'e>, usize)> {
    let mut limits = vec![(LimitScope::Worker(worker), evidence.concurrency as usize)];
    let Some(job) = job.map(|job| &job.record.job) else {
        return limits;
    };
    if let Some(limit) = evidence.queue_limits.get(job.queue.as_str()) {
        limits.push((LimitScope::Queue(job.queue.as_str()), *limit as usize));
    }
    // The runs of a schedule in a trial wait for each other or are skipped.
    let schedule = evidence.schedule_of(job.id.as_str());
    limits.extend(schedule.map(|of| (LimitScope::Schedule(of.schedule.name.as_str()), 1)));
    limits.extend(job.unique_key.as_deref().map(|key| (LimitScope::Key(key), 1)));
    limits
}

fn attempt(line: &Line) -> Attempt<'_> {
    (&line.job, line.attempt)
}

/// The lines of jobs without an excuse, in their order.
fn judged_lines(evidence: &Evidence) -> Vec<&Line> {
    let excuses = Excuses::of(evidence);
    let cases = case::cases(evidence);
    let jobs_in_tails: HashSet<&str> =
        cases.iter().filter(|case| case.is_in_lost_tail).map(|case| case.id).collect();
    let is_judged = |line: &&Line| !excuses.cover(line) && !jobs_in_tails.contains(line.job.as_str());
    evidence.lines.iter().filter(is_judged).collect()
}

/// The last line of each attempt's command. Its escapees do not count against a limit.
fn last_signs_of_life<'e>(lines: &[&'e Line]) -> HashMap<Attempt<'e>, usize> {
    let lines = lines.iter().copied().enumerate().filter(|(_, line)| line.is_by_command());
    lines.map(|(at, line)| (attempt(line), at)).collect()
}
