//! The description of a job: its fields as a caller gives them, in JSON, as flags, in a schedule or in an edit.
//!
//! [`JobSpec`] declares each field once, with its form in JSON; `check` holds the checks of single fields. Enqueuing
//! resolves a spec into a [`NewJob`], whose fields without a column of their own are the [`JobOptions`].

mod changed;
mod check;
mod read;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::backoff::BackoffChoice;
use super::environment::Environment;
use super::json::FIELDS;
use super::limits::Limits;
use super::options::{AttemptRequests, JobOptions};
use super::retry_rules::{ExitCodes, RetryRules};
use super::trace::TraceContext;
use super::unique::UniqueFor;
use super::{Job, NewJob, OnDependencyFailure, Start};
use crate::json::{FieldNames, Object, given, read_as_object, read_as_text, span_text, whole};
use crate::settings::{MAX_RETRIES, Settings};
use crate::values::name::{BatchName, JobId, QueueName};
use crate::values::span::{self, format_span, parse_span};
use crate::values::timestamp::Timestamp;

pub use check::*;

/// A job as the caller described it; fields that were left out are `None` or empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", default, expecting = "an object with a `command`")]
pub struct JobSpec {
    #[serde(deserialize_with = "read::command", skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub id: Option<JobId>,
    #[serde(deserialize_with = "read::name", skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueName>,
    #[serde(deserialize_with = "read::priority", skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
    #[serde(
        deserialize_with = "whole::<0, { MAX_RETRIES as i64 }, _, _>",
        skip_serializing_if = "Option::is_none"
    )]
    pub max_retries: Option<u32>,
    #[serde(
        deserialize_with = "whole::<1, { MAX_RETRIES as i64 + 1 }, _, _>",
        skip_serializing_if = "Option::is_none"
    )]
    pub max_attempts: Option<u32>,
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Timeout>,
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub run_at: Option<Timestamp>,
    #[serde(with = "span::field", skip_serializing_if = "Option::is_none")]
    pub delay: Option<Duration>,
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub backoff: Option<BackoffChoice>,
    #[serde(deserialize_with = "read::depends_on", skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<JobId>,
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub on_dependency_failure: Option<OnDependencyFailure>,
    #[serde(deserialize_with = "read::unique_key", skip_serializing_if = "Option::is_none")]
    pub unique_key: Option<String>,
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub unique_for: Option<UniqueFor>,
    #[serde(deserialize_with = "read::cwd", skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    #[serde(deserialize_with = "read::env", skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    #[serde(deserialize_with = "read::tags", skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub retry_on: Option<ExitCodes>,
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub no_retry_on: Option<ExitCodes>,
}

read_as_object!(JobSpec, required: Some(("command", NO_COMMAND)), printed: instead_of_printed);

/// How long one attempt may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timeout {
    None,
    After(Duration),
}

/// The caller of a spec, and the defaults for its missing fields.
#[derive(Clone, Debug)]
pub struct Origin {
    pub settings: Settings,
    pub caller: Caller,
}

/// How a caller wants its jobs enqueued.
#[derive(Clone, Debug, Default)]
pub struct Caller {
    /// Its working directory. `None` if it is unknown; each job must then set its own.
    pub cwd: Option<String>,
    /// The jobs may run on another machine: one that names no directory starts in the home directory of the worker's
    /// account.
    pub runs_elsewhere: bool,
    /// Its environment; `None` if the jobs use the worker's.
    pub environment: Option<Arc<Environment>>,
    pub if_absent: bool,
    /// The batch that the jobs are enqueued into.
    pub batch: Option<BatchName>,
    /// The standard input of the jobs; `None` if it is empty.
    pub stdin: Option<Arc<[u8]>>,
    /// The trace that it is in.
    pub trace: Option<Box<TraceContext>>,
}

