//! Explaining why a job is not running.

use super::dependency_failure::failed_dependency;
use crate::OpError;
use crate::worker::live::live_workers;
use domain::explain;
use domain::explain::named_jobs::BusySlot;
use domain::explain::{Explanation, Facts, WorkerFacts};
use domain::job::Job;
use domain::job::life::StateName;
use domain::values::clock::TimeFormat;
use domain::values::name::{JobId, WorkerId};
use domain::values::timestamp::Timestamp;
use store::{JobFilter, Page, Phase, ServedJobs, Store, Worker, WorkerState};

/// How many running jobs are read to find those in the way.
const MAX_RUNNING_READ: usize = 200;

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
    let workers = live_workers(store)?;
    add_workers(&mut facts, &workers);
    facts.failed_dependency = failed_dependency(store, &facts.job)?;
    let is_waiting = matches!(facts.job.life.state.name(), StateName::Pending | StateName::Failed);
    if is_waiting && facts.workers.serving > 0 {
        let are_all_busy = facts.workers.busy >= facts.workers.slots;
        if are_all_busy || facts.queue.is_full() {
            facts.busy_slots = busy_slots(store, &facts.job, &workers)?;
        }
        if !are_all_busy {
            facts.busy_slots.retain(|slot| slot.queue == facts.job.queue);
        }
    }
    for found in store.unkillable()?.into_iter().filter(|found| found.lease.job == *id && found.is_alive()) {
        facts.unkillable.push((found.pid, found.why));
    }
    let mut explanation = explain::explain(&facts, format);
    name_by_number(store, &mut explanation)?;
    Ok(JobExplanation { job: facts.job, now: facts.now, explanation })
}

/// Names the jobs that it waits for as people name them.
fn name_by_number(store: &dyn Store, explanation: &mut Explanation) -> Result<(), OpError> {
    for reason in &mut explanation.reasons {
        for (id, _) in reason.jobs.iter().filter(|(id, _)| id.is_generated()) {
            if let Some(job) = store.find(id)? {
                reason.message = reason.message.replacen(id.as_str(), &job.handle(), 1);
            }
        }
    }
    Ok(())
}

/// The jobs in the slots of the workers that could run this job, the longest first.
fn busy_slots(store: &dyn Store, job: &Job, workers: &[Worker]) -> Result<Vec<BusySlot>, OpError> {
    let serves = |id: &WorkerId| {
        workers.iter().any(|worker| worker.id == *id && takes_new(worker) && worker.served.has(job))
    };
    let running = JobFilter::in_phase(Phase::State(StateName::Processing));
    let mut slots = Vec::new();
    for job in store.list(&running, &Page { limit: MAX_RUNNING_READ, after: None })? {
        let lease = job.life.state.lease().filter(|lease| serves(&lease.worker));
        slots.extend(lease.map(|lease| BusySlot {
            id: job.id.clone(),
            handle: job.handle(),
            queue: job.queue.clone(),
            since: lease.started_at,
            is_paused: lease.paused_at.is_some(),
        }));
    }
    slots.sort_by_key(|slot| slot.since);
    Ok(slots)
}

fn takes_new(worker: &Worker) -> bool {
    match worker.state {
        WorkerState::Running => true,
        WorkerState::Draining | WorkerState::Stopped => false,
    }
}

fn add_workers(facts: &mut Facts, workers: &[Worker]) {
    let serves = |worker: &&Worker| worker.served.has(&facts.job);
    let all: Vec<&Worker> = workers.iter().filter(|worker| takes_new(worker)).collect();
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
