//! Resource limits of a job: memory, processors, processes, open files, and its nice value.
//!
//! A job, its queue and the settings can each set limits; field by field, the job's value comes first, then the queue's.
//! In JSON limits are an object; elsewhere `memory=512M,pids=100` is also accepted.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::json::{check, given, read_as_object, whole};
use crate::text::nearest::suggestion;
use crate::values::size::{SizeError, format_size, parse_size};

/// The minimum for any program. It catches `512` typed for `512M`.
pub const MIN_MEMORY: u64 = 1 << 20;
/// The smallest share that the kernel can enforce.
pub const MIN_CPU: f64 = 0.01;
pub const MAX_CPU: f64 = 10_000.0;
pub const MAX_PIDS: i64 = 1 << 22;
pub const MIN_NICE: i64 = -20;
pub const MAX_NICE: i64 = 19;
/// The three standard streams, and one to load the program with.
pub const MIN_OPEN_FILES: i64 = 4;
pub const MAX_OPEN_FILES: i64 = 1 << 30;

/// The names of the fields, in the order in which they are written.
pub const FIELDS: [&str; 5] = ["memory", "cpu", "pids", "nice", "open_files"];

/// A field that is `None` is unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", default)]
#[serde(expecting = "an object such as {\"memory\":\"512M\",\"pids\":100}")]
pub struct Limits {
    /// In bytes, for all processes of the job together.
    #[serde(with = "memory", skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Cpu>,
    /// Concurrent processes and threads.
    #[serde(deserialize_with = "whole::<1, MAX_PIDS, _, _>", skip_serializing_if = "Option::is_none")]
    pub pids: Option<u32>,
    #[serde(deserialize_with = "whole::<MIN_NICE, MAX_NICE, _, _>", skip_serializing_if = "Option::is_none")]
    pub nice: Option<i32>,
    /// Per process.
    #[serde(
        deserialize_with = "whole::<MIN_OPEN_FILES, MAX_OPEN_FILES, _, _>",
        skip_serializing_if = "Option::is_none"
    )]
    pub open_files: Option<u64>,
}

read_as_object!(Limits, required: None);

/// A size in JSON.
mod memory {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::check_memory;
    use crate::json::{check, given, size_text};
    use crate::values::size::{format_size, parse_size};

    struct Memory(u64);

    impl<'de> Deserialize<'de> for Memory {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            let bytes = check(parse_size(&size_text(deserializer)?))?;
            check(check_memory(bytes)).map(Self)
        }
    }

    #[expect(clippy::ref_option, reason = "serde requires this signature")]
    pub(super) fn serialize<S: Serializer>(bytes: &Option<u64>, serializer: S) -> Result<S::Ok, S::Error> {
        bytes.map(format_size).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
        Ok(given::<Memory, _>(deserializer)?.map(|memory| memory.0))
    }
}

/// A number of processors, exact to a thousandth: 1.5 is one and a half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cpu {
    pub millis: u32,
}

/// The limit that an attempt was killed for exceeding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExceededLimit {
    Memory(u64),
    Pids(u32),
}

impl ExceededLimit {
    const MEMORY: &str = "used more than its memory limit of";
    const PIDS: &str = "had more processes and threads than its limit of";
    /// The beginning of each message.
    pub const MESSAGE_PREFIXES: [&str; 2] = [Self::MEMORY, Self::PIDS];
}

