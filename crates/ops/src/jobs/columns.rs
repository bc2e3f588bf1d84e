//! Selected fields of a job, for tables with custom columns.

use serde::{Serialize, Serializer};
use serde_json::Value;

use domain::job::Job;
use domain::job::json::{BATCH, FIELDS, JobField};
use domain::text::nearest::suggestion;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown column `{typed}`; {}", suggestion(typed, "columns", &known().map(|(name, _)| *name).collect::<Vec<_>>()))]
pub struct ColumnError {
    typed: String,
}

/// Every column.
pub fn known() -> impl Iterator<Item = &'static JobField> {
    FIELDS.iter().chain([&BATCH])
}

pub fn parse_column(typed: &str) -> Result<&'static JobField, ColumnError> {
    known().find(|(name, _)| *name == typed).ok_or_else(|| ColumnError { typed: typed.to_owned() })
}

/// Fields of a job, in the requested order.
#[derive(Debug)]
pub struct Fields(Vec<(&'static str, Value)>);

impl Fields {
    pub fn of(job: &Job, columns: &[&'static JobField]) -> Self {
        Self(columns.iter().map(|(name, value)| (*name, value(job).into())).collect())
    }

    /// Each field as text: null is empty, lists are separated by commas.
    pub fn texts(&self) -> impl Iterator<Item = (&'static str, String)> {
        self.0.iter().map(|(name, value)| (*name, text(value)))
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
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}
