//! How requests become jobs: fields that exclude each other, and defaults.

use crate::job::spec::tests::*;

pub(super) fn origin() -> Origin {
    Origin {
        settings: Settings {
            job_timeout: Some(Duration::from_secs(60)),
            max_retries: 7,
            ..Settings::default()
        },
        caller: Caller { cwd: Some("/home".to_owned()), ..Caller::default() },
    }
}

pub(super) fn generated() -> JobId {
    "generated".parse().expect("valid job id")
}

/// Resolves a JSON object with these members and a `command`.
fn resolve(members: &str) -> Result<NewJob, SpecError> {
    let json = format!(r#"{{{members},"command":"true"}}"#);
    let request = parse(&json).unwrap_or_else(|error| panic!("{json} was refused: {error}"));
    request.resolve(&origin(), generated)
}

#[test]
fn fields_that_exclude_each_other_are_refused() {
    for (members, error, message) in [
        (
            r#""max_retries":3,"max_attempts":4"#,
            SpecError::BothRetries,
            "give `max_retries` or `max_attempts`, not both",
        ),
        (
            r#""run_at":"2026-01-31T09:30:00Z","delay":0"#,
            SpecError::BothTimes,
            "give `run_at` or `delay`, not both",
        ),
        (
            r#""id":"a","depends_on":["b","a"]"#,
            SpecError::DependsOnItself(ids(["a"]).remove(0)),
            "job `a` cannot depend on itself",
        ),
        (r#""unique_for":"started""#, SpecError::NoUniqueKey, "`unique_for` requires a `unique_key`"),
    ] {
        assert_eq!(error.to_string(), message);
        assert_eq!(resolve(members), Err(error), "{members}");
    }
    let empty = JobSpec::default().resolve(&origin(), generated);
    assert_eq!(empty, Err(SpecError::NoCommand));
}

#[test]
fn missing_fields_are_filled_in_from_the_origin() {
    let expected = NewJob {
        id: generated(),
        command: "true".to_owned(),
        queue: QueueName::default_queue(),
        priority: 0,
        max_retries: 7,
        timeout: Some(Duration::from_secs(60)),
        start: Start::Now,
        depends_on: Vec::new(),
        unique_key: None,
        cwd: Some("/home".to_owned()),
        environment: None,
        tags: Vec::new(),
        options: JobOptions::default(),
        stdin: None,
        if_absent: false,
        batch: None,
    };
    assert_eq!(plain().resolve(&origin(), generated), Ok(expected));
}

#[test]
fn given_fields_override_the_origin() {
    let job = resolve(r#""id":"a","cwd":"/srv","timeout":5,"max_retries":0,"queue":"q","priority":2"#)
        .expect("valid request");
    assert_eq!(job.id.as_str(), "a");
    assert_eq!(job.cwd.as_deref(), Some("/srv"));
    assert_eq!(job.timeout, Some(Duration::from_secs(5)));
    assert_eq!(job.max_retries, 0);
    assert_eq!((job.queue.as_str(), job.priority), ("q", 2));
    let endless = resolve(r#""timeout":"none""#).expect("valid request");
    assert_eq!(endless.timeout, None, "`none` overrides the default");
}

#[test]
fn max_attempts_counts_the_first_attempt_too() {
    for (attempts, retries) in [(1, 0), (4, 3), (1_000_000, 999_999)] {
        let job = resolve(&format!(r#""max_attempts":{attempts}"#)).expect("valid request");
        assert_eq!(job.max_retries, retries, "{attempts} attempts");
    }
}

#[test]
fn a_start_is_a_time_or_a_delay() {
    let start = |members| resolve(members).expect("valid request").start;
    let at = "9999-12-31T23:59:59Z".parse().expect("valid time");
    assert_eq!(start(r#""run_at":"9999-12-31T23:59:59Z""#), Start::At(at));
    assert_eq!(start(r#""delay":0"#), Start::After(Duration::ZERO));
    assert_eq!(start(r#""delay":"1h""#), Start::After(Duration::from_secs(3_600)));
}

#[test]
fn an_id_is_generated_only_if_none_was_given() {
    let named = JobSpec { id: "a".parse().ok(), ..plain() };
    let job = named.resolve(&origin(), || panic!("it has an id"));
    assert_eq!(job.expect("valid request").id.as_str(), "a");
}
