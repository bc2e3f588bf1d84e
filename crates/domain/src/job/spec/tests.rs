//! Which JSON is accepted, and the errors for the rest.

mod refused;
mod resolved;

use serde::de::Error as _;
use serde_json::Error;

use crate::job::backoff::Strategy;
use crate::job::spec::*;

/// Each field with a valid value.
const SAMPLES: [(&str, &str); 21] = [
    ("command", r#""true""#),
    ("id", r#""job1""#),
    ("name", r#""nightly report""#),
    ("queue", r#""media""#),
    ("priority", "1"),
    ("max_retries", "1"),
    ("max_attempts", "1"),
    ("timeout", "1"),
    ("run_at", r#""2026-01-31T09:30:00Z""#),
    ("delay", "1"),
    ("backoff", "{}"),
    ("depends_on", "[]"),
    ("on_dependency_failure", r#""run""#),
    ("unique_key", r#""k""#),
    ("unique_for", r#""started""#),
    ("cwd", r#""/""#),
    ("env", "{}"),
    ("tags", "[]"),
    ("limits", "{}"),
    ("retry_on", "[75]"),
    ("no_retry_on", "[1]"),
];

fn parse(json: &str) -> Result<JobSpec, Error> {
    serde_json::from_str(json)
}

/// The request with `true` as its command and one more field.
fn accept(field: &str, value: &str) -> JobSpec {
    let json = format!(r#"{{"command":"true","{field}":{value}}}"#);
    parse(&json).unwrap_or_else(|error| panic!("{json} was refused: {error}"))
}

/// The error for JSON that must be refused.
fn refuse(json: &str) -> String {
    let shown: String = json.chars().take(100).collect();
    match parse(json) {
        Ok(request) => panic!("{shown} was accepted: {request:?}"),
        Err(error) => error.to_string(),
    }
}

/// The error for one field; also checks that it names the field and gives the position once.
fn refuse_field(field: &str, value: &str) -> String {
    let message = refuse(&format!(r#"{{"{field}":{value}}}"#));
    // An error that starts with its field continues with one of these.
    let prefixes = [": ", " is ", " has ", " contains "].map(|rest| format!("`{field}`{rest}"));
    let shown: String = value.chars().take(100).collect();
    assert!(prefixes.iter().any(|prefix| message.starts_with(prefix)), "{field} {shown} got {message}");
    assert_eq!(message.matches(" at line 1 column ").count(), 1, "{message}");
    message
}

fn plain() -> JobSpec {
    JobSpec { command: Some("true".to_owned()), ..JobSpec::default() }
}

fn ids<const N: usize>(names: [&str; N]) -> Vec<JobId> {
    names.map(|name| name.parse().expect("valid job id")).to_vec()
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("text serialises to JSON")
}

#[test]
fn every_field_has_a_sample_that_is_accepted() {
    let sampled = SAMPLES.iter().map(|(field, _)| *field);
    assert!(sampled.eq(JobSpec::field_names().iter().copied()));
    for (field, value) in &SAMPLES[1..] {
        accept(field, value);
    }
}

#[test]
fn a_job_needs_only_a_command() {
    assert_eq!(parse(r#" {"command" : "true"} "#).ok(), Some(plain()));
    let command = "printf '%s\\n' \"ü\"\n\ttrue";
    let json = format!(r#"{{"command":{}}}"#, quoted(command));
    assert_eq!(parse(&json).expect("valid").command.as_deref(), Some(command), "a command is kept verbatim");
}

#[test]
fn all_fields_together_are_parsed() {
    let json = r#"{"command":"make","id":"job1","name":"all of it","queue":"media","priority":-5,"max_retries":0,"timeout":"1m30s",
        "run_at":"2026-01-31T09:30:00+02:00","depends_on":["a","b"],"on_dependency_failure":"run","unique_key":"k",
        "unique_for":"1h","cwd":"/srv","env":{"B":"2","A":""},"tags":["x","y"],
        "limits":{"pids":9},"retry_on":[75,1],"no_retry_on":[2],
        "backoff":{"strategy":"linear","delay":"2s","base":1.5,"max":60,"jitter":0.25}}"#;
    let expected = JobSpec {
        command: Some("make".to_owned()),
        id: "job1".parse().ok(),
        name: Some("all of it".to_owned()),
        queue: "media".parse().ok(),
        priority: Some(-5),
        max_retries: Some(0),
        max_attempts: None,
        timeout: Some(Timeout::After(Duration::from_secs(90))),
        run_at: "2026-01-31T07:30:00Z".parse().ok(),
        delay: None,
        backoff: Some(BackoffChoice {
            strategy: Some(Strategy::Linear),
            delay: Some(Duration::from_secs(2)),
            base: Some(1.5),
            max: Some(Duration::from_secs(60)),
            jitter: Some(0.25),
        }),
        depends_on: ids(["a", "b"]),
        on_dependency_failure: Some(OnDependencyFailure::Run),
        unique_key: Some("k".to_owned()),
        unique_for: Some(UniqueFor::Span(Duration::from_secs(3_600))),
        cwd: Some("/srv".to_owned()),
        env: BTreeMap::from([("A", ""), ("B", "2")].map(|(k, v)| (k.to_owned(), v.to_owned()))),
        tags: vec!["x".to_owned(), "y".to_owned()],
        limits: "pids=9".parse().ok(),
        retry_on: "1,75".parse().ok(),
        no_retry_on: "2".parse().ok(),
    };
    assert_eq!(parse(json).expect("valid"), expected);
}

/// Every field that a job can have, except those that exclude each other.
const ALL_FIELDS: &str = r#"{"command":"echo \"hi\"","id":"a","name":"n","queue":"q","priority":-3,"max_retries":0,
    "timeout":"1m30s","run_at":"2026-01-31T09:30:00.000Z",
    "backoff":{"strategy":"linear","delay":"1s500ms","base":1.5,"max":"5m","jitter":0.25},
    "depends_on":["b","c"],"on_dependency_failure":"run","unique_key":"k","unique_for":"1h","cwd":"/tmp","env":{"A":"ä=b"},
    "tags":["x","y"],"limits":{"memory":"512M","cpu":1.5,"pids":100,"nice":10,"open_files":1024},
    "retry_on":[1,75],"no_retry_on":[2]}"#;

#[test]
fn specs_survive_a_round_trip() {
    for json in [
        ALL_FIELDS,
        r#"{"command":"true"}"#,
        r#"{"command":"true","max_attempts":4,"timeout":"none","delay":"250ms"}"#,
        r#"{"command":"true","backoff":{"base":1e300}}"#,
    ] {
        let spec = parse(json).expect(json);
        let written = serde_json::to_string(&spec).expect("a spec serialises to JSON");
        assert_eq!(parse(&written).expect(&written), spec, "{written}");
    }
    let spec = parse(ALL_FIELDS).expect("a valid spec");
    let plain = |json: &str| json.split_whitespace().collect::<String>();
    assert_eq!(plain(&serde_json::to_string(&spec).expect("JSON")), plain(ALL_FIELDS));
}

#[test]
fn every_field_reaches_the_job_and_its_options_are_stored() {
    let fields = parse(ALL_FIELDS).expect("a valid spec").to_fields();
    let resolve = |fields| {
        JobSpec::from_fields(fields)?.resolve(&resolved::origin(), resolved::generated).map_err(Error::custom)
    };
    let job: NewJob = resolve(fields.clone()).expect("a valid job");
    let stored = job.options.to_json();
    assert_eq!(JobOptions::from_json(stored.as_deref()).ok().as_ref(), Some(&job.options), "{stored:?}");
    for name in JobSpec::field_names().iter().filter(|name| !["max_attempts", "delay"].contains(name)) {
        let mut others = fields.clone();
        assert!(others.remove(*name).is_some(), "{name}");
        assert_ne!(resolve(others).ok().as_ref(), Some(&job), "{name} is ignored");
    }
}

#[test]
fn durations_are_parsed_in_every_form() {
    for (value, millis) in [
        ("90", 90_000),
        ("0.5", 500),
        ("1e2", 100_000),
        (r#""90""#, 90_000),
        (r#""90s""#, 90_000),
        (r#""1m30s""#, 90_000),
        (r#""PT1M30S""#, 90_000),
        (r#""7d""#, 604_800_000),
        ("3162240000", 3_162_240_000_000),
    ] {
        let span = Duration::from_millis(millis);
        assert_eq!(accept("delay", value).delay, Some(span), "delay {value}");
        let timeout = accept("timeout", value).timeout;
        assert_eq!(timeout, Some(Timeout::After(span)), "timeout {value}");
        for field in ["delay", "max"] {
            accept("backoff", &format!(r#"{{"{field}":{value}}}"#));
        }
    }
    let timeout = accept("timeout", r#""none""#).timeout;
    assert_eq!(timeout, Some(Timeout::None));
    assert_eq!(accept("delay", "0").delay, Some(Duration::ZERO));
}

#[test]
fn whole_numbers_are_accepted_up_to_their_bounds() {
    for (value, priority) in [("2147483647", i32::MAX), ("-2147483648", i32::MIN)] {
        assert_eq!(accept("priority", value).priority, Some(priority));
    }
    for (value, retries) in [("0", 0), ("1000000", 1_000_000)] {
        assert_eq!(accept("max_retries", value).max_retries, Some(retries));
    }
    assert_eq!(accept("max_attempts", "1").max_attempts, Some(1));
}

#[test]
fn words_for_priorities_are_numbers() {
    for (word, priority) in [("low", -10), ("normal", 0), ("high", 10), ("urgent", 20), ("HIGH", 10)] {
        assert_eq!(accept("priority", &quoted(word)).priority, Some(priority));
    }
    let written = serde_json::to_string(&accept("priority", r#""high""#)).expect("JSON");
    assert_eq!(written, r#"{"command":"true","priority":10}"#);
}

#[test]
fn null_means_absent() {
    for (field, _) in &SAMPLES[1..] {
        assert_eq!(accept(field, "null"), plain(), "{field}");
    }
    for field in ["strategy", "delay", "base", "max", "jitter"] {
        let backoff = accept("backoff", &format!(r#"{{"{field}":null}}"#)).backoff;
        assert_eq!(backoff, Some(BackoffChoice::default()), "{field}");
    }
    for field in ["memory", "cpu", "pids", "nice", "open_files"] {
        let limits = accept("limits", &format!(r#"{{"{field}":null}}"#)).limits;
        assert_eq!(limits, Some(Limits::default()), "{field}");
    }
}

#[test]
fn fields_from_two_sources_are_merged_unless_both_give_one() {
    let json = JobSpec::from_json_without_command(r#"{"queue":"q","tags":["x"]}"#).expect("valid");
    let flags = JobSpec { command: Some("true".to_owned()), priority: Some(5), ..JobSpec::default() };
    let merged = json.clone().merge(&flags).expect("different fields");
    let expected = JobSpec { queue: "q".parse().ok(), tags: vec!["x".to_owned()], ..flags.clone() };
    assert_eq!(merged, expected);
    let both = JobSpec { tags: vec!["y".to_owned()], ..flags };
    assert_eq!(json.merge(&both), Err(SpecError::GivenTwice { field: "tags" }));
    assert!(JobSpec::from_json_without_command(r#"{"queue":"q"} x"#).is_err());
}

#[test]
fn times_are_parsed_in_every_form() {
    for (value, expected) in [
        ("2026-01-31T09:30:00Z", "2026-01-31T09:30:00.000Z"),
        ("2026-01-31T09:30:00.5Z", "2026-01-31T09:30:00.500Z"),
        ("2026-01-31T09:30:00+02:00", "2026-01-31T07:30:00.000Z"),
        ("9999-12-31T23:59:59Z", "9999-12-31T23:59:59.000Z"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000Z"),
    ] {
        let run_at = accept("run_at", &quoted(value)).run_at;
        assert_eq!(run_at.expect(value).to_string(), expected, "{value}");
    }
}

#[test]
fn choices_are_parsed_by_name() {
    for choice in OnDependencyFailure::ALL {
        let request = accept("on_dependency_failure", &quoted(choice.name()));
        assert_eq!(request.on_dependency_failure, Some(choice));
    }
    for strategy in Strategy::ALL {
        let value = format!(r#"{{"strategy":"{strategy}"}}"#);
        let backoff = accept("backoff", &value).backoff.expect("a backoff");
        assert_eq!(backoff.strategy, Some(strategy));
        assert_eq!(backoff.delay, None, "an omitted field stays unset");
    }
    let backoff = accept("backoff", r#"{"base":1,"jitter":1}"#).backoff;
    let backoff = backoff.expect("a backoff");
    assert_eq!((backoff.base, backoff.jitter), (Some(1.0), Some(1.0)));
}

#[test]
fn an_id_given_twice_in_depends_on_counts_once() {
    let request = accept("depends_on", r#"["b","a","b","a"]"#);
    assert_eq!(request.depends_on, ids(["b", "a"]));
}

#[test]
fn lengths_are_accepted_up_to_their_limits() {
    let list = |count: usize| {
        let items: Vec<String> = (0..count).map(|at| format!("\"i{at}\"")).collect();
        format!("[{}]", items.join(","))
    };
    let text = |bytes: usize| format!("\"{}\"", "x".repeat(bytes));
    let tag = |bytes: usize| format!("[{}]", text(bytes));
    for (field, fits, too_large, limit) in [
        ("command", text(131_071), text(131_072), "131071"),
        ("id", text(128), text(129), "128"),
        ("name", text(256), text(257), "256"),
        ("queue", text(64), text(65), "64"),
        ("unique_key", text(512), text(513), "512"),
        ("cwd", text(4_096), text(4_097), "4096"),
        ("tags", tag(128), tag(129), "128"),
        ("tags", list(64), list(65), "64"),
        ("depends_on", list(10_000), list(10_001), "10000"),
    ] {
        let json = format!(r#"{{"{field}":{fits}}}"#);
        match parse(&json) {
            Ok(_) => {}
            Err(error) if error.to_string().starts_with("a job needs") => {}
            Err(error) => panic!("{field} of {limit} was refused: {error}"),
        }
        let message = refuse_field(field, &too_large);
        assert!(message.contains(limit), "{field}: {message}");
    }
}
