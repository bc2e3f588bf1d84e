//! Sample deliveries for `hook test`.

use domain::hook::{BatchPayload, DlqPayload, JobResult, Payload, Subject, Trigger, WorkerPayload};
use domain::job::life::{DeadReason, Life, State, StateName};
use domain::job::options::JobOptions;
use domain::job::{Job, LatestAttempt};
use domain::values::name::{JobIdSequence, QueueName};
use domain::values::timestamp::Timestamp;
use store::{Delivery, Hook};

/// `max_retries` of the sample job.
const RETRIES: u32 = 3;

/// A delivery for a fictitious event; its name starts with `test-`.
pub fn sample(hook: &Hook, now: Timestamp, random: u64) -> Delivery {
    let name = format!("test-{}", JobIdSequence::default().next(now, random));
    let (event, at) = (hook.trigger.event(), now);
    let payload = |subject| Payload { delivery: &name, event, at, subject }.to_json();
    let payload = match &hook.trigger {
        Trigger::Job { result, queue } => {
            let job = sample_job(*result, queue.clone(), now);
            payload(Subject::Job(Box::new((&job).into())))
        }
        Trigger::BatchFinished => {
            let count = |state: StateName| (state.name(), u64::from(state == StateName::Completed));
            payload(Subject::Batch(BatchPayload { name: "sample", jobs: StateName::ALL.map(count).into() }))
        }
        Trigger::WorkerCrashed => {
            payload(Subject::Worker(WorkerPayload { id: "w-sample", host: "sample", jobs: vec!["sample"] }))
        }
        Trigger::DlqAbove { threshold, queue } => payload(Subject::Dlq(DlqPayload {
            count: threshold.saturating_add(1),
            threshold: *threshold,
            queue: queue.as_ref().map(QueueName::as_str),
        })),
    };
    Delivery {
        number: 0,
        hook: hook.name.clone(),
        trigger: hook.trigger.clone(),
        target: hook.target.clone(),
        payload,
        name,
    }
}

fn sample_job(result: JobResult, queue: Option<QueueName>, now: Timestamp) -> Job {
    let begun = Life::begin(None, RETRIES, 0, now);
    let (state, failures) = match result {
        JobResult::Success => (State::Completed { finished_at: now }, 0),
        JobResult::Failure => (State::Failed, 1),
        JobResult::Dead => {
            (State::Dead { finished_at: now, reason: DeadReason::RetriesExhausted }, RETRIES + 1)
        }
    };
    let exit_code = i32::from(failures > 0);
    Job {
        id: "sample".parse().expect("`sample` is a valid id"),
        number: 0,
        queue: queue.unwrap_or_else(QueueName::default_queue),
        command: "echo sample".to_owned(),
        priority: 0,
        life: Life { state, attempts: failures.max(1), failures, ..begun },
        created_at: now,
        updated_at: now,
        timeout: None,
        cwd: None,
        tags: Vec::new(),
        depends_on: Vec::new(),
        unique_key: None,
        options: JobOptions::default(),
        batch: None,
        latest: LatestAttempt {
            started_at: Some(now),
            exit_code: Some(exit_code),
            signal: None,
            error: (exit_code > 0).then(|| "exit code 1: this is a sample".to_owned()),
        },
    }
}
