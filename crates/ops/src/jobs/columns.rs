//! Selected fields of a job, for tables with custom columns.

use serde::Serialize;
use serde::ser::SerializeMap;
use serde_json::Value;

use crate::json::JobJson;
use domain::job::Job;
use domain::text::nearest::nearest;
use domain::values::name::BatchName;

/// The fields of a job's JSON, in order.
pub const COLUMNS: [&str; 25] = [
    "id",
    "queue",
    "command",
    "state",
    "priority",
    "attempts",
    "max_retries",
    "failures",
    "created_at",
    "updated_at",
    "run_at",
    "started_at",
    "finished_at",
    "next_retry_at",
    "timeout_ms",
    "cwd",
    "tags",
    "depends_on",
    "unique_key",
    "worker_id",
    "lease_until",
    "exit_code",
    "signal",
    "error",
    "reason",
];

/// A column that can be requested although the JSON of a list does not contain it.
const BATCH: &str = "batch";

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ColumnError {
    #[error("unknown column `{typed}`; did you mean `{nearest}`?")]
    Near { typed: String, nearest: &'static str },
    #[error("unknown column `{typed}`; the columns are {}, {BATCH}", COLUMNS.join(", "))]
    Unknown { typed: String },
}

pub fn parse_column(typed: &str) -> Result<&'static str, ColumnError> {
    let known = || COLUMNS.into_iter().chain([BATCH]);
    if let Some(column) = known().find(|column| *column == typed) {
        return Ok(column);
    }
    let near = nearest(typed, known());
    let typed = typed.to_owned();
    Err(match near {
        Some(nearest) => ColumnError::Near { typed, nearest },
        None => ColumnError::Unknown { typed },
    })
}

/// Fields of a job, in the requested order.
#[derive(Debug)]
pub struct Fields {
    fields: Vec<(&'static str, Value)>,
}

impl Fields {
    pub fn of(job: &Job, columns: &[&'static str]) -> Self {
        let mut all = serde_json::to_value(JobJson::from(job)).expect("a job serializes to JSON");
        all[BATCH] = job.batch.as_ref().map(BatchName::as_str).into();
        let field = |name: &&'static str| (*name, all.get(name).cloned().unwrap_or(Value::Null));
        Self { fields: columns.iter().map(field).collect() }
    }

    /// Each field as text: null is empty, lists are separated by commas.
    pub fn texts(&self) -> impl Iterator<Item = (&'static str, String)> {
        self.fields.iter().map(|(name, value)| (*name, text(value)))
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(text).collect::<Vec<_>>().join(","),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => value.to_string(),
    }
}

impl Serialize for Fields {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.fields.len()))?;
        for (name, value) in &self.fields {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}
