//! I13, and what is promised beside the invariants: nothing is left, the counters are right, and people are told.

use std::collections::BTreeMap;

use super::case::{self, Case};
use super::invariant::Invariant;
use super::timing;
use super::verdict::Verdict;
use crate::domain::life::StateName;
use crate::proof::evidence::Evidence;

pub(super) fn check(evidence: &Evidence, verdict: &mut Verdict) {
    verdict.expect(Invariant::NothingLeft, None, evidence.left.is_empty(), || evidence.left.join("; "));
    let mut counted: BTreeMap<StateName, u64> = BTreeMap::new();
    for job in &evidence.jobs {
        *counted.entry(job.record.job.life.state.name()).or_default() += 1;
    }
    verdict.expect(Invariant::NothingLeft, None, evidence.counted == counted, || {
        format!("the counters say {:?}, and there are {counted:?}", evidence.counted)
    });
    if let Some(limit) = evidence.abandoned_limit {
        verdict.expect(Invariant::NoticedSoon, None, evidence.longest_abandoned <= limit, || {
            format!("a job was in the hands of a dead worker for {:?}", evidence.longest_abandoned)
        });
    }
    let is_told = evidence.problems.iter().any(|problem| problem == "no_worker");
    verdict.expect(Invariant::Told, None, is_told, || {
        format!("no worker ran, and `status` only knew of {:?}", evidence.problems)
    });
    check_dependencies(evidence, verdict);
}

fn check_dependencies(evidence: &Evidence, verdict: &mut Verdict) {
    let cases = case::cases(evidence);
    let by_id: BTreeMap<&str, &Case<'_>> = cases.iter().map(|case| (case.id, case)).collect();
    for case in &cases {
        let Some(plan) = case.plan else {
            continue;
        };
        for on in plan.depends_on.iter().filter_map(|id| by_id.get(id.as_str())) {
            timing::check_dependency(case, plan, on, verdict);
        }
    }
}
