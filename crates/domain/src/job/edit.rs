//! Edits of a job that is not running: which fields can change, and how the job's state changes with them.

use std::collections::BTreeMap;
use std::time::Duration;

use super::backoff::BackoffChoice;
use super::life::{Life, Refusal, State};
use super::limits::Limits;
use super::request::{JobRequest, RequestError, Timeout};
use super::retry_rules::{ExitCodes, RetryRules};
use super::{Job, OnDependencyFailure, Start};
use crate::values::name::QueueName;
use crate::values::timestamp::Timestamp;

/// The new values of a job's fields; a field that is `None` stays as it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Edit {
    pub command: Option<String>,
    pub queue: Option<QueueName>,
    pub priority: Option<i32>,
    pub max_retries: Option<u32>,
    pub timeout: Option<Timeout>,
    pub start: Option<Start>,
    pub backoff: Option<Option<BackoffChoice>>,
    pub cwd: Option<String>,
    pub tags: Option<Vec<String>>,
    pub on_dependency_failure: Option<OnDependencyFailure>,
    pub limits: Option<Limits>,
    pub retry_on: Option<Option<ExitCodes>>,
    pub no_retry_on: Option<Option<ExitCodes>>,
    /// Variables to add or change.
    pub env: BTreeMap<String, String>,
    /// Variables to remove.
    pub unset_env: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum EditError {
    #[error("`{field}` cannot be changed: {why}")]
    Fixed { field: &'static str, why: &'static str },
    #[error("nothing to change")]
    Nothing,
    #[error(transparent)]
    Request(#[from] RequestError),
}

impl Edit {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The edit requested by flags, given as the fields of a job.
    pub fn from_request(request: JobRequest, unset_env: Vec<String>) -> Result<Self, EditError> {
        refuse_fixed(&request)?;
        Ok(Self {
            max_retries: retries(&request)?,
            start: start(&request)?,
            command: request.command,
            queue: request.queue,
            priority: request.priority,
            timeout: request.timeout,
            backoff: request.backoff.map(Some),
            cwd: request.cwd,
            tags: (!request.tags.is_empty()).then_some(request.tags),
            on_dependency_failure: request.on_dependency_failure,
            limits: request.limits,
            retry_on: request.retry_on.map(Some),
            no_retry_on: request.no_retry_on.map(Some),
            env: request.env,
            unset_env,
        })
    }

    /// The difference between a job and its edited description. A field that the description leaves out is reset to its
    /// default, except the command, the working directory and the variables, which stay.
    pub fn between(job: &Job, edited: JobRequest) -> Result<Self, EditError> {
        refuse_fixed(&edited)?;
        let differs = |start: &Start| match start {
            Start::At(at) => Some(*at) != job.life.run_at,
            Start::Now => job.life.run_at.is_some(),
            Start::After(_) => true,
        };
        let timeout = edited.timeout.unwrap_or(Timeout::None);
        let before = job.timeout.map_or(Timeout::None, Timeout::After);
        Ok(Self {
            max_retries: retries(&edited)?.filter(|retries| *retries != job.life.max_retries),
            start: Some(start(&edited)?.unwrap_or(Start::Now)).filter(differs),
            command: edited.command.filter(|command| *command != job.command),
            queue: Some(edited.queue.unwrap_or_else(QueueName::default_queue))
                .filter(|queue| *queue != job.queue),
            priority: Some(edited.priority.unwrap_or(0)).filter(|priority| *priority != job.priority),
            timeout: (timeout != before).then_some(timeout),
            backoff: (edited.backoff != job.backoff).then_some(edited.backoff),
            cwd: edited.cwd.filter(|cwd| job.cwd.as_ref() != Some(cwd)),
            tags: (edited.tags != job.tags).then_some(edited.tags),
            on_dependency_failure: Some(edited.on_dependency_failure.unwrap_or_default())
                .filter(|choice| *choice != job.on_dependency_failure),
            limits: Some(edited.limits.unwrap_or_default()).filter(|limits| *limits != job.limits),
            retry_on: (edited.retry_on != job.retry.retry_on).then_some(edited.retry_on),
            no_retry_on: (edited.no_retry_on != job.retry.no_retry_on).then_some(edited.no_retry_on),
            env: edited.env.into_iter().filter(|(name, value)| job.env.get(name) != Some(value)).collect(),
            unset_env: Vec::new(),
        })
    }

    /// The names of the fields that this edit changes.
    pub fn fields(&self) -> Vec<&'static str> {
        let fields = [
            ("command", self.command.is_some()),
            ("queue", self.queue.is_some()),
            ("priority", self.priority.is_some()),
            ("max_retries", self.max_retries.is_some()),
            ("timeout", self.timeout.is_some()),
            ("run_at", self.start.is_some()),
            ("backoff", self.backoff.is_some()),
            ("cwd", self.cwd.is_some()),
            ("tags", self.tags.is_some()),
            ("on_dependency_failure", self.on_dependency_failure.is_some()),
            ("limits", self.limits.is_some()),
            ("retry_on", self.retry_on.is_some()),
            ("no_retry_on", self.no_retry_on.is_some()),
            ("env", !self.env.is_empty() || !self.unset_env.is_empty()),
        ];
        fields.into_iter().filter_map(|(name, is_changed)| is_changed.then_some(name)).collect()
    }

    /// The job's life after the edit. `None` if the new start time is out of range.
    pub fn life(&self, life: &Life, now: Timestamp) -> Result<Option<Life>, Refusal> {
        match life.state {
            State::Pending { .. } | State::Failed | State::Dead { .. } | State::Cancelled { .. } => {}
            State::Processing(_) | State::Completed { .. } => {
                return Err(Refusal::WrongState(life.state.name()));
            }
        }
        let mut edited = Life { max_retries: self.max_retries.unwrap_or(life.max_retries), ..life.clone() };
        let run_at = match self.start {
            None => return Ok(Some(edited)),
            Some(Start::Now) => None,
            Some(Start::At(at)) => Some(at),
            Some(Start::After(delay)) => match now.checked_add(delay) {
                Some(at) => Some(at),
                None => return Ok(None),
            },
        };
        edited.run_at = run_at;
        edited.due_at = run_at.map_or(now, |at| at.max(now));
        Ok(Some(edited))
    }

    /// Whether the new start time is out of range.
    pub fn is_too_late(&self, now: Timestamp) -> bool {
        matches!(self.start, Some(Start::After(delay)) if now.checked_add(delay).is_none())
    }

    /// The timeout of an attempt after the edit.
    pub fn timeout(&self, before: Option<Duration>) -> Option<Duration> {
        match self.timeout {
            None => before,
            Some(Timeout::None) => None,
            Some(Timeout::After(timeout)) => Some(timeout),
        }
    }

    /// The exit codes that are retried after the edit. Fails if the two lists contradict each other.
    pub fn retry(&self, before: &RetryRules) -> Result<RetryRules, EditError> {
        let rules = RetryRules::new(
            self.retry_on.unwrap_or(before.retry_on),
            self.no_retry_on.unwrap_or(before.no_retry_on),
        );
        Ok(rules.map_err(RequestError::from)?)
    }

    /// The variables after the edit.
    pub fn env(&self, before: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        let mut env = before.clone();
        env.retain(|name, _| !self.unset_env.contains(name));
        env.extend(self.env.clone());
        env
    }
}

