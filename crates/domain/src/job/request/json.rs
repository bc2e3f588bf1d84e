//! Parses a [`JobRequest`] from JSON.
//!
//! Written by hand instead of derived, so that an error names the field and suggests the nearest known one, and so that a
//! duplicate key or a `null` is an error.

mod limits;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};

use super::{
    JobRequest, RequestError, Timeout, check_command, check_cwd, check_dependency_choice, check_depends_on,
    check_tags, check_unique_key, check_variable,
};
use crate::job::backoff::{BackoffChoice, check_base, check_jitter};
use crate::job::retry_rules::ExitCodes;
use crate::job::unique::UniqueFor;
use crate::settings::MAX_RETRIES;
use crate::text::nearest::nearest;
use crate::values::name::JobId;
use crate::values::span::{parse_span, span_from_seconds};

/// The fields of a job in JSON.
pub(super) const FIELDS: [&str; 20] = [
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
    "unique_for",
    "cwd",
    "env",
    "tags",
    "limits",
    "retry_on",
    "no_retry_on",
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
        let mut given = GivenFields::new(&FIELDS);
        while let Some(name) = map.next_key::<String>()? {
            let field = given.add(&name)?;
            read_field(&mut request, field, &mut map).map_err(|error| name_field(field, error))?;
        }
        if request.command.is_none() {
            return Err(M::Error::custom(RequestError::NoCommand));
        }
        Ok(request)
    }
}

/// Adds the field to an error, unless the message starts with it.
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
        "unique_for" => {
            request.unique_for = Some(match map.next_value()? {
                SpanText::Seconds(seconds) => check(UniqueFor::span(check(span_from_seconds(seconds))?))?,
                SpanText::Text(text) => check(text.parse())?,
            });
        }
        "cwd" => request.cwd = Some(check(check_cwd(map.next_value()?))?),
        "env" => request.env = map.next_value::<Variables>()?.0,
        "tags" => request.tags = check(check_tags(map.next_value()?))?,
        "limits" => request.limits = Some(map.next_value()?),
        "retry_on" => request.retry_on = Some(exit_codes(map)?),
        _ => request.no_retry_on = Some(exit_codes(map)?),
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
    check(T::try_from(map.next_value::<BoundedInteger<MIN, MAX>>()?.0))
}

fn exit_codes<'de, M: MapAccess<'de>>(map: &mut M) -> Result<ExitCodes, M::Error> {
    let codes: Vec<BoundedInteger<0, { u8::MAX as i64 }>> = map.next_value()?;
    let codes: Result<Vec<u8>, _> = codes.into_iter().map(|code| u8::try_from(code.0)).collect();
    check(ExitCodes::new(check(codes)?))
}

/// The fields that an object has given so far.
struct GivenFields {
    known: &'static [&'static str],
    given: u32,
}

impl GivenFields {
    fn new(known: &'static [&'static str]) -> Self {
        Self { known, given: 0 }
    }

    fn add<E: serde::de::Error>(&mut self, name: &str) -> Result<&'static str, E> {
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
        Some(nearest) => format!("unknown field `{name}`; did you mean `{nearest}`?"),
        None => format!("unknown field `{name}`; the fields are {}", known.join(", ")),
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
        let mut given = GivenFields::new(&BACKOFF_FIELDS);
        while let Some(name) = map.next_key::<String>()? {
            let field = given.add(&name)?;
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
struct BoundedInteger<const MIN: i64, const MAX: i64>(i64);

impl<'de, const MIN: i64, const MAX: i64> Deserialize<'de> for BoundedInteger<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct BoundedVisitor<const MIN: i64, const MAX: i64>;

        impl<const MIN: i64, const MAX: i64> Visitor<'_> for BoundedVisitor<MIN, MAX> {
            type Value = BoundedInteger<MIN, MAX>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(out, "a whole number from {MIN} to {MAX}")
            }

            fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Self::Value, E> {
                if (MIN..=MAX).contains(&number) {
                    return Ok(BoundedInteger(number));
                }
                Err(E::invalid_value(serde::de::Unexpected::Signed(number), &self))
            }

            fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Self::Value, E> {
                let too_large = || E::invalid_value(serde::de::Unexpected::Unsigned(number), &self);
                let number = i64::try_from(number).map_err(|_| too_large())?;
                self.visit_i64(number)
            }
        }

        deserializer.deserialize_any(BoundedVisitor)
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

            #[expect(clippy::cast_precision_loss, reason = "a number that large is refused anyway")]
            fn visit_u64<E>(self, seconds: u64) -> Result<SpanText, E> {
                Ok(SpanText::Seconds(seconds as f64))
            }

            #[expect(clippy::cast_precision_loss, reason = "a number that large is refused anyway")]
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

/// Environment variables. A duplicate name is an error.
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