impl JobSpec {
    /// The names of the fields, in order.
    pub fn field_names() -> &'static [&'static str] {
        let mut names: &[&str] = &[];
        let _ = Self::deserialize(FieldNames(&mut names));
        names
    }

    /// The fields that are given, by name.
    pub(super) fn to_fields(&self) -> Map<String, Value> {
        match serde_json::to_value(self) {
            Ok(Value::Object(fields)) => fields,
            Ok(_) | Err(_) => unreachable!("a spec serializes to an object"),
        }
    }

    /// As from JSON, but the command may be missing.
    pub(super) fn from_fields(fields: Map<String, Value>) -> Result<Self, serde_json::Error> {
        Self::deserialize(Object {
            deserializer: Value::Object(fields),
            required: None,
            printed: instead_of_printed,
        })
    }

    /// As from JSON, but the command may be missing because it is given elsewhere.
    pub fn from_json_without_command(json: &str) -> Result<Self, serde_json::Error> {
        let mut deserializer = serde_json::Deserializer::from_str(json);
        let spec = Self::deserialize(Object {
            deserializer: &mut deserializer,
            required: None,
            printed: instead_of_printed,
        })?;
        deserializer.end()?;
        Ok(spec)
    }

    /// The fields of both. Fails if both give the same field.
    pub fn merge(self, other: &Self) -> Result<Self, SpecError> {
        let (mut fields, others) = (self.to_fields(), other.to_fields());
        let is_twice = |name: &&&str| fields.contains_key(**name) && others.contains_key(**name);
        if let Some(&field) = Self::field_names().iter().find(is_twice) {
            return Err(SpecError::GivenTwice { field });
        }
        fields.extend(others);
        Ok(Self::from_fields(fields).expect("valid fields stay valid beside others"))
    }

    /// Checks the fields that came from elsewhere than JSON, each on its own.
    pub fn checked(self) -> Result<Self, SpecError> {
        Ok(Self {
            command: self.command.map(check_command).transpose()?,
            name: self.name.map(check_name).transpose()?,
            depends_on: check_depends_on(self.depends_on)?,
            unique_key: self.unique_key.map(check_unique_key).transpose()?,
            cwd: self.cwd.map(check_cwd).transpose()?,
            env: check_variables(self.env)?,
            tags: check_tags(self.tags)?,
            ..self
        })
    }

    /// Checks the fields together and fills in the defaults; `generate_id` makes an id if none was given.
    pub fn resolve(self, origin: &Origin, generate_id: impl FnOnce() -> JobId) -> Result<NewJob, SpecError> {
        if self.unique_for.is_some() && self.unique_key.is_none() {
            return Err(SpecError::NoUniqueKey);
        }
        if let Some(id) = self.id.as_ref().filter(|id| self.depends_on.contains(id)) {
            return Err(SpecError::DependsOnItself(id.clone()));
        }
        Ok(NewJob {
            max_retries: self.retries()?.unwrap_or(origin.settings.max_retries),
            start: self.start()?.unwrap_or(Start::Now),
            options: JobOptions {
                stdin_bytes: origin.caller.stdin.as_ref().map_or(0, |bytes| bytes.len() as u64),
                trace: origin.caller.trace.clone(),
                ..self.options()?
            },
            stdin: origin.caller.stdin.clone(),
            cwd: resolve_cwd(self.cwd, &origin.caller)?,
            id: self.id.unwrap_or_else(generate_id),
            command: self.command.ok_or(SpecError::NoCommand)?,
            queue: self.queue.unwrap_or_else(QueueName::default_queue),
            priority: self.priority.unwrap_or(0),
            timeout: self.timeout.map_or(origin.settings.job_timeout, Timeout::span),
            depends_on: self.depends_on,
            unique_key: self.unique_key,
            environment: origin.caller.environment.clone(),
            tags: self.tags,
            if_absent: origin.caller.if_absent,
            batch: origin.caller.batch.clone(),
        })
    }

    /// The fields without a column of their own.
    pub(super) fn options(&self) -> Result<JobOptions, SpecError> {
        let RetryRules { retry_on, no_retry_on } = RetryRules::new(self.retry_on, self.no_retry_on)?;
        Ok(JobOptions {
            name: self.name.clone(),
            backoff: self.backoff,
            env: self.env.clone(),
            run_on_dependency_failure: self.on_dependency_failure == Some(OnDependencyFailure::Run),
            unique_for: self.unique_for.unwrap_or_default(),
            limits: self.limits.unwrap_or_default(),
            retry_on,
            no_retry_on,
            reported: None,
            stdin_bytes: 0,
            requests: AttemptRequests::default(),
            trace: None,
        })
    }

    /// The fields of a stored job that can be edited, in the form that `enqueue` accepts. Environment variables are
    /// omitted, because their values are secret.
    pub fn editable(job: &Job) -> Self {
        let options = &job.options;
        Self {
            command: Some(job.command.clone()),
            name: options.name.clone(),
            queue: Some(job.queue.clone()),
            priority: Some(job.priority),
            max_retries: Some(job.life.max_retries),
            timeout: Some(job.timeout.map_or(Timeout::None, Timeout::After)),
            run_at: job.life.run_at,
            backoff: options.backoff,
            on_dependency_failure: (!job.depends_on.is_empty()).then(|| options.on_dependency_failure()),
            cwd: job.cwd.clone(),
            tags: job.tags.clone(),
            limits: Some(options.limits).filter(|limits| !limits.is_none()),
            retry_on: options.retry_on,
            no_retry_on: options.no_retry_on,
            ..Self::default()
        }
    }

    pub fn retries(&self) -> Result<Option<u32>, SpecError> {
        match (self.max_retries, self.max_attempts) {
            (Some(_), Some(_)) => Err(SpecError::BothRetries),
            (retries, None) => Ok(retries),
            (None, Some(attempts)) => Ok(Some(attempts.saturating_sub(1))),
        }
    }

    pub fn start(&self) -> Result<Option<Start>, SpecError> {
        match (self.run_at, self.delay) {
            (Some(_), Some(_)) => Err(SpecError::BothTimes),
            (Some(at), None) => Ok(Some(Start::At(at))),
            (None, Some(delay)) => Ok(Some(Start::After(delay))),
            (None, None) => Ok(None),
        }
    }
}