/// Refuses to change fields that other jobs and callers rely on.
fn refuse_fixed(request: &JobRequest) -> Result<(), EditError> {
    let fixed = [
        ("id", request.id.is_some()),
        ("depends_on", !request.depends_on.is_empty()),
        ("unique_key", request.unique_key.is_some()),
        ("unique_for", request.unique_for.is_some()),
    ];
    match fixed.into_iter().find(|(_, is_given)| *is_given) {
        Some((field, _)) => Err(fixed_field(field)),
        None => Ok(()),
    }
}

/// The error for a field that cannot be changed, with the reason.
pub fn fixed_field(field: &'static str) -> EditError {
    let why = match field {
        "id" => "other jobs and scripts refer to the job by it",
        "depends_on" => "dependencies are fixed at enqueue time, which rules out cycles",
        "batch" => "callers may be waiting for the batch",
        _ => "other enqueues may have been deduplicated against it",
    };
    EditError::Fixed { field, why }
}

fn retries(request: &JobRequest) -> Result<Option<u32>, RequestError> {
    match (request.max_retries, request.max_attempts) {
        (Some(_), Some(_)) => Err(RequestError::BothRetries),
        (retries, None) => Ok(retries),
        (None, Some(attempts)) => Ok(Some(attempts.saturating_sub(1))),
    }
}

