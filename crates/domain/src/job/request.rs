//! The description of a job to enqueue: its fields as the caller gave them, each checked on its own, and their
//! resolution into a [`NewJob`]. `json` parses the fields from JSON, `write` formats them.

mod json;
pub(crate) mod serialize;

use std::collections::{BTreeMap, HashSet};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use super::backoff::{BackoffChoice, BackoffError};
use super::environment::Environment;
use super::limits::{Limits, LimitsError};
use super::retry_rules::{ExitCodes, ExitCodesError, RetryRules};
use super::unique::{UniqueFor, UniqueForError};
use super::{NewJob, OnDependencyFailure, Start};
use crate::settings::Settings;
use crate::values::name::{BatchName, JobId, QueueName};
use crate::values::span::{SpanError, parse_span};
use crate::values::timestamp::Timestamp;

/// The kernel accepts 131,072 bytes for one argument, including the terminating NUL.
pub const MAX_COMMAND_BYTES: usize = 131_071;
/// Of `NAME=value`. A captured variable is never longer, because the kernel would not have started queuectl with it.
pub const MAX_VARIABLE_BYTES: usize = 131_071;
pub const MAX_DEPENDENCIES: usize = 10_000;
const MAX_QUOTED_NAME_CHARS: usize = 64;
pub const MAX_TAGS: usize = 64;
pub const MAX_TAG_BYTES: usize = 128;
pub const MAX_UNIQUE_KEY_BYTES: usize = 512;
pub const MAX_CWD_BYTES: usize = 4_096;

/// A job as the caller described it; fields that were left out are `None` or empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobRequest {
    pub command: Option<String>,
    pub id: Option<JobId>,
    pub queue: Option<QueueName>,
    pub priority: Option<i32>,
    pub max_retries: Option<u32>,
    pub max_attempts: Option<u32>,
    pub timeout: Option<Timeout>,
    pub run_at: Option<Timestamp>,
    pub delay: Option<Duration>,
    pub backoff: Option<BackoffChoice>,
    pub depends_on: Vec<JobId>,
    pub on_dependency_failure: Option<OnDependencyFailure>,
    pub unique_key: Option<String>,
    pub unique_for: Option<UniqueFor>,
    pub cwd: Option<String>,
    pub env: BTreeMap<String, String>,
    pub tags: Vec<String>,
    pub limits: Option<Limits>,
    pub retry_on: Option<ExitCodes>,
    pub no_retry_on: Option<ExitCodes>,
}

