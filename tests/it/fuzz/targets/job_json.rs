//! A job in JSON: an accepted job respects every limit and has the fields that a generic JSON parser finds; written as
//! JSON it is the same job.

use std::fmt::Display;

use domain::job::backoff::BackoffChoice;
use domain::job::retry_rules::ExitCodesError;
use domain::job::spec::{
    Caller, JobSpec, MAX_COMMAND_BYTES, MAX_CWD_BYTES, MAX_DEPENDENCIES, MAX_NAME_BYTES, MAX_TAG_BYTES,
    MAX_TAGS, MAX_UNIQUE_KEY_BYTES, Origin, SpecError, Timeout,
};
use domain::job::{NewJob, OnDependencyFailure, Start};
use domain::settings::{MAX_RETRIES, Settings};
use domain::values::name::JobId;
use domain::values::span::{MAX_SPAN, format_span};
use serde_json::{Map, Value, json};

use super::message;

pub const TOKENS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "\"",
    "\\u0000",
    "\\u0041",
    "\\ud800",
    "\\n",
    "null",
    "true",
    "-1",
    "0",
    "1.5",
    "1e400",
    "2147483648",
    "9223372036854775808",
    "1000001",
    "\"command\":",
    "\"id\":",
    "\"name\":",
    "\"queue\":",
    "\"priority\":",
    "\"max_retries\":",
    "\"max_attempts\":",
    "\"timeout\":",
    "\"run_at\":",
    "\"delay\":",
    "\"backoff\":",
    "\"depends_on\":",
    "\"on_dependency_failure\":",
    "\"unique_key\":",
    "\"unique_for\":\"started\",",
    "\"cwd\":",
    "\"env\":",
    "\"tags\":",
    "\"limits\":",
    "{\"memory\":\"512M\",\"cpu\":1.5,\"pids\":100,\"nice\":10,\"open_files\":1024}",
    "\"retry_on\":",
    "\"no_retry_on\":",
    "[1,75]",
    "\"strategy\":",
    "\"base\":",
    "\"max\":",
    "\"jitter\":",
    "\"1m30s\"",
    "\"none\"",
    "\"cancel\"",
    "\"run\"",
    "\"fixed\"",
    "\"high\"",
    "\"2026-01-31T09:30:00Z\"",
    "{\"A\":\"1\"}",
    "[\"a\"]",
    "\"x\"",
    " ",
    "\n",
];

pub fn run(data: &[u8]) {
    let read = serde_json::from_slice::<JobSpec>(data);
    let in_array = serde_json::from_slice::<Vec<JobSpec>>(&[b"[", data, b"]"].concat());
    match read {
        Ok(request) => {
            let value: Value = serde_json::from_slice(data).expect("a job is JSON");
            check_presence(&request, value.as_object().expect("a job is an object"));
            check_limits(&request);
            check_round_trip(&request);
            check_resolved(&request);
            assert_eq!(in_array.expect("an array of one"), [request]);
        }
        Err(error) => message::check(&error, data),
    }
}

/// Each field of the request is set exactly if the JSON contains it and it is not `null`.
fn check_presence(request: &JobSpec, object: &Map<String, Value>) {
    for (field, is_given) in [
        ("command", request.command.is_some()),
        ("id", request.id.is_some()),
        ("name", request.name.is_some()),
        ("queue", request.queue.is_some()),
        ("priority", request.priority.is_some()),
        ("max_retries", request.max_retries.is_some()),
        ("max_attempts", request.max_attempts.is_some()),
        ("timeout", request.timeout.is_some()),
        ("run_at", request.run_at.is_some()),
        ("delay", request.delay.is_some()),
        ("backoff", request.backoff.is_some()),
        ("on_dependency_failure", request.on_dependency_failure.is_some()),
        ("unique_key", request.unique_key.is_some()),
        ("unique_for", request.unique_for.is_some()),
        ("cwd", request.cwd.is_some()),
        ("limits", request.limits.is_some()),
        ("retry_on", request.retry_on.is_some()),
        ("no_retry_on", request.no_retry_on.is_some()),
    ] {
        assert_eq!(is_given, object.get(field).is_some_and(|value| !value.is_null()), "{field}");
    }
    for (field, count) in [("env", request.env.len()), ("tags", request.tags.len())] {
        let size = |value: &Value| value.as_object().map(Map::len).or(value.as_array().map(Vec::len));
        assert_eq!(object.get(field).and_then(size).unwrap_or(0), count, "{field}");
    }
    assert_eq!(object["command"].as_str(), request.command.as_deref());
}

fn check_limits(request: &JobSpec) {
    let command = request.command.as_deref().expect("a job has a command");
    assert!(!command.trim().is_empty() && command.len() <= MAX_COMMAND_BYTES);
    assert!(request.max_retries.is_none_or(|retries| retries <= MAX_RETRIES));
    assert!(request.max_attempts.is_none_or(|attempts| (1..=MAX_RETRIES + 1).contains(&attempts)));
    assert!(request.depends_on.len() <= MAX_DEPENDENCIES && request.tags.len() <= MAX_TAGS);
    let texts =
        [Some(command), request.name.as_deref(), request.unique_key.as_deref(), request.cwd.as_deref()]
            .into_iter()
            .flatten();
    let texts = texts.chain(request.tags.iter().map(String::as_str));
    let variables = request.env.iter().flat_map(|(name, value)| [name.as_str(), value.as_str()]);
    assert!(texts.chain(variables).all(|text| !text.contains('\0')), "a NUL byte would end a C string");
    for (text, limit) in request.tags.iter().map(|tag| (tag, MAX_TAG_BYTES)).chain(
        [
            (&request.name, MAX_NAME_BYTES),
            (&request.unique_key, MAX_UNIQUE_KEY_BYTES),
            (&request.cwd, MAX_CWD_BYTES),
        ]
        .into_iter()
        .filter_map(|(text, limit)| Some((text.as_ref()?, limit))),
    ) {
        assert!((1..=limit).contains(&text.len()), "{text:?}");
    }
    assert!(request.env.keys().all(|name| !name.is_empty() && !name.contains('=')));
    assert!(request.delay.is_none_or(|delay| delay <= MAX_SPAN));
    assert!(!matches!(request.timeout, Some(Timeout::After(span)) if span.is_zero() || span > MAX_SPAN));
}

