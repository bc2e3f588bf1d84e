//! Explaining why a job is not running.

use crate::OpError;
use crate::worker::live::live_workers;
use domain::explain;
use domain::explain::{Explanation, Facts, WorkerFacts};
use domain::job::Job;
use domain::values::clock::TimeFormat;
use domain::values::name::JobId;
use domain::values::timestamp::Timestamp;
use store::{ServedJobs, Store, Worker, WorkerState};

/// A job and the explanation of its state.
#[derive(Clone, Debug, PartialEq)]
pub struct JobExplanation {
    pub job: Job,
    pub now: Timestamp,
    pub explanation: Explanation,
}

/// The sentences show times in this format.
pub fn explain(store: &dyn Store, id: &JobId, format: &TimeFormat) -> Result<JobExplanation, OpError> {
    let mut facts = store.explain_facts(id)?.ok_or_else(|| OpError::NoSuchJob(id.clone()))?;
    add_workers(&mut facts, &live_workers(store)?);
    for found in store.unkillable()?.into_iter().filter(|found| found.lease.job == *id && found.is_alive()) {
        facts.unkillable.push((found.pid, found.why));
    }
    let explanation = explain::explain(&facts, format);
    Ok(JobExplanation { job: facts.job, now: facts.now, explanation })
}

fn add_workers(facts: &mut Facts, workers: &[Worker]) {
    let takes_new = |worker: &&Worker| match worker.state {
        WorkerState::Running => true,
        WorkerState::Draining | WorkerState::Stopped => false,
    };
    let serves = |worker: &&Worker| worker.served.has(&facts.job);
    let all: Vec<&Worker> = workers.iter().filter(takes_new).collect();
    let serving: Vec<&Worker> = all.iter().copied().filter(serves).collect();
    facts.workers = WorkerFacts {
        all: all.len() as u64,
        draining: workers.iter().filter(|worker| serves(worker) && !takes_new(worker)).count() as u64,
        serving: serving.len() as u64,
        slots: serving.iter().map(|worker| u64::from(worker.concurrency)).sum(),
        busy: serving.iter().map(|worker| u64::from(worker.running.min(worker.concurrency))).sum(),
    };
    // Only a worker that serves all queues claims the highest priority across them.
    if !serving.iter().any(|worker| worker.served == ServedJobs::All) {
        facts.ahead = facts.ahead_in_queue;
    }
}
