//! I13, P4 and P5: nothing is left, the counters are correct, dead workers are noticed, and problems are reported.

use std::collections::BTreeMap;

use super::case;
use super::case::Case;
use super::invariant::Invariant;
use super::timing;
use super::verdict::Verdict;
use crate::evidence::Evidence;
use domain::job::life::StateName;
use store::Batch;

pub(super) fn check(evidence: &Evidence, verdict: &mut Verdict) {
    verdict.expect(Invariant::NothingLeft, None, evidence.left.is_empty(), || evidence.left.join("; "));
    let mut counted: BTreeMap<StateName, u64> = BTreeMap::new();
    for job in &evidence.jobs {
        *counted.entry(job.record.job.life.state.name()).or_default() += 1;
    }
    verdict.expect(Invariant::NothingLeft, None, evidence.counted == counted, || {
        format!("the counters are {:?}, but a recount gives {counted:?}", evidence.counted)
    });
    if let Some(limit) = evidence.abandoned_limit {
        verdict.expect(Invariant::NoticedSoon, None, evidence.longest_abandoned <= limit, || {
            format!("a dead worker kept a job for {:?}", evidence.longest_abandoned)
        });
    }
    let is_reported = evidence.problems.iter().any(|problem| problem == "no_worker");
    verdict.expect(Invariant::ProblemsReported, None, is_reported, || {
        format!("no worker was running, but `status` reported only {:?}", evidence.problems)
    });
    check_calls(evidence, verdict);
    check_batches(evidence, verdict);
    check_dependencies(evidence, verdict);
}

/// No call may panic. The other checks treat a panic as an unknown answer and would not notice it.
fn check_calls(evidence: &Evidence, verdict: &mut Verdict) {
    for call in &evidence.calls {
        let panicked = call.stderr.contains("panicked at");
        verdict.expect(Invariant::ProblemsReported, None, !panicked, || format!("a call panicked: {call}"));
    }
}

/// The stored batches are exactly those of the jobs, their counters are correct, and each records whether it is finished.
fn check_batches(evidence: &Evidence, verdict: &mut Verdict) {
    let mut recounted: BTreeMap<&str, BTreeMap<StateName, u64>> = BTreeMap::new();
    for job in &evidence.jobs {
        if let Some(batch) = &job.record.job.batch {
            let counts = recounted.entry(batch.as_str()).or_default();
            *counts.entry(job.record.job.life.state.name()).or_default() += 1;
        }
    }
    let counted: BTreeMap<&str, &BTreeMap<StateName, u64>> =
        evidence.batches.iter().map(|batch| (batch.name.as_str(), &batch.counts)).collect();
    let is_right = counted
        .iter()
        .map(|(name, counts)| (*name, *counts))
        .eq(recounted.iter().map(|(name, counts)| (*name, counts)));
    verdict.expect(Invariant::NothingLeft, None, is_right, || {
        format!("the batches count {counted:?}, but a recount gives {recounted:?}")
    });
    for batch in &evidence.batches {
        let is_finished = batch.finished() == batch.total();
        verdict.expect(Invariant::NothingLeft, None, batch.finished_at.is_some() == is_finished, || {
            let Batch { name, finished_at, counts, .. } = batch;
            format!("batch {name} has the jobs {counts:?}, but its finish time is {finished_at:?}")
        });
    }
}

fn check_dependencies(evidence: &Evidence, verdict: &mut Verdict) {
    let cases = case::cases(evidence);
    let by_id: BTreeMap<&str, &Case<'_>> = cases.iter().map(|case| (case.id, case)).collect();
    for case in &cases {
        let Some(plan) = case.plan else {
            continue;
        };
        for on in plan.depends_on.iter().filter_map(|id| by_id.get(id.as_str())) {
            let on = holder_for(case, on, &by_id).unwrap_or(on);
            if case.is_in_lost_tail || on.is_in_lost_tail {
                continue;
            }
            timing::check_dependency(case, plan, on, verdict);
        }
    }
}

/// The job that `case` depends on instead of `on`, because it held the unique key of `on` when both were enqueued.
fn holder_for<'c, 'e>(
    case: &Case<'e>,
    on: &Case<'e>,
    by_id: &BTreeMap<&str, &'c Case<'e>>,
) -> Option<&'c Case<'e>> {
    let key = on.plan?.unique_key.as_ref()?;
    let stored = &case.job?.record.job.depends_on;
    let mut candidates = stored.iter().filter_map(|id| by_id.get(id.as_str()).copied());
    let is_kept = stored.iter().any(|id| id.as_str() == on.id);
    let holds_key =
        |case: &&Case<'_>| case.job.is_some_and(|job| job.record.job.unique_key.as_ref() == Some(key));
    if is_kept { None } else { candidates.find(holds_key) }
}