/// What to give instead of a field that only the JSON of a stored job has.
fn instead_of_printed(name: &str) -> Option<&'static str> {
    if name == "timeout_ms" {
        return Some("; give `timeout`");
    }
    FIELDS.iter().any(|(field, _)| *field == name).then_some("")
}

/// Resolves a relative directory against the caller's.
fn resolve_cwd(cwd: Option<String>, caller: &Caller) -> Result<Option<String>, SpecError> {
    match (cwd, caller.cwd.as_deref()) {
        (Some(cwd), _) if cwd.starts_with('/') => Ok(Some(cwd)),
        (None, _) if caller.runs_elsewhere => Ok(None),
        (Some(cwd), Some(here)) => Ok(Some(format!("{here}/{cwd}"))),
        (None, Some(here)) => Ok(Some(here.to_owned())),
        (Some(_) | None, None) => Err(SpecError::NoCurrentDirectory),
    }
}

impl Timeout {
    pub(super) fn span(self) -> Option<Duration> {
        match self {
            Self::None => None,
            Self::After(span) => Some(span),
        }
    }
}

impl FromStr for Timeout {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        if text == "none" {
            return Ok(Self::None);
        }
        match parse_span(text)? {
            Duration::ZERO => Err(SpecError::ZeroTimeout),
            span => Ok(Self::After(span)),
        }
    }
}

impl fmt::Display for Timeout {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => out.write_str("none"),
            Self::After(span) => out.write_str(&format_span(*span)),
        }
    }
}

read_as_text!(span_text: Timeout);

#[cfg(test)]
mod tests;
