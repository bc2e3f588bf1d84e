//! What somebody says when enqueuing: the fields of a job as they were typed, each checked on its own, and how they
//! become a [`NewJob`].
//!
//! JSON is read field by field instead of by a derived reader, so that a mistake names the field and the nearest
//! known one, and a duplicate key or a `null` is a mistake too.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};

use super::backoff::{BackoffChoice, BackoffError, check_base, check_jitter};
use super::environment::Environment;
use super::job::{NewJob, OnDependencyFailure, Start};
use super::name::{JobId, QueueName};
use super::nearest::nearest;
use super::settings::{MAX_RETRIES, Settings};
use super::span::{SpanError, parse_span, span_from_seconds};
use super::timestamp::Timestamp;

/// The kernel takes 131,072 bytes for one argument, its closing NUL included.
pub const MAX_COMMAND_BYTES: usize = 131_071;
pub const MAX_DEPENDENCIES: usize = 10_000;
pub const MAX_TAGS: usize = 64;
pub const MAX_TAG_BYTES: usize = 128;
pub const MAX_UNIQUE_KEY_BYTES: usize = 512;
pub const MAX_CWD_BYTES: usize = 4_096;

/// A job as somebody asked for it: what was left out is `None` or empty.
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
    pub cwd: Option<String>,
    pub env: BTreeMap<String, String>,
    pub tags: Vec<String>,
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
    #[error("`command` has {bytes} bytes, more than the {MAX_COMMAND_BYTES} that the kernel takes")]
    CommandTooLong { bytes: usize },
    #[error("`{field}` contains a NUL byte")]
    Nul { field: &'static str },
    #[error("give `max_retries` or `max_attempts`, not both")]
    BothRetries,
    #[error("give `run_at` or `delay`, not both")]
    BothTimes,
    #[error("job `{0}` cannot depend on itself")]
    DependsOnItself(JobId),
    #[error("`{field}` holds more than {limit} {what}")]
    TooMany { field: &'static str, limit: usize, what: &'static str },
    #[error("`{field}` is empty")]
    Empty { field: &'static str },
    #[error("`{name}` is no name for an environment variable")]
    BadVariable { name: String },
    #[error("a `timeout` of 0 would kill the command at once; use \"none\" for no timeout")]
    ZeroTimeout,
    #[error("`{typed}` is no choice for `on_dependency_failure`; there are cancel and run")]
    BadDependencyChoice { typed: String },
    #[error(transparent)]
    Span(#[from] SpanError),
    #[error(transparent)]
    Backoff(#[from] BackoffError),
}

/// Where a request came from and what fills its gaps.
#[derive(Clone, Debug)]
pub struct Origin {
    pub settings: Settings,
    /// Where the caller stood.
    pub cwd: Option<String>,
    pub environment: Option<Arc<Environment>>,
    pub if_absent: bool,
}

impl JobRequest {
    /// Checks the fields together and fills the gaps; `generate_id` is asked for an id when none was given.
    pub fn resolve(
        self,
        origin: &Origin,
        generate_id: impl FnOnce() -> JobId,
    ) -> Result<NewJob, RequestError> {
        let max_retries = self.retries(&origin.settings)?;
        let start = self.start()?;
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
            cwd: resolve_cwd(self.cwd, origin.cwd.as_deref()),
            env: self.env,
            environment: origin.environment.clone(),
            tags: self.tags,
            if_absent: origin.if_absent,
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

/// A relative folder is meant from where the caller stood.
fn resolve_cwd(cwd: Option<String>, here: Option<&str>) -> Option<String> {
    match (cwd, here) {
        (Some(cwd), Some(here)) if !cwd.starts_with('/') => Some(format!("{here}/{cwd}")),
        (Some(cwd), _) => Some(cwd),
        (None, here) => here.map(str::to_owned),
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
    Ok((name, check_text("env", value)?))
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

/// The fields of a job in JSON.
const FIELDS: [&str; 17] = [
    "command",
    "id",
    "queue",
    "priority",
    "max_retries",
    "max_attempts",
    "timeout",
    "run_at",
    "delay",
    "backoff",
    "depends_on",
    "on_dependency_failure",
    "unique_key",
    "cwd",
    "env",
    "tags",
    "limits",
];
const BACKOFF_FIELDS: [&str; 5] = ["strategy", "delay", "base", "max", "jitter"];

impl<'de> Deserialize<'de> for JobRequest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(RequestVisitor)
    }
}

struct RequestVisitor;

impl<'de> Visitor<'de> for RequestVisitor {
    type Value = JobRequest;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object with a `command`")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<JobRequest, M::Error> {
        let mut request = JobRequest::default();
        let mut seen = Seen::new(&FIELDS);
        while let Some(name) = map.next_key::<String>()? {
            let field = seen.note(&name)?;
            read_field(&mut request, field, &mut map).map_err(|error| name_field(field, error))?;
        }
        if request.command.is_none() {
            return Err(M::Error::custom(RequestError::NoCommand));
        }
        Ok(request)
    }
}

/// Says which field an error is about, unless it says so itself.
fn name_field<E: serde::de::Error>(field: &str, error: E) -> E {
    if error.to_string().starts_with(&format!("`{field}`")) {
        return error;
    }
    E::custom(format_args!("`{field}`: {error}"))
}

fn read_field<'de, M: MapAccess<'de>>(
    request: &mut JobRequest,
    field: &'static str,
    map: &mut M,
) -> Result<(), M::Error> {
    match field {
        "command" => request.command = Some(check(check_command(map.next_value()?))?),
        "id" => request.id = Some(parsed(map)?),
        "queue" => request.queue = Some(parsed(map)?),
        "priority" => request.priority = Some(whole::<{ i32::MIN as i64 }, { i32::MAX as i64 }, _, _>(map)?),
        "max_retries" => request.max_retries = Some(whole::<0, { MAX_RETRIES as i64 }, _, _>(map)?),
        "max_attempts" => request.max_attempts = Some(whole::<1, { MAX_RETRIES as i64 + 1 }, _, _>(map)?),
        "timeout" => {
            request.timeout = Some(match map.next_value()? {
                SpanText::Seconds(seconds) => {
                    check(span_from_seconds(seconds).map_err(RequestError::from).and_then(Timeout::after))?
                }
                SpanText::Text(text) => check(text.parse())?,
            });
        }
        "run_at" => request.run_at = Some(parsed(map)?),
        "delay" => request.delay = Some(map.next_value::<SpanText>()?.span()?),
        "backoff" => request.backoff = Some(map.next_value()?),
        "depends_on" => {
            let ids: Vec<String> = map.next_value()?;
            let ids: Result<Vec<JobId>, _> = ids.iter().map(|id| id.parse()).collect();
            request.depends_on = check(check_depends_on(check(ids)?))?;
        }
        "on_dependency_failure" => {
            request.on_dependency_failure =
                Some(check(check_dependency_choice(&map.next_value::<String>()?))?);
        }
        "unique_key" => request.unique_key = Some(check(check_unique_key(map.next_value()?))?),
        "cwd" => request.cwd = Some(check(check_cwd(map.next_value()?))?),
        "env" => request.env = map.next_value::<Variables>()?.0,
        "tags" => request.tags = check(check_tags(map.next_value()?))?,
        _ => return Err(M::Error::custom("it is not supported yet")),
    }
    Ok(())
}

fn check<T, E: fmt::Display, S: serde::de::Error>(result: Result<T, E>) -> Result<T, S> {
    result.map_err(S::custom)
}

fn parsed<'de, T: FromStr<Err: fmt::Display>, M: MapAccess<'de>>(map: &mut M) -> Result<T, M::Error> {
    check(map.next_value::<String>()?.parse())
}

/// A whole number within the bounds of its field, which fit the field's type.
fn whole<'de, const MIN: i64, const MAX: i64, T, M>(map: &mut M) -> Result<T, M::Error>
where
    T: TryFrom<i64, Error: fmt::Display>,
    M: MapAccess<'de>,
{
    check(T::try_from(map.next_value::<Whole<MIN, MAX>>()?.0))
}

/// Which of the known fields an object has already given.
struct Seen {
    known: &'static [&'static str],
    given: u32,
}

impl Seen {
    fn new(known: &'static [&'static str]) -> Self {
        Self { known, given: 0 }
    }

    fn note<E: serde::de::Error>(&mut self, name: &str) -> Result<&'static str, E> {
        let Some(at) = self.known.iter().position(|field| *field == name) else {
            return Err(E::custom(unknown_field(name, self.known)));
        };
        if self.given & (1 << at) != 0 {
            return Err(E::custom(format_args!("field `{name}` is given twice")));
        }
        self.given |= 1 << at;
        Ok(self.known[at])
    }
}

fn unknown_field(name: &str, known: &'static [&'static str]) -> String {
    match nearest(name, known.iter().copied()) {
        Some(nearest) => format!("unknown field `{name}`, did you mean `{nearest}`?"),
        None => format!("unknown field `{name}`, the fields are {}", known.join(", ")),
    }
}

