//! The JSON form of a job, for `--json`, HTTP and hook payloads.

use serde::Serialize;

use super::Job;
use super::life::State;
use crate::values::name::JobId;
use crate::values::timestamp::Timestamp;

#[derive(Debug, Serialize)]
pub struct JobJson<'a> {
    id: &'a str,
    queue: &'a str,
    command: &'a str,
    state: &'static str,
    priority: i32,
    attempts: u32,
    max_retries: u32,
    failures: u32,
    created_at: Timestamp,
    updated_at: Timestamp,
    run_at: Option<Timestamp>,
    started_at: Option<Timestamp>,
    finished_at: Option<Timestamp>,
    next_retry_at: Option<Timestamp>,
    timeout_ms: Option<u128>,
    cwd: Option<&'a str>,
    tags: &'a [String],
    depends_on: Vec<&'a str>,
    unique_key: Option<&'a str>,
    worker_id: Option<&'a str>,
    lease_until: Option<Timestamp>,
    exit_code: Option<i32>,
    signal: Option<String>,
    error: Option<&'a str>,
    reason: Option<&'static str>,
}

impl<'a> From<&'a Job> for JobJson<'a> {
    fn from(job: &'a Job) -> Self {
        let life = &job.life;
        let mut json = Self {
            id: job.id.as_str(),
            queue: job.queue.as_str(),
            command: &job.command,
            state: life.state.name().name(),
            priority: job.priority,
            attempts: life.attempts,
            max_retries: life.max_retries,
            failures: life.failures,
            created_at: job.created_at,
            updated_at: job.updated_at,
            run_at: life.run_at,
            started_at: job.latest.started_at,
            finished_at: None,
            next_retry_at: None,
            timeout_ms: job.timeout.map(|timeout| timeout.as_millis()),
            cwd: job.cwd.as_deref(),
            tags: &job.tags,
            depends_on: job.depends_on.iter().map(JobId::as_str).collect(),
            unique_key: job.unique_key.as_deref(),
            worker_id: None,
            lease_until: None,
            exit_code: job.latest.exit_code,
            signal: job.latest.signal.map(|signal| signal.to_string()),
            error: job.latest.error.as_deref(),
            reason: None,
        };
        match &life.state {
            State::Pending { .. } => {}
            State::Processing(lease) => {
                json.worker_id = Some(lease.worker.as_str());
                json.lease_until = Some(lease.until);
            }
            State::Completed { finished_at } => json.finished_at = Some(*finished_at),
            State::Failed => json.next_retry_at = Some(life.due_at),
            State::Dead { finished_at, reason } => {
                json.finished_at = Some(*finished_at);
                json.reason = Some(reason.name());
            }
            State::Cancelled { finished_at, reason } => {
                json.finished_at = Some(*finished_at);
                json.reason = Some(reason.name());
            }
        }
        json
    }
}