fn start(request: &JobRequest) -> Result<Option<Start>, RequestError> {
    match (request.run_at, request.delay) {
        (Some(_), Some(_)) => Err(RequestError::BothTimes),
        (Some(at), None) => Ok(Some(Start::At(at))),
        // A delay of zero means no start time.
        (None, Some(Duration::ZERO)) => Ok(Some(Start::Now)),
        (None, Some(delay)) => Ok(Some(Start::After(delay))),
        (None, None) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::life::{CancelReason, DeadReason, Lease, Losses, StateName};

    const NOW: Timestamp = Timestamp::from_millis(1_000_000);
    const LATER: Timestamp = Timestamp::from_millis(2_000_000);

    fn life(state: State) -> Life {
        Life {
            state,
            run_at: None,
            due_at: Timestamp::from_millis(1),
            attempts: 3,
            max_retries: 2,
            failures: 1,
            losses: Losses::default(),
        }
    }

    fn states() -> [State; 7] {
        let lease = Lease {
            worker: "w".parse().expect("valid name"),
            started_at: NOW,
            until: NOW,
            cancel_requested: None,
        };
        [
            State::Pending { blocked_by: 0 },
            State::Pending { blocked_by: 2 },
            State::Failed,
            State::Dead { finished_at: NOW, reason: DeadReason::RetriesExhausted },
            State::Cancelled { finished_at: NOW, reason: CancelReason::User },
            State::Processing(lease),
            State::Completed { finished_at: NOW },
        ]
    }

    #[test]
    fn only_processing_and_completed_jobs_cannot_be_edited() {
        let edit = Edit { max_retries: Some(9), ..Edit::default() };
        for state in states() {
            let before = life(state.clone());
            match edit.life(&before, NOW) {
                Err(Refusal::WrongState(StateName::Processing | StateName::Completed)) => {
                    assert!(matches!(state, State::Processing(_) | State::Completed { .. }), "{state:?}");
                }
                edited => assert_eq!(edited, Ok(Some(Life { max_retries: 9, ..before })), "{state:?}"),
            }
        }
    }

    #[test]
    fn a_new_start_time_sets_when_the_job_is_due_and_a_past_one_means_now() {
        let before = life(State::Failed);
        for (start, run_at, due_at) in [
            (Start::At(LATER), Some(LATER), LATER),
            (Start::At(Timestamp::EPOCH), Some(Timestamp::EPOCH), NOW),
            (Start::After(Duration::from_secs(1_000)), Some(LATER), LATER),
            (Start::Now, None, NOW),
        ] {
            let edited = Edit { start: Some(start), ..Edit::default() }.life(&before, NOW);
            assert_eq!(edited, Ok(Some(Life { run_at, due_at, ..before.clone() })), "{start:?}");
        }
        let out_of_range = Edit { start: Some(Start::After(Duration::MAX)), ..Edit::default() };
        assert_eq!(out_of_range.life(&before, NOW), Ok(None));
    }

    #[test]
    fn fields_that_others_rely_on_cannot_be_changed() {
        for (json, field) in [
            (r#"{"command":"c","id":"a"}"#, "id"),
            (r#"{"command":"c","depends_on":["a"]}"#, "depends_on"),
            (r#"{"command":"c","unique_key":"k"}"#, "unique_key"),
            (r#"{"command":"c","unique_key":"k","unique_for":"1h"}"#, "unique_key"),
        ] {
            let request: JobRequest = serde_json::from_str(json).expect(json);
            assert_eq!(Edit::from_request(request, Vec::new()), Err(fixed_field(field)), "{json}");
        }
        assert!(Edit::from_request(JobRequest::default(), Vec::new()).is_ok_and(|edit| edit.is_empty()));
    }

    #[test]
    fn exit_code_lists_are_kept_replaced_or_removed_and_must_not_overlap() {
        let codes = |text: &str| text.parse::<ExitCodes>().ok();
        let before = RetryRules { retry_on: codes("1,2"), no_retry_on: codes("3") };
        let other = Edit { retry_on: Some(codes("4")), ..Edit::default() };
        assert_eq!(other.retry(&before), Ok(RetryRules { retry_on: codes("4"), ..before }));
        let neither = Edit { retry_on: Some(None), no_retry_on: Some(None), ..Edit::default() };
        assert_eq!(neither.retry(&before), Ok(RetryRules::default()));
        let both = Edit { retry_on: Some(codes("3,4")), ..Edit::default() };
        assert!(matches!(both.retry(&before), Err(EditError::Request(RequestError::ExitCodes(_)))));
    }

    #[test]
    fn variables_are_added_changed_and_removed() {
        let env = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let edit =
            Edit { env: env(&[("A", "2"), ("C", "3")]), unset_env: vec!["B".to_owned()], ..Edit::default() };
        assert_eq!(
            edit.env(&env(&[("A", "1"), ("B", "1"), ("D", "4")])),
            env(&[("A", "2"), ("C", "3"), ("D", "4")])
        );
        assert_eq!(edit.fields(), ["env"]);
    }
}
