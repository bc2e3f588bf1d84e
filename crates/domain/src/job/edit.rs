//! Edits of a job that is not running: which fields can change, and how the job's state changes with them.

use std::time::Duration;

use serde_json::{Map, Value};

use super::life::{Life, Refusal, State};
use super::limits::Limits;
use super::options::JobOptions;
use super::spec::{JobSpec, SpecError, Timeout};
use super::{Job, OnDependencyFailure, Start};
use crate::values::name::QueueName;
use crate::values::timestamp::Timestamp;

/// Fields that stay as they are if an edited description leaves them out.
const KEPT: [&str; 3] = ["command", "cwd", "max_retries"];

/// The changes to a job's fields.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Edit {
    /// The new values. A field that is not given stays as it is; variables are added or changed.
    pub set: JobSpec,
    /// The names of the fields that return to their default.
    pub reset: Vec<&'static str>,
    /// Variables to remove.
    pub unset_env: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum EditError {
    #[error("`{field}` cannot be changed: {why}")]
    Fixed { field: &'static str, why: &'static str },
    #[error("nothing to change")]
    Nothing,
    #[error("the stored job is invalid: {0}")]
    Malformed(String),
    #[error(transparent)]
    Spec(#[from] SpecError),
}

impl Edit {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Fails if the new values contradict each other or are of fields that cannot change.
    pub fn new(set: JobSpec, reset: Vec<&'static str>, unset_env: Vec<String>) -> Result<Self, EditError> {
        refuse_fixed(&set)?;
        set.retries()?;
        set.start()?;
        Ok(Self { set, reset, unset_env })
    }

    /// The difference between a job and its edited description. A field that the description leaves out is reset to its
    /// default, except the `KEPT` ones and the variables, which stay.
    pub fn between(job: &Job, mut edited: JobSpec) -> Result<Self, EditError> {
        (edited.max_retries, edited.max_attempts) = (edited.retries()?, None);
        // A delay of zero means no start time.
        edited.delay = edited.delay.filter(|delay| !delay.is_zero());
        edited.env.retain(|name, value| job.options.env.get(name) != Some(value));
        let defaults = JobSpec {
            queue: Some(QueueName::default_queue()),
            priority: Some(0),
            timeout: Some(Timeout::None),
            on_dependency_failure: Some(OnDependencyFailure::default()),
            limits: Some(Limits::default()),
            ..JobSpec::default()
        };
        let (before, mut wanted) = (JobSpec::editable(job).to_fields(), edited.to_fields());
        let defaults = defaults.to_fields();
        let or_default = |fields: &Map<String, Value>, name: &str| {
            fields.get(name).or(defaults.get(name)).cloned().unwrap_or_default()
        };
        let mut reset = Vec::new();
        for name in JobSpec::field_names() {
            if or_default(&before, name) == or_default(&wanted, name) {
                wanted.remove(*name);
            } else if !wanted.contains_key(*name) && !KEPT.contains(name) {
                reset.push(*name);
            }
        }
        let set = JobSpec::from_fields(wanted).map_err(|error| EditError::Malformed(error.to_string()))?;
        Self::new(set, reset, Vec::new())
    }

    /// The names of the fields that this edit changes.
    pub fn fields(&self) -> Vec<&'static str> {
        let set = self.set.to_fields();
        let is_changed = |name: &str| {
            set.contains_key(name)
                || self.reset.contains(&name)
                || match name {
                    "max_retries" => set.contains_key("max_attempts"),
                    "run_at" => set.contains_key("delay"),
                    "env" => !self.unset_env.is_empty(),
                    _ => false,
                }
        };
        let names = JobSpec::field_names().iter().copied();
        names.filter(|name| !matches!(*name, "max_attempts" | "delay") && is_changed(name)).collect()
    }

    /// The job after the edit, except its life. Fails if fields contradict each other.
    pub fn apply(&self, job: &Job) -> Result<Job, EditError> {
        let before = JobSpec {
            // Not offered for editing if the job has no dependencies.
            on_dependency_failure: Some(job.options.on_dependency_failure()),
            ..JobSpec::editable(job)
        };
        let mut fields = before.to_fields();
        fields.retain(|name, _| !self.reset.contains(&name.as_str()));
        fields.extend(self.set.to_fields());
        let mut spec =
            JobSpec::from_fields(fields).map_err(|error| EditError::Malformed(error.to_string()))?;
        spec.env = job.options.env.clone();
        spec.env.retain(|name, _| !self.unset_env.contains(name));
        spec.env.extend(self.set.env.clone());
        spec.unique_for = Some(job.options.unique_for);
        Ok(Job {
            options: JobOptions {
                reported: job.options.reported,
                stdin_bytes: job.options.stdin_bytes,
                trace: job.options.trace.clone(),
                ..spec.options()?
            },
            command: spec.command.unwrap_or_else(|| job.command.clone()),
            queue: spec.queue.unwrap_or_else(QueueName::default_queue),
            priority: spec.priority.unwrap_or(0),
            timeout: spec.timeout.and_then(Timeout::span),
            cwd: spec.cwd,
            tags: spec.tags,
            ..job.clone()
        })
    }

    /// [`Self::new`] has refused contradictory times.
    fn start(&self) -> Option<Start> {
        match self.set.start().ok().flatten() {
            // A delay of zero means no start time.
            Some(Start::After(Duration::ZERO)) => Some(Start::Now),
            None if self.reset.contains(&"run_at") => Some(Start::Now),
            start => start,
        }
    }

    /// The job's life after the edit. `None` if the new start time is out of range.
    pub fn life(&self, life: &Life, now: Timestamp) -> Result<Option<Life>, Refusal> {
        match life.state {
            State::Pending { .. } | State::Failed | State::Dead { .. } | State::Cancelled { .. } => {}
            State::Processing(_) | State::Completed { .. } => {
                return Err(Refusal::WrongState(life.state.name()));
            }
        }
        let max_retries = self.set.retries().ok().flatten().unwrap_or(life.max_retries);
        let mut edited = Life { max_retries, ..life.clone() };
        let run_at = match self.start() {
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
        matches!(self.start(), Some(Start::After(delay)) if now.checked_add(delay).is_none())
    }
}

/// Refuses to change fields that other jobs and callers rely on.
fn refuse_fixed(spec: &JobSpec) -> Result<(), EditError> {
    let fixed = [
        ("id", spec.id.is_some()),
        ("depends_on", !spec.depends_on.is_empty()),
        ("unique_key", spec.unique_key.is_some()),
        ("unique_for", spec.unique_for.is_some()),
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::job::LatestAttempt;
    use crate::job::life::{CancelReason, DeadReason, Lease, Losses, StateName};
    use crate::job::retry_rules::{ExitCodes, RetryRules};

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

    /// A job with every field that an edit can change.
    fn job() -> Job {
        let spec = r#"{"command":"true","name":"n","queue":"q","priority":3,"timeout":5,"cwd":"/","env":{"A":"1"},"tags":["x"],
            "backoff":{"delay":1},"depends_on":["b"],"on_dependency_failure":"run","unique_key":"k","unique_for":"1h",
            "limits":{"pids":9},"retry_on":[1,75],"no_retry_on":[2]}"#;
        let spec: JobSpec = serde_json::from_str(spec).expect("a spec");
        Job {
            options: spec.options().expect("valid options"),
            id: "a".parse().expect("valid id"),
            number: 1,
            queue: spec.queue.expect("a queue"),
            command: spec.command.expect("a command"),
            priority: spec.priority.expect("a priority"),
            life: Life { run_at: Some(LATER), ..life(State::Failed) },
            created_at: NOW,
            updated_at: NOW,
            timeout: spec.timeout.and_then(Timeout::span),
            cwd: spec.cwd,
            tags: spec.tags,
            depends_on: spec.depends_on,
            unique_key: spec.unique_key,
            batch: None,
            latest: LatestAttempt::default(),
        }
    }

    fn set(fields: &str) -> Edit {
        let fields = serde_json::from_str(fields).expect("an object");
        Edit { set: JobSpec::from_fields(fields).expect("valid fields"), ..Edit::default() }
    }

    fn reset(fields: &[&'static str]) -> Edit {
        Edit { reset: fields.to_vec(), ..Edit::default() }
    }

    fn states() -> [State; 7] {
        let lease = Lease::new("w".parse().expect("valid name"), NOW, NOW);
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
        let edit = set(r#"{"max_retries":9}"#);
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
        for (edit, run_at, due_at) in [
            (set(&format!(r#"{{"run_at":"{LATER}"}}"#)), Some(LATER), LATER),
            (set(r#"{"run_at":"1970-01-01T00:00:00Z"}"#), Some(Timestamp::EPOCH), NOW),
            (set(r#"{"delay":1000}"#), Some(LATER), LATER),
            (set(r#"{"delay":0}"#), None, NOW),
            (reset(&["run_at"]), None, NOW),
        ] {
            let edited = edit.life(&before, NOW);
            assert_eq!(edited, Ok(Some(Life { run_at, due_at, ..before.clone() })), "{edit:?}");
        }
        let delay = Some(Duration::MAX);
        let out_of_range = Edit { set: JobSpec { delay, ..JobSpec::default() }, ..Edit::default() };
        assert_eq!(out_of_range.life(&before, NOW), Ok(None));
        assert!(out_of_range.is_too_late(NOW));
    }

    #[test]
    fn fields_that_others_rely_on_cannot_be_changed() {
        for (json, field) in [
            (r#"{"command":"c","id":"a"}"#, "id"),
            (r#"{"command":"c","depends_on":["a"]}"#, "depends_on"),
            (r#"{"command":"c","unique_key":"k"}"#, "unique_key"),
            (r#"{"command":"c","unique_key":"k","unique_for":"1h"}"#, "unique_key"),
        ] {
            let spec: JobSpec = serde_json::from_str(json).expect(json);
            assert_eq!(Edit::new(spec.clone(), Vec::new(), Vec::new()), Err(fixed_field(field)), "{json}");
            assert_eq!(Edit::between(&job(), spec), Err(fixed_field(field)), "{json}");
        }
        assert!(Edit::new(JobSpec::default(), Vec::new(), Vec::new()).is_ok_and(|edit| edit.is_empty()));
    }

    #[test]
    fn exit_code_lists_are_kept_replaced_or_removed_and_must_not_overlap() {
        let codes = |text: &str| text.parse::<ExitCodes>().ok();
        let rules = |edit: Edit| edit.apply(&job()).map(|job| job.options.retry());
        let before = job().options.retry();
        assert_eq!(before, RetryRules { retry_on: codes("1,75"), no_retry_on: codes("2") });
        assert_eq!(rules(set(r#"{"retry_on":[4]}"#)), Ok(RetryRules { retry_on: codes("4"), ..before }));
        assert_eq!(rules(reset(&["retry_on", "no_retry_on"])), Ok(RetryRules::default()));
        assert!(matches!(rules(set(r#"{"retry_on":[2,4]}"#)), Err(EditError::Spec(SpecError::ExitCodes(_)))));
    }

    #[test]
    fn variables_are_added_changed_and_removed() {
        let env = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let before = Job {
            options: JobOptions { env: env(&[("A", "1"), ("B", "1"), ("D", "4")]), ..JobOptions::default() },
            ..job()
        };
        let edit = Edit { unset_env: vec!["B".to_owned()], ..set(r#"{"env":{"A":"2","C":"3"}}"#) };
        let after = edit.apply(&before).expect("valid");
        assert_eq!(after.options.env, env(&[("A", "2"), ("C", "3"), ("D", "4")]));
        assert_eq!(edit.fields(), ["env"]);
    }

    #[test]
    fn every_other_field_is_offered_for_editing() {
        let offered = JobSpec::editable(&job()).to_fields();
        let withheld: Vec<&str> =
            JobSpec::field_names().iter().copied().filter(|name| !offered.contains_key(*name)).collect();
        // Other forms of offered fields, fields that cannot change, and secrets.
        assert_eq!(
            withheld,
            ["id", "max_attempts", "delay", "depends_on", "unique_key", "unique_for", "env"]
        );
    }

    #[test]
    fn a_description_without_changes_is_no_edit() {
        let described = serde_json::to_string(&JobSpec::editable(&job())).expect("JSON");
        let edited = serde_json::from_str(&described).expect("a job");
        assert_eq!(Edit::between(&job(), edited), Ok(Edit::default()), "{described}");
        let plain = Job { options: JobOptions::default(), depends_on: Vec::new(), ..job() };
        let mut described = JobSpec::editable(&plain).to_fields();
        described.extend([("limits".to_owned(), Value::Object(Map::new()))]);
        let edited = JobSpec::from_fields(described).expect("valid fields");
        assert_eq!(Edit::between(&plain, edited), Ok(Edit::default()), "no limits");
    }

    #[test]
    fn an_edit_changes_only_the_given_fields() {
        for before in [job(), Job { depends_on: Vec::new(), ..job() }] {
            let after = set(r#"{"priority":7}"#).apply(&before);
            assert_eq!(after, Ok(Job { priority: 7, ..before }));
        }
    }

    #[test]
    fn fields_that_a_description_leaves_out_return_to_their_defaults() {
        let plain = serde_json::from_str(r#"{"command":"true","delay":0}"#).expect("a job");
        let edit = Edit::between(&job(), plain).expect("valid");
        let changed = [
            "name",
            "queue",
            "priority",
            "timeout",
            "run_at",
            "backoff",
            "on_dependency_failure",
            "tags",
            "limits",
            "retry_on",
            "no_retry_on",
        ];
        assert_eq!(edit.fields(), changed);
        let after = edit.apply(&job()).expect("valid");
        let options = JobOptions {
            env: job().options.env,
            unique_for: job().options.unique_for,
            ..JobOptions::default()
        };
        let expected = Job {
            queue: QueueName::default_queue(),
            priority: 0,
            timeout: None,
            tags: Vec::new(),
            options,
            ..job()
        };
        assert_eq!(after, expected);
        let life = edit.life(&job().life, NOW).expect("editable").expect("in range");
        assert_eq!((life.run_at, life.max_retries), (None, 2));
        let again = serde_json::from_str(r#"{"command":"true","delay":0}"#).expect("a job");
        assert_eq!(Edit::between(&Job { life, ..after }, again), Ok(Edit::default()));
    }
}