fn check_round_trip(request: &JobSpec) {
    for json in [written(request), serde_json::to_value(request).expect("a job can be written")] {
        let mut again: JobSpec = serde_json::from_value(json).expect("the written job is accepted");
        if let (Some(again), Some(before)) = (&mut again.backoff, request.backoff) {
            // The JSON parser may be off by the last bit of a float.
            again.base = nearly(again.base, before.base);
            again.jitter = nearly(again.jitter, before.jitter);
        }
        assert_eq!(again, *request);
    }
}

fn nearly(found: Option<f64>, expected: Option<f64>) -> Option<f64> {
    let (value, target) = (found?, expected?);
    if (value - target).abs() <= target.abs() * 4.0 * f64::EPSILON { expected } else { found }
}

fn written(request: &JobSpec) -> Value {
    let text = |value: &dyn Display| Value::from(value.to_string());
    let fields = [
        ("command", request.command.as_deref().map(Value::from)),
        ("id", request.id.as_ref().map(|id| text(id))),
        ("name", request.name.as_deref().map(Value::from)),
        ("queue", request.queue.as_ref().map(|queue| text(queue))),
        ("priority", request.priority.map(Value::from)),
        ("max_retries", request.max_retries.map(Value::from)),
        ("max_attempts", request.max_attempts.map(Value::from)),
        (
            "timeout",
            request.timeout.map(|timeout| match timeout {
                Timeout::None => json!("none"),
                Timeout::After(span) => json!(format_span(span)),
            }),
        ),
        ("run_at", request.run_at.map(|time| text(&time))),
        ("delay", request.delay.map(|span| json!(format_span(span)))),
        ("backoff", request.backoff.as_ref().map(written_backoff)),
        ("depends_on", Some(request.depends_on.iter().map(JobId::as_str).collect())),
        (
            "on_dependency_failure",
            request.on_dependency_failure.map(|choice| match choice {
                OnDependencyFailure::Cancel => json!("cancel"),
                OnDependencyFailure::Run => json!("run"),
            }),
        ),
        ("unique_key", request.unique_key.as_deref().map(Value::from)),
        ("unique_for", request.unique_for.map(|unique_for| text(&unique_for))),
        ("cwd", request.cwd.as_deref().map(Value::from)),
        ("env", Some(json!(request.env))),
        ("tags", Some(json!(request.tags))),
        ("limits", request.limits.map(|limits| json!(limits))),
        ("retry_on", request.retry_on.map(|codes| codes.iter().collect())),
        ("no_retry_on", request.no_retry_on.map(|codes| codes.iter().collect())),
    ];
    given(fields)
}

fn written_backoff(choice: &BackoffChoice) -> Value {
    given([
        ("strategy", choice.strategy.map(|strategy| json!(strategy.name()))),
        ("delay", choice.delay.map(|span| json!(format_span(span)))),
        ("base", choice.base.map(Value::from)),
        ("max", choice.max.map(|span| json!(format_span(span)))),
        ("jitter", choice.jitter.map(Value::from)),
    ])
}

fn given<const COUNT: usize>(fields: [(&str, Option<Value>); COUNT]) -> Value {
    fields
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)))
        .collect::<Map<_, _>>()
        .into()
}

/// Only combinations of fields that exclude each other are refused.
fn check_resolved(request: &JobSpec) {
    let caller = Caller { cwd: Some("/here".into()), ..Caller::default() };
    let origin = Origin { settings: Settings::default(), caller };
    let generated: JobId = "generated".parse().expect("an id");
    let is_own_parent = request.id.as_ref().is_some_and(|id| request.depends_on.contains(id));
    match request.clone().resolve(&origin, || generated.clone()) {
        Ok(job) => {
            assert!(!is_own_parent);
            check_job(request, &job, &generated);
        }
        Err(SpecError::BothRetries) => {
            assert!(request.max_retries.is_some() && request.max_attempts.is_some());
        }
        Err(SpecError::BothTimes) => assert!(request.run_at.is_some() && request.delay.is_some()),
        Err(SpecError::ExitCodes(ExitCodesError::InBoth(_))) => {
            assert!(request.retry_on.is_some() && request.no_retry_on.is_some());
        }
        Err(SpecError::DependsOnItself(_)) => assert!(is_own_parent),
        Err(SpecError::NoUniqueKey) => {
            assert!(request.unique_key.is_none() && request.unique_for.is_some());
        }
        Err(error) => panic!("each field alone was accepted: {error}"),
    }
}

fn check_job(request: &JobSpec, job: &NewJob, generated: &JobId) {
    assert_eq!(&job.id, request.id.as_ref().unwrap_or(generated));
    assert_eq!(Some(&job.command), request.command.as_ref());
    assert!(job.max_retries <= MAX_RETRIES);
    assert!(job.cwd.as_deref().is_some_and(|cwd| cwd.starts_with('/')), "{:?}", job.cwd);
    assert_eq!(job.start == Start::Now, request.run_at.is_none() && request.delay.is_none());
}
