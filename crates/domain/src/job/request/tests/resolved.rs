//! How requests become jobs: fields that exclude each other, and what fills the gaps.

use crate::job::request::tests::*;

pub(super) fn origin() -> Origin {
    Origin {
        settings: Settings {
            job_timeout: Some(Duration::from_secs(60)),
            max_retries: 7,
            ..Settings::default()
        },
        cwd: Some("/home".to_owned()),
        environment: None,
        if_absent: false,
        batch: None,
    }
}

pub(super) fn generated() -> JobId {
    "generated".parse().expect("a job id")
}

/// Resolves the members of a JSON object, `command` apart.
fn resolve(members: &str) -> Result<NewJob, RequestError> {
    let json = format!(r#"{{{members},"command":"true"}}"#);
    let request = parse(&json).unwrap_or_else(|error| panic!("{json} was refused: {error}"));
    request.resolve(&origin(), generated)
}

#[test]
fn fields_that_exclude_each_other() {
    for (members, error, says) in [
        (
            r#""max_retries":3,"max_attempts":4"#,
            RequestError::BothRetries,
            "give `max_retries` or `max_attempts`, not both",
        ),
        (
            r#""run_at":"2026-01-31T09:30:00Z","delay":0"#,
            RequestError::BothTimes,
            "give `run_at` or `delay`, not both",
        ),
        (
            r#""id":"a","depends_on":["b","a"]"#,
            RequestError::DependsOnItself(ids(["a"]).remove(0)),
            "job `a` cannot depend on itself",
        ),
        (
            r#""unique_for":"started""#,
            RequestError::NoUniqueKey,
            "`unique_for` says nothing without a `unique_key`",
        ),
    ] {
        assert_eq!(error.to_string(), says);
        assert_eq!(resolve(members), Err(error), "{members}");
    }
    let empty = JobRequest::default().resolve(&origin(), generated);
    assert_eq!(empty, Err(RequestError::NoCommand));
}

#[test]
fn gaps_are_filled_from_the_origin() {
    let expected = NewJob {
        id: generated(),
        command: "true".to_owned(),
        queue: QueueName::default_queue(),
        priority: 0,
        max_retries: 7,
        timeout: Some(Duration::from_secs(60)),
        start: Start::Now,
        backoff: None,
        depends_on: Vec::new(),
        on_dependency_failure: OnDependencyFailure::Cancel,
        unique_key: None,
        unique_for: UniqueFor::default(),
        cwd: Some("/home".to_owned()),
        env: BTreeMap::new(),
        environment: None,
        tags: Vec::new(),
        limits: Limits::default(),
        retry: RetryRules::default(),
        if_absent: false,
        batch: None,
    };
    assert_eq!(plain().resolve(&origin(), generated), Ok(expected));
}

#[test]
fn what_was_said_wins_over_the_origin() {
    let job = resolve(r#""id":"a","cwd":"/srv","timeout":5,"max_retries":0,"queue":"q","priority":2"#)
        .expect("a good request");
    assert_eq!(job.id.as_str(), "a");
    assert_eq!(job.cwd.as_deref(), Some("/srv"));
    assert_eq!(job.timeout, Some(Duration::from_secs(5)));
    assert_eq!(job.max_retries, 0);
    assert_eq!((job.queue.as_str(), job.priority), ("q", 2));
    let endless = resolve(r#""timeout":"none""#).expect("a good request");
    assert_eq!(endless.timeout, None, "`none` is more than saying nothing");
}

#[test]
fn max_attempts_counts_the_first_attempt_too() {
    for (attempts, retries) in [(1, 0), (4, 3), (1_000_000, 999_999)] {
        let job = resolve(&format!(r#""max_attempts":{attempts}"#)).expect("a good request");
        assert_eq!(job.max_retries, retries, "{attempts} attempts");
    }
}

#[test]
fn a_start_is_a_time_or_a_wait() {
    let start = |members| resolve(members).expect("a good request").start;
    let at = "9999-12-31T23:59:59Z".parse().expect("a time");
    assert_eq!(start(r#""run_at":"9999-12-31T23:59:59Z""#), Start::At(at));
    assert_eq!(start(r#""delay":0"#), Start::After(Duration::ZERO));
    assert_eq!(start(r#""delay":"1h""#), Start::After(Duration::from_secs(3_600)));
}

#[test]
fn an_id_is_generated_only_where_none_was_given() {
    let named = JobRequest { id: "a".parse().ok(), ..plain() };
    let job = named.resolve(&origin(), || panic!("it has an id"));
    assert_eq!(job.expect("a good request").id.as_str(), "a");
}