impl<'de> Deserialize<'de> for BackoffChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(BackoffVisitor)
    }
}

struct BackoffVisitor;

impl<'de> Visitor<'de> for BackoffVisitor {
    type Value = BackoffChoice;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object such as {\"strategy\":\"exponential\",\"delay\":\"1s\"}")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<BackoffChoice, M::Error> {
        let mut choice = BackoffChoice::default();
        let mut seen = Seen::new(&BACKOFF_FIELDS);
        while let Some(name) = map.next_key::<String>()? {
            let field = seen.note(&name)?;
            read_backoff_field(&mut choice, field, &mut map)
                .map_err(|error| M::Error::custom(format_args!("`{field}`: {error}")))?;
        }
        Ok(choice)
    }
}

fn read_backoff_field<'de, M: MapAccess<'de>>(
    choice: &mut BackoffChoice,
    field: &'static str,
    map: &mut M,
) -> Result<(), M::Error> {
    match field {
        "strategy" => choice.strategy = Some(parsed(map)?),
        "delay" => choice.delay = Some(map.next_value::<SpanText>()?.span()?),
        "base" => choice.base = Some(check(check_base(map.next_value()?))?),
        "max" => choice.max = Some(map.next_value::<SpanText>()?.span()?),
        _ => choice.jitter = Some(check(check_jitter(map.next_value()?))?),
    }
    Ok(())
}

