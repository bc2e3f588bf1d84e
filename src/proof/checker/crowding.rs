//! I11: a worker never runs more at once than it has slots.

use std::collections::{HashMap, HashSet};

use super::invariant::Invariant;
use super::verdict::Verdict;
use crate::proof::evidence::Evidence;
use crate::proof::ledger::{Line, What};

type Attempt<'e> = (&'e str, u32);

pub(super) fn check(evidence: &Evidence, verdict: &mut Verdict) {
    let last = last_signs_of_life(evidence);
    let mut running: HashMap<&str, HashSet<Attempt<'_>>> = HashMap::new();
    let mut workers: HashMap<Attempt<'_>, &str> = HashMap::new();
    for (at, line) in evidence.lines.iter().enumerate() {
        let attempt = attempt(line);
        if let What::Start { worker } = &line.what {
            workers.insert(attempt, worker);
            let crowd = running.entry(worker).or_default();
            crowd.insert(attempt);
            let count = crowd.len();
            verdict.expect(
                Invariant::WithinLimits,
                Some(&line.job),
                count <= evidence.concurrency as usize,
                || format!("{worker} ran {count} at once and has {} slots", evidence.concurrency),
            );
        }
        if last.get(&attempt) == Some(&at)
            && let Some(crowd) = workers.get(&attempt).and_then(|worker| running.get_mut(worker))
        {
            crowd.remove(&attempt);
        }
    }
}

fn attempt(line: &Line) -> Attempt<'_> {
    (&line.job, line.attempt)
}

/// Where each attempt's command was heard of for the last time. What it left behind needs no slot.
fn last_signs_of_life(evidence: &Evidence) -> HashMap<Attempt<'_>, usize> {
    let lines = evidence.lines.iter().enumerate().filter(|(_, line)| line.is_by_command());
    lines.map(|(at, line)| (attempt(line), at)).collect()
}
