//! Sample deliveries for `hook test`.

use domain::hook::{HookEvent, Payload, Subject, Trigger};
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
    let Trigger { events, queue, threshold, .. } = &hook.trigger;
    // Of several events, the first.
    let event = events.first();
    let payload = |subject: Subject<'_>| Payload { delivery: &name, event, at: now, subject }.to_json();
    let job = |state, failures| {
        let job = sample_job(state, failures, queue.clone(), now);
        payload(Subject::Job(Box::new((&job).into())))
    };
    let dead = State::Dead { finished_at: now, reason: DeadReason::RetriesExhausted };
    let payload = match event {
        HookEvent::Success => job(State::Completed { finished_at: now }, 0),
        HookEvent::Failure => job(State::Failed, 1),
        HookEvent::Dead => job(dead, RETRIES + 1),
        HookEvent::BatchFinished => {
            let count = |state: StateName| (state.name(), u64::from(state == StateName::Completed));
            payload(Subject::Batch { name: "sample", jobs: StateName::ALL.map(count).into() })
        }
        HookEvent::WorkerCrashed => {
            payload(Subject::Worker { id: "w-sample", host: "sample", jobs: vec!["sample"] })
        }
        HookEvent::DlqAbove => {
            let threshold = threshold.unwrap_or_default();
            let count = threshold.saturating_add(1);
            payload(Subject::Dlq { count, threshold, queue: queue.as_ref() })
        }
    };
    let Hook { name: hook, trigger, target, .. } = hook.clone();
    Delivery { number: 0, hook, trigger, target, payload, name }
}

fn sample_job(state: State, failures: u32, queue: Option<QueueName>, now: Timestamp) -> Job {
    let exit_code = i32::from(failures > 0);
    Job {
        id: "sample".parse().expect("`sample` is a valid id"),
        number: 0,
        queue: queue.unwrap_or_else(QueueName::default_queue),
        command: "echo sample".to_owned(),
        priority: 0,
        life: Life { state, attempts: failures.max(1), failures, ..Life::begin(None, RETRIES, 0, now) },
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
