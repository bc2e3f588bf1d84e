//! The JSON form of a schedule.

use serde::Serialize;
use serde_json::Value;

use crate::json::json_object;
use domain::job::spec::JobSpec;
use domain::schedule::{NEXT_RUNS, OnMissed, Run, Schedule, When};
use domain::values::clock::{Clock, TimeFormat};

json_object! {
    /// `time_zone` is null unless the kind is cron, and `missed_limit` unless `on_missed` is `all`.
    ScheduleJson(schedule: Schedule) {
        name: schedule.name,
        kind: schedule.when.kind(),
        expression: schedule.when.expression(),
        time_zone: schedule.when.zone_name(),
        description: description(&schedule.when, &Clock::new(schedule.created_at, TimeFormat::Full)),
        on_missed: schedule.policy.on_missed,
        missed_limit: (schedule.policy.on_missed == OnMissed::All).then_some(schedule.policy.missed_limit),
        on_overlap: schedule.policy.on_overlap,
        paused: schedule.paused.is_some(),
        paused_at: schedule.paused.as_ref().map(|(at, _)| at),
        paused_by: schedule.paused.as_ref().map(|(_, pause)| &pause.by),
        pause_reason: schedule.paused.as_ref().and_then(|(_, pause)| pause.reason.as_ref()),
        created_at: schedule.created_at,
        created_by: schedule.created_by,
        next_at: schedule.next_runs(1).first(),
        last_at: schedule.last_at,
        missed_at: schedule.missed_at,
        skipped_at: schedule.skipped_at,
        next_runs: schedule.next_runs(NEXT_RUNS),
        job: job(&schedule.job),
    }
}

/// The times in words.
pub fn description(when: &When, clock: &Clock) -> String {
    match when {
        When::Cron { line, .. } => line.in_words(),
        When::Every(_) | When::At(_) => when.in_short(clock),
    }
}

/// The requested job, with only the names of environment variables.
fn job(request: &JobSpec) -> Value {
    let mut job = serde_json::to_value(request).expect("a request serializes to JSON");
    if let Value::Object(fields) = &mut job
        && let Some(Value::Object(env)) = fields.get("env")
    {
        let names = env.keys().map(|name| Value::String(name.clone())).collect();
        fields.insert("env".to_owned(), Value::Array(names));
    }
    job
}

/// The fields of the requested job as text.
pub fn job_facts(request: &JobSpec) -> Vec<(String, String)> {
    let Value::Object(fields) = job(request) else {
        return Vec::new();
    };
    fields.into_iter().map(|(name, value)| (name.replace('_', " "), in_words(&value))).collect()
}

fn in_words(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(list) => list.iter().map(in_words).collect::<Vec<_>>().join(", "),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| format!("{name}={}", in_words(value)))
            .collect::<Vec<_>>()
            .join(","),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

/// A schedule with its latest run, for lists.
#[derive(Debug, Serialize)]
pub struct ScheduleSummaryJson<'a> {
    #[serde(flatten)]
    pub schedule: ScheduleJson<'a>,
    pub last_run: Option<&'a Run>,
}

impl<'a> From<&'a (Schedule, Option<Run>)> for ScheduleSummaryJson<'a> {
    fn from((schedule, run): &'a (Schedule, Option<Run>)) -> Self {
        Self { schedule: schedule.into(), last_run: run.as_ref() }
    }
}

/// A schedule with its latest runs, newest first.
#[derive(Debug, Serialize)]
pub struct ScheduleRecordJson<'a> {
    #[serde(flatten)]
    pub schedule: ScheduleJson<'a>,
    pub runs: &'a [Run],
}