impl fmt::Display for ExceededLimit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory(limit) => write!(out, "{} {}", Self::MEMORY, format_size(*limit)),
            Self::Pids(limit) => write!(out, "{} {limit}", Self::PIDS),
        }
    }
}

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum LimitsError {
    #[error("unknown limit `{typed}`; {}", suggestion(typed, "limits", &FIELDS))]
    Unknown { typed: String },
    #[error("`{field}` is given twice")]
    Twice { field: &'static str },
    #[error("not a valid limit: `{0}`; write memory=512M,pids=100 or {{\"memory\":\"512M\",\"pids\":100}}")]
    NotAPair(String),
    #[error(transparent)]
    Memory(#[from] SizeError),
    #[error("a memory limit of {0} bytes is too small for any program; write 512M for 512 MiB")]
    MemoryTooSmall(u64),
    #[error("cpu must be a number of processors from {MIN_CPU} to {MAX_CPU}, not {0}")]
    Cpu(String),
    #[error("{field} must be a whole number from {min} to {max}, not `{value}`")]
    NotInRange { field: &'static str, value: String, min: i64, max: i64 },
    #[error("{message}")]
    Json { message: String },
}

impl Limits {
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// These limits, with unset fields taken from `others`.
    #[must_use]
    pub fn or(self, others: &Self) -> Self {
        Self {
            memory: self.memory.or(others.memory),
            cpu: self.cpu.or(others.cpu),
            pids: self.pids.or(others.pids),
            nice: self.nice.or(others.nice),
            open_files: self.open_files.or(others.open_files),
        }
    }

    /// Each field that is set, with its formatted value.
    fn formatted(&self) -> impl Iterator<Item = (&'static str, String)> {
        let values = [
            self.memory.map(format_size),
            self.cpu.map(|cpu| cpu.to_string()),
            self.pids.map(|pids| pids.to_string()),
            self.nice.map(|nice| nice.to_string()),
            self.open_files.map(|files| files.to_string()),
        ];
        FIELDS.into_iter().zip(values).filter_map(|(field, value)| Some((field, value?)))
    }

    fn assign(&mut self, field: &'static str, value: &str) -> Result<(), LimitsError> {
        match field {
            "memory" => self.memory = Some(check_memory(parse_size(value)?)?),
            "cpu" => {
                let number = value.parse().map_err(|_| LimitsError::Cpu(format!("`{value}`")))?;
                self.cpu = Some(Cpu::new(number)?);
            }
            "pids" => self.pids = Some(whole_number(field, value, 1, MAX_PIDS)?),
            "nice" => self.nice = Some(whole_number(field, value, MIN_NICE, MAX_NICE)?),
            _ => self.open_files = Some(whole_number(field, value, MIN_OPEN_FILES, MAX_OPEN_FILES)?),
        }
        Ok(())
    }
}

pub fn check_memory(bytes: u64) -> Result<u64, LimitsError> {
    if bytes < MIN_MEMORY { Err(LimitsError::MemoryTooSmall(bytes)) } else { Ok(bytes) }
}

impl Cpu {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked against the bounds")]
    pub fn new(processors: f64) -> Result<Self, LimitsError> {
        if !(MIN_CPU..=MAX_CPU).contains(&processors) {
            return Err(LimitsError::Cpu(processors.to_string()));
        }
        Ok(Self { millis: (processors * 1_000.0).round() as u32 })
    }

    fn processors(self) -> f64 {
        f64::from(self.millis) / 1_000.0
    }
}

impl Serialize for Cpu {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.processors().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Cpu {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        check(Self::new(f64::deserialize(deserializer)?))
    }
}

impl fmt::Display for Cpu {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.processors().fmt(out)
    }
}

fn whole_number<T: TryFrom<i64>>(
    field: &'static str,
    value: &str,
    min: i64,
    max: i64,
) -> Result<T, LimitsError> {
    let number = value.parse().ok().filter(|number| (min..=max).contains(number));
    number.and_then(|number| T::try_from(number).ok()).ok_or_else(|| LimitsError::NotInRange {
        field,
        value: value.to_owned(),
        min,
        max,
    })
}

/// `memory=512M,pids=100`, or `none`.
impl fmt::Display for Limits {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_none() {
            return out.write_str("none");
        }
        let pairs: Vec<String> = self.formatted().map(|(field, value)| format!("{field}={value}")).collect();
        out.write_str(&pairs.join(","))
    }
}

/// A JSON object, or `memory=512M,pids=100`. Callers handle `none` themselves.
impl FromStr for Limits {
    type Err = LimitsError;

    fn from_str(text: &str) -> Result<Self, LimitsError> {
        if text.trim_start().starts_with('{') {
            return serde_json::from_str(text)
                .map_err(|error| LimitsError::Json { message: error.to_string() });
        }
        let mut limits = Self::default();
        let mut given = Vec::new();
        for pair in text.split(',') {
            let (name, value) = pair.split_once('=').ok_or_else(|| LimitsError::NotAPair(pair.to_owned()))?;
            // `open-files` and `open_files` are the same.
            let (typed, name) = (name.trim(), name.trim().replace('-', "_"));
            let field = FIELDS.into_iter().find(|field| *field == name);
            let field = field.ok_or_else(|| LimitsError::Unknown { typed: typed.to_owned() })?;
            if given.contains(&field) {
                return Err(LimitsError::Twice { field });
            }
            limits.assign(field, value.trim())?;
            given.push(field);
        }
        Ok(limits)
    }
}

#[cfg(test)]
mod tests;