/// How long one attempt may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timeout {
    None,
    After(Duration),
}

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum RequestError {
    #[error("a job needs a `command`")]
    NoCommand,
    #[error("`command` is blank")]
    BlankCommand,
    #[error("`command` has {bytes} bytes; the kernel accepts at most {MAX_COMMAND_BYTES}")]
    CommandTooLong { bytes: usize },
    #[error("`{field}` contains a NUL byte")]
    Nul { field: &'static str },
    #[error("give `max_retries` or `max_attempts`, not both")]
    BothRetries,
    #[error("give `run_at` or `delay`, not both")]
    BothTimes,
    #[error("`unique_for` requires a `unique_key`")]
    NoUniqueKey,
    #[error("job `{0}` cannot depend on itself")]
    DependsOnItself(JobId),
    #[error("`{field}` has more than {limit} {what}")]
    TooMany { field: &'static str, limit: usize, what: &'static str },
    #[error("`{field}` is empty")]
    Empty { field: &'static str },
    #[error("the current directory was deleted or its name is not UTF-8; give the job an absolute `cwd`")]
    NoCurrentDirectory,
    #[error("not a valid name for an environment variable: `{name}`")]
    BadVariable { name: String },
    #[error(
        "variable `{}` of `env` has {bytes} bytes including its name; the kernel accepts at most {MAX_VARIABLE_BYTES}; \
         let the command read the value from a file",
        truncated(name)
    )]
    VariableTooLong { name: String, bytes: usize },
    #[error("a `timeout` of 0 would kill the command immediately; use \"none\" for no timeout")]
    ZeroTimeout,
    #[error("not a valid choice: `{typed}`; expected cancel or run")]
    BadDependencyChoice { typed: String },
    #[error(transparent)]
    Span(#[from] SpanError),
    #[error(transparent)]
    UniqueFor(#[from] UniqueForError),
    #[error(transparent)]
    Backoff(#[from] BackoffError),
    #[error(transparent)]
    Limits(#[from] LimitsError),
    #[error(transparent)]
    ExitCodes(#[from] ExitCodesError),
}

/// The caller of a request, and the defaults for its missing fields.
#[derive(Clone, Debug)]
pub struct Origin {
    pub settings: Settings,
    /// The caller's working directory. `None` if it is unknown; each job must then set its own.
    pub cwd: Option<String>,
    pub environment: Option<Arc<Environment>>,
    pub if_absent: bool,
    /// The batch that the jobs are enqueued into.
    pub batch: Option<BatchName>,
}

impl JobRequest {
    /// Checks the fields together and fills in the defaults; `generate_id` makes an id if none was given.
    pub fn resolve(
        self,
        origin: &Origin,
        generate_id: impl FnOnce() -> JobId,
    ) -> Result<NewJob, RequestError> {
        let max_retries = self.retries(&origin.settings)?;
        let start = self.start()?;
        let retry = RetryRules::new(self.retry_on, self.no_retry_on)?;
        if self.unique_for.is_some() && self.unique_key.is_none() {
            return Err(RequestError::NoUniqueKey);
        }
        let cwd = resolve_cwd(self.cwd, origin.cwd.as_deref())?;
        let id = match self.id {
            Some(id) if self.depends_on.contains(&id) => {
                return Err(RequestError::DependsOnItself(id));
            }
            Some(id) => id,
            None => generate_id(),
        };
        Ok(NewJob {
            id,
            command: self.command.ok_or(RequestError::NoCommand)?,
            queue: self.queue.unwrap_or_else(QueueName::default_queue),
            priority: self.priority.unwrap_or(0),
            max_retries,
            timeout: match self.timeout {
                None => origin.settings.job_timeout,
                Some(Timeout::None) => None,
                Some(Timeout::After(timeout)) => Some(timeout),
            },
            start,
            backoff: self.backoff,
            depends_on: self.depends_on,
            on_dependency_failure: self.on_dependency_failure.unwrap_or_default(),
            unique_key: self.unique_key,
            unique_for: self.unique_for.unwrap_or_default(),
            cwd: Some(cwd),
            env: self.env,
            environment: origin.environment.clone(),
            tags: self.tags,
            limits: self.limits.unwrap_or_default(),
            retry,
            if_absent: origin.if_absent,
            batch: origin.batch.clone(),
        })
    }

    fn retries(&self, settings: &Settings) -> Result<u32, RequestError> {
        match (self.max_retries, self.max_attempts) {
            (Some(_), Some(_)) => Err(RequestError::BothRetries),
            (Some(retries), None) => Ok(retries),
            (None, Some(attempts)) => Ok(attempts.saturating_sub(1)),
            (None, None) => Ok(settings.max_retries),
        }
    }

    fn start(&self) -> Result<Start, RequestError> {
        match (self.run_at, self.delay) {
            (Some(_), Some(_)) => Err(RequestError::BothTimes),
            (Some(at), None) => Ok(Start::At(at)),
            (None, Some(delay)) => Ok(Start::After(delay)),
            (None, None) => Ok(Start::Now),
        }
    }
}

/// Resolves a relative directory against the caller's.
fn resolve_cwd(cwd: Option<String>, here: Option<&str>) -> Result<String, RequestError> {
    match (cwd, here) {
        (Some(cwd), _) if cwd.starts_with('/') => Ok(cwd),
        (Some(cwd), Some(here)) => Ok(format!("{here}/{cwd}")),
        (None, Some(here)) => Ok(here.to_owned()),
        (Some(_) | None, None) => Err(RequestError::NoCurrentDirectory),
    }
}

pub fn check_command(command: String) -> Result<String, RequestError> {
    let command = check_text("command", command)?;
    if command.trim().is_empty() {
        return Err(RequestError::BlankCommand);
    }
    if command.len() > MAX_COMMAND_BYTES {
        return Err(RequestError::CommandTooLong { bytes: command.len() });
    }
    Ok(command)
}

pub fn check_unique_key(key: String) -> Result<String, RequestError> {
    check_short("unique_key", key, MAX_UNIQUE_KEY_BYTES)
}

pub fn check_cwd(cwd: String) -> Result<String, RequestError> {
    check_short("cwd", cwd, MAX_CWD_BYTES)
}

pub fn check_tags(tags: Vec<String>) -> Result<Vec<String>, RequestError> {
    if tags.len() > MAX_TAGS {
        return Err(RequestError::TooMany { field: "tags", limit: MAX_TAGS, what: "tags" });
    }
    tags.into_iter().map(|tag| check_short("tags", tag, MAX_TAG_BYTES)).collect()
}

pub fn check_depends_on(ids: Vec<JobId>) -> Result<Vec<JobId>, RequestError> {
    if ids.len() > MAX_DEPENDENCIES {
        return Err(RequestError::TooMany { field: "depends_on", limit: MAX_DEPENDENCIES, what: "ids" });
    }
    let mut seen = HashSet::new();
    Ok(ids.into_iter().filter(|id| seen.insert(id.clone())).collect())
}

pub fn check_variable(name: String, value: String) -> Result<(String, String), RequestError> {
    if name.is_empty() || name.contains(['=', '\0']) {
        return Err(RequestError::BadVariable { name });
    }
    let bytes = name.len() + "=".len() + value.len();
    if bytes > MAX_VARIABLE_BYTES {
        return Err(RequestError::VariableTooLong { name, bytes });
    }
    Ok((name, check_text("env", value)?))
}

pub fn check_variables(variables: Vec<(String, String)>) -> Result<BTreeMap<String, String>, RequestError> {
    variables.into_iter().map(|(name, value)| check_variable(name, value)).collect()
}

pub fn check_dependency_choice(text: &str) -> Result<OnDependencyFailure, RequestError> {
    OnDependencyFailure::from_name(text)
        .ok_or_else(|| RequestError::BadDependencyChoice { typed: text.to_owned() })
}

impl FromStr for Timeout {
    type Err = RequestError;

    fn from_str(text: &str) -> Result<Self, RequestError> {
        if text == "none" {
            return Ok(Self::None);
        }
        Self::after(parse_span(text)?)
    }
}

impl Timeout {
    fn after(span: Duration) -> Result<Self, RequestError> {
        if span.is_zero() {
            return Err(RequestError::ZeroTimeout);
        }
        Ok(Self::After(span))
    }
}

/// As much of a name as is needed to recognise it.
fn truncated(name: &str) -> String {
    name.chars().take(MAX_QUOTED_NAME_CHARS).collect()
}

fn check_text(field: &'static str, text: String) -> Result<String, RequestError> {
    if text.contains('\0') {
        return Err(RequestError::Nul { field });
    }
    Ok(text)
}

fn check_short(field: &'static str, text: String, limit: usize) -> Result<String, RequestError> {
    let text = check_text(field, text)?;
    if text.is_empty() {
        return Err(RequestError::Empty { field });
    }
    if text.len() > limit {
        return Err(RequestError::TooMany { field, limit, what: "bytes" });
    }
    Ok(text)
}

#[cfg(test)]
mod tests;