/// A whole number within bounds.
struct Whole<const MIN: i64, const MAX: i64>(i64);

impl<'de, const MIN: i64, const MAX: i64> Deserialize<'de> for Whole<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct WholeVisitor<const MIN: i64, const MAX: i64>;

        impl<const MIN: i64, const MAX: i64> Visitor<'_> for WholeVisitor<MIN, MAX> {
            type Value = Whole<MIN, MAX>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(out, "a whole number from {MIN} to {MAX}")
            }

            fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Self::Value, E> {
                if (MIN..=MAX).contains(&number) {
                    return Ok(Whole(number));
                }
                Err(E::invalid_value(serde::de::Unexpected::Signed(number), &self))
            }

            fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Self::Value, E> {
                let too_large = || E::invalid_value(serde::de::Unexpected::Unsigned(number), &self);
                let number = i64::try_from(number).map_err(|_| too_large())?;
                self.visit_i64(number)
            }
        }

        deserializer.deserialize_any(WholeVisitor)
    }
}

/// A duration: a number of seconds, or text.
enum SpanText {
    Seconds(f64),
    Text(String),
}

impl SpanText {
    fn span<E: serde::de::Error>(self) -> Result<Duration, E> {
        match self {
            Self::Seconds(seconds) => check(span_from_seconds(seconds)),
            Self::Text(text) => check(parse_span(&text)),
        }
    }
}

impl<'de> Deserialize<'de> for SpanText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct SpanVisitor;

        impl Visitor<'_> for SpanVisitor {
            type Value = SpanText;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a duration such as 90, \"90s\" or \"1m30s\"")
            }

            fn visit_f64<E>(self, seconds: f64) -> Result<SpanText, E> {
                Ok(SpanText::Seconds(seconds))
            }

            #[expect(clippy::cast_precision_loss, reason = "such a number of seconds is refused anyway")]
            fn visit_u64<E>(self, seconds: u64) -> Result<SpanText, E> {
                Ok(SpanText::Seconds(seconds as f64))
            }

            #[expect(clippy::cast_precision_loss, reason = "such a number of seconds is refused anyway")]
            fn visit_i64<E>(self, seconds: i64) -> Result<SpanText, E> {
                Ok(SpanText::Seconds(seconds as f64))
            }

            fn visit_str<E>(self, text: &str) -> Result<SpanText, E> {
                Ok(SpanText::Text(text.to_owned()))
            }
        }

        deserializer.deserialize_any(SpanVisitor)
    }
}

/// Environment variables; a name that is given twice is a mistake.
struct Variables(BTreeMap<String, String>);

impl<'de> Deserialize<'de> for Variables {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct VariablesVisitor;

        impl<'de> Visitor<'de> for VariablesVisitor {
            type Value = Variables;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object of strings")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Variables, M::Error> {
                let mut variables = BTreeMap::new();
                while let Some((name, value)) = map.next_entry::<String, String>()? {
                    let (name, value) = check(check_variable(name, value))?;
                    if variables.insert(name.clone(), value).is_some() {
                        return Err(M::Error::custom(format_args!("`{name}` is given twice")));
                    }
                }
                Ok(Variables(variables))
            }
        }

        deserializer.deserialize_map(VariablesVisitor)
    }
}

#[cfg(test)]
mod tests;
