//! Explaining why a job is not running.

use serde::Serialize;

use crate::OpError;
use crate::worker::live::live_workers;
use domain::explain;
use domain::explain::{Count, Explanation, Facts, Reason, WorkerFacts};
use domain::job::Job;
use domain::job::life::StateName;
use domain::values::name::JobId;
use domain::values::timestamp::Timestamp;
use store::{ExplainFacts, ServedJobs, Store, UnkillableProcess, Worker, WorkerState};

/// A job and the explanation of its state.
#[derive(Clone, Debug, PartialEq)]
pub struct JobExplanation {
    pub job: Job,
    pub now: Timestamp,
    pub explanation: Explanation,
}

pub fn explain(store: &dyn Store, id: &JobId) -> Result<JobExplanation, OpError> {
    let job_facts = store.explain_facts(id)?.ok_or_else(|| OpError::NoSuchJob(id.clone()))?;
    let workers = live_workers(store)?;
    let mut unkillable = store.unkillable()?;
    unkillable.retain(|found| found.lease.job == *id && found.is_alive());
    let facts = facts(job_facts, &workers, &unkillable);
    let explanation = explain::explain(&facts);
    Ok(JobExplanation { job: facts.job, now: facts.now, explanation })
}

fn facts(job_facts: ExplainFacts, workers: &[Worker], unkillable: &[UnkillableProcess]) -> Facts {
    let takes_new = |worker: &&Worker| match worker.state {
        WorkerState::Running => true,
        WorkerState::Draining | WorkerState::Stopped => false,
    };
    let serves = |worker: &&Worker| worker.served.has(&job_facts.job);
    let all: Vec<&Worker> = workers.iter().filter(takes_new).collect();
    let serving: Vec<&Worker> = all.iter().copied().filter(serves).collect();
    // A worker that serves all queues claims the highest priority across them, so jobs of other queues are ahead too.
    let serves_all = serving.iter().any(|worker| worker.served == ServedJobs::All);
    let elsewhere = if serves_all { job_facts.ahead_elsewhere } else { Count { least: 0, is_exact: true } };
    Facts {
        now: job_facts.now,
        waits_for: job_facts.waits_for,
        queue: job_facts.queue,
        ahead: Count {
            least: job_facts.ahead_in_queue.least + elsewhere.least,
            is_exact: job_facts.ahead_in_queue.is_exact && elsewhere.is_exact,
        },
        ahead_in_queue: job_facts.ahead_in_queue,
        durations: job_facts.durations,
        workers: WorkerFacts {
            all: all.len() as u64,
            draining: workers.iter().filter(|worker| serves(worker) && !takes_new(worker)).count() as u64,
            serving: serving.len() as u64,
            slots: serving.iter().map(|worker| u64::from(worker.concurrency)).sum(),
            busy: serving.iter().map(|worker| u64::from(worker.running.min(worker.concurrency))).sum(),
        },
        unkillable: unkillable.iter().map(|found| (found.pid, found.why.clone())).collect(),
        job: job_facts.job,
    }
}

#[derive(Debug, Serialize)]
pub struct ExplanationJson<'a> {
    id: &'a JobId,
    state: StateName,
    reasons: &'a [Reason],
    probable_start: Option<Timestamp>,
    guessed_from: Option<u64>,
}

impl<'a> From<&'a JobExplanation> for ExplanationJson<'a> {
    fn from(explained: &'a JobExplanation) -> Self {
        let Explanation { reasons, probable_start, estimated_from } = &explained.explanation;
        Self {
            id: &explained.job.id,
            state: explained.job.life.state.name(),
            reasons,
            probable_start: *probable_start,
            guessed_from: *estimated_from,
        }
    }
}
