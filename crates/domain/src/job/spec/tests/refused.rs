//! Every kind of invalid input, and the error that names the problem.

use proptest::collection::vec;
use proptest::prelude::{any, prop_oneof, proptest};
use proptest::sample::select;
use proptest::strategy::{Just, Strategy as Generator};

use crate::job::spec::tests::*;

/// One value of each JSON type.
const KINDS: [(&str, &str); 7] = [
    ("null", "null"),
    ("boolean", "true"),
    ("integer", "3"),
    ("fraction", "1.5"),
    ("string", "\"text\""),
    ("array", "[\"text\"]"),
    ("object", "{}"),
];

/// The types that each field accepts. A field that accepts strings may still refuse this particular one.
fn takes(field: &str) -> &'static [&'static str] {
    match field {
        "command" | "id" | "name" | "queue" | "unique_key" | "cwd" => &["string"],
        "priority" | "max_retries" | "max_attempts" => &["integer"],
        "timeout" | "delay" | "unique_for" => &["integer", "fraction"],
        "backoff" | "env" | "limits" => &["object"],
        "depends_on" | "tags" => &["array"],
        // They accept strings, but not this one, or arrays, but not of strings.
        "run_at" | "on_dependency_failure" | "retry_on" | "no_retry_on" => &[],
        unknown => panic!("{unknown} is not a field"),
    }
}

#[test]
fn a_value_of_the_wrong_type_is_refused() {
    for (field, _) in SAMPLES {
        for (kind, value) in KINDS {
            if field == "command" && kind == "string" {
                continue;
            }
            if takes(field).contains(&kind) || (kind == "null" && field != "command") {
                accept(field, value);
            } else {
                refuse_field(field, value);
            }
        }
    }
}

#[test]
fn an_invalid_value_of_the_right_type_is_refused() {
    for (field, value, says) in [
        ("command", r#""""#, "blank"),
        ("command", r#"" \t\n ""#, "blank"),
        ("command", r#""\ud800""#, "hex escape"),
        ("id", r#""""#, "empty"),
        ("id", r#""a b""#, "' '"),
        ("id", r#""a/b""#, "'/'"),
        ("id", r#""ä""#, "'ä'"),
        ("id", r#""a\u001b[0m""#, r"'\u{1b}'"),
        ("id", r#""-a""#, "begin with a letter or a digit"),
        ("id", r#"".""#, "begin with a letter or a digit"),
        ("name", r#""""#, "empty"),
        ("name", r#"" ""#, "empty"),
        ("name", r#""a\nb""#, "more than one line"),
        ("name", r#""a\rb""#, "more than one line"),
        ("name", r#""a\u2028b""#, "more than one line"),
        ("queue", r#""a:b""#, "':'"),
        ("queue", r#""""#, "empty"),
        ("priority", "2147483648", "from -2147483648 to 2147483647"),
        ("priority", "-2147483649", "from -2147483648 to 2147483647"),
        ("priority", "9223372036854775808", "9223372036854775808"),
        ("priority", "-9223372036854775809", "floating point"),
        ("priority", "1e400", "out of range"),
        ("priority", r#""highest""#, "\"high\" or \"urgent\""),
        ("priority", r#""5""#, "whole number"),
        ("priority", "1.0", "whole number"),
        ("priority", "1e2", "whole number"),
        ("max_retries", "-1", "from 0 to 1000000"),
        ("max_retries", "1000001", "from 0 to 1000000"),
        ("max_retries", "9223372036854775808", "from 0 to 1000000"),
        ("max_retries", "18446744073709551616", "from 0 to 1000000"),
        ("max_retries", "1e400", "out of range"),
        ("max_retries", "0.5", "from 0 to 1000000"),
        ("max_attempts", "0", "from 1 to"),
        ("max_attempts", "-1", "from 1 to"),
        ("timeout", "0", "none"),
        ("timeout", "0.0", "none"),
        ("timeout", r#""0s""#, "none"),
        ("timeout", "0.0001", "none"),
        ("timeout", "-1", "negative"),
        ("timeout", r#""-5s""#, "negative"),
        ("timeout", r#""soon""#, "not a valid duration"),
        ("timeout", r#""""#, "not a valid duration"),
        ("timeout", r#""NaN""#, "not a valid duration"),
        ("timeout", r#""inf""#, "100 years"),
        ("timeout", "1e400", "out of range"),
        ("timeout", "9223372036854775808", "100 years"),
        ("delay", "-0.5", "negative"),
        ("delay", "1e300", "100 years"),
        ("delay", "3162240001", "100 years"),
        ("delay", r#""none""#, "not a valid duration"),
        ("delay", r#""1y""#, "not a valid duration"),
        ("run_at", r#""2026-01-31T09:30:00""#, "no time zone"),
        ("run_at", r#""2026-01-31T09:30:00[Europe/Berlin]""#, "RFC 3339"),
        ("run_at", r#""2026-01-31T09:30:00Z[Europe/Berlin]""#, "RFC 3339"),
        ("run_at", r#""2026-01-31""#, "RFC 3339"),
        ("run_at", r#""2026-02-30T00:00:00Z""#, "RFC 3339"),
        ("run_at", r#""2026-01-31T25:00:00Z""#, "RFC 3339"),
        ("run_at", r#""1769851800""#, "RFC 3339"),
        ("run_at", r#""tomorrow""#, "RFC 3339"),
        ("run_at", r#""""#, "RFC 3339"),
        ("run_at", r#""10000-01-01T00:00:00Z""#, "RFC 3339"),
        ("run_at", r#""9999-12-31T23:59:59-01:00""#, "years 1 to 9999"),
        ("run_at", r#""0001-01-01T00:00:00+01:00""#, "years 1 to 9999"),
        ("depends_on", r#"["a","b c"]"#, "' '"),
        ("depends_on", r#"["a",""]"#, "empty"),
        ("depends_on", "[1]", "string"),
        ("depends_on", "[null]", "null"),
        ("on_dependency_failure", r#""ignore""#, "cancel or run"),
        ("on_dependency_failure", r#""Cancel""#, "cancel or run"),
        ("unique_key", r#""""#, "empty"),
        ("unique_for", "0", "has no effect"),
        ("unique_for", r#""strated""#, "started, finished or a duration"),
        ("cwd", r#""""#, "empty"),
        ("env", r#"{"A":1}"#, "string"),
        ("env", r#"{"A":null}"#, "null"),
        ("env", r#"{"":"x"}"#, "not a valid name"),
        ("env", r#"{"A=B":"x"}"#, "not a valid name for an environment variable: `A=B`"),
        ("env", r#"{"A":"1","A":"1"}"#, "`A` is given twice"),
        ("tags", r#"["a",""]"#, "empty"),
        ("tags", "[1]", "string"),
        ("tags", "[null]", "null"),
        ("limits", r#"{"memory":"512"}"#, "`memory`: a memory limit of 512 bytes"),
        ("limits", r#"{"memroy":"1G"}"#, "did you mean `memory`?"),
        ("limits", r#"{"pids":1,"pids":2}"#, "`pids` is given twice"),
        ("limits", r#"{"cpu":-1}"#, "`cpu`: cpu must be"),
        ("retry_on", "[]", "empty"),
        ("retry_on", "[0]", "0 means success"),
        ("retry_on", "[256]", "from 0 to 255"),
        ("retry_on", "[-1]", "from 0 to 255"),
        ("retry_on", "[1.5]", "from 0 to 255"),
        ("no_retry_on", "[1,null]", "from 0 to 255"),
        ("no_retry_on", r#"["1"]"#, "from 0 to 255"),
    ] {
        let message = refuse_field(field, value);
        assert!(message.contains(says), "{field} {value}: {message}");
    }
}

#[test]
fn an_invalid_field_of_a_backoff_is_refused() {
    for (field, value, says) in [
        ("strategy", r#""quadratic""#, "exponential, linear or fixed"),
        ("strategy", r#""a\u0000""#, "exponential, linear or fixed"),
        ("strategy", "1", "string"),
        ("delay", "-1", "negative"),
        ("delay", "true", "duration"),
        ("max", r#""soon""#, "not a valid duration"),
        ("max", "1e400", "out of range"),
        ("max", "{}", "duration"),
        ("base", "0.999", "at least 1"),
        ("base", "0", "at least 1"),
        ("base", "-2", "at least 1"),
        ("base", "1e400", "out of range"),
        ("base", r#""2""#, "string"),
        ("jitter", "1.001", "between 0 and 1"),
        ("jitter", "-0.1", "between 0 and 1"),
        ("jitter", "true", "boolean"),
    ] {
        let message = refuse_field("backoff", &format!(r#"{{"{field}":{value}}}"#));
        let is_named = message.starts_with(&format!("`backoff`: `{field}`: "));
        assert!(is_named && message.contains(says), "{field} {value}: {message}");
    }
}

#[test]
fn an_unknown_field_suggests_the_nearest() {
    for (typed, suggested) in [
        ("comand", "command"),
        ("Command", "command"),
        ("cmmand", "command"),
        ("max-retries", "max_retries"),
        ("max_retires", "max_retries"),
        ("dependson", "depends_on"),
        ("tag", "tags"),
        ("timout", "timeout"),
    ] {
        let message = refuse(&format!(r#"{{"command":"true","{typed}":1}}"#));
        let expected = format!("unknown field `{typed}`; did you mean `{suggested}`?");
        assert!(message.starts_with(&expected), "{message}");
    }
    let message = refuse(r#"{"command":"true","colour":"red"}"#);
    assert!(message.starts_with("unknown field `colour`; the fields are command, id,"));
    let message = refuse_field("backoff", r#"{"bse":2}"#);
    assert!(message.contains("unknown field `bse`; did you mean `base`?"));
    let message = refuse_field("backoff", r#"{"colour":2}"#);
    assert!(message.contains("the fields are strategy, delay, base, max, jitter"));
}

#[test]
fn a_duplicate_key_is_refused() {
    for (field, value) in SAMPLES {
        let message = refuse(&format!(r#"{{"{field}":{value},"{field}":{value}}}"#));
        let expected = format!("field `{field}` is given twice");
        assert!(message.starts_with(&expected), "{message}");
    }
    let message = refuse_field("backoff", r#"{"base":2,"base":2}"#);
    assert!(message.contains("field `base` is given twice"), "{message}");
}

#[test]
fn a_nul_byte_is_refused_in_any_text() {
    for (field, value) in [
        ("command", r#""a\u0000b""#),
        ("id", r#""a\u0000b""#),
        ("name", r#""a\u0000b""#),
        ("queue", r#""a\u0000b""#),
        ("timeout", r#""1s\u0000""#),
        ("delay", r#""1s\u0000""#),
        ("run_at", r#""2026-01-31T09:30:00Z\u0000""#),
        ("backoff", r#"{"strategy":"fixed\u0000"}"#),
        ("backoff", r#"{"delay":"1s\u0000"}"#),
        ("backoff", r#"{"max":"1s\u0000"}"#),
        ("depends_on", r#"["a\u0000b"]"#),
        ("on_dependency_failure", r#""run\u0000""#),
        ("unique_key", r#""a\u0000b""#),
        ("cwd", r#""/a\u0000b""#),
        ("env", r#"{"A\u0000":"x"}"#),
        ("env", r#"{"A":"x\u0000"}"#),
        ("tags", r#"["a\u0000b"]"#),
    ] {
        refuse_field(field, value);
    }
    assert!(refuse(r#"{"id\u0000":"a"}"#).starts_with("unknown field"));
}

#[test]
fn json_that_is_not_an_object_with_a_command_is_refused() {
    for (json, says) in [
        ("null", "expected an object with a `command`"),
        ("true", "expected an object with a `command`"),
        ("1", "expected an object with a `command`"),
        ("-1.5", "expected an object with a `command`"),
        (r#""true""#, "expected an object with a `command`"),
        ("[]", "expected an object with a `command`"),
        (r#"[{"command":"true"}]"#, "expected an object with a `command`"),
        ("{}", "a job needs a `command`"),
        (r#"{"id":"a"}"#, "a job needs a `command`"),
        ("", "EOF"),
        ("{", "EOF"),
        (r#"{"command":"true""#, "EOF"),
        (r#"{"command":"true"#, "EOF"),
        (r#"{"command":"true",}"#, "trailing comma"),
        (r#"{"command":"true"} {}"#, "trailing characters"),
        ("{'command':'true'}", "key must be a string"),
        ("{command:true}", "key must be a string"),
        ("sleep 2", "expected value"),
    ] {
        let message = refuse(json);
        assert!(message.contains(says), "{json}: {message}");
    }
}

#[test]
fn very_deep_nesting_is_an_error_and_not_a_crash() {
    const DEPTH: usize = 100_000;
    let arrays = "[".repeat(DEPTH);
    let objects = r#"{"command":"#.repeat(DEPTH);
    refuse(&arrays);
    refuse(&objects);
    for (field, _) in SAMPLES {
        for (open, close) in [("[", "]"), (r#"{"a":"#, "}")] {
            let value = format!("{}1{}", open.repeat(DEPTH), close.repeat(DEPTH));
            refuse_field(field, &value);
        }
    }
    refuse(&format!(r#"{{"colour":{arrays}}}"#));
}

/// JSON that resembles a request: known fields with values that are often invalid.
fn nearly_requests() -> impl Generator<Value = String> {
    let mut values = KINDS.map(|(_, value)| value.to_owned()).to_vec();
    values.extend(SAMPLES.map(|(_, value)| value.to_owned()));
    values.extend(["-0", "1e400", "1e-400", "\"\"", "[[]]", "{\"max\":1}", "\"\\u0000\""].map(str::to_owned));
    let value = prop_oneof![
        select(values),
        any::<f64>().prop_map(|number| number.to_string()),
        any::<i64>().prop_map(|number| number.to_string()),
        any::<String>().prop_map(|text| quoted(&text)),
        any::<String>(),
    ];
    let member = (select(&JobSpec::field_names()[1..]), value)
        .prop_map(|(field, value)| format!(r#","{field}":{value}"#));
    let close = prop_oneof![9 => Just("}"), 1 => Just("")];
    (vec(member, 0..5), close)
        .prop_map(|(members, close)| format!(r#"{{"command":"true"{}{close}"#, members.concat()))
}

proptest! {
    #[test]
    fn parsing_any_text_does_not_panic(text in any::<String>()) {
        let _ = parse(&text);
    }

    #[test]
    fn parsing_any_bytes_does_not_panic(bytes in vec(any::<u8>(), 0..200)) {
        let _ = serde_json::from_slice::<JobSpec>(&bytes);
    }

    #[test]
    fn parsing_json_that_resembles_a_request_does_not_panic(json in nearly_requests()) {
        if let Ok(request) = parse(&json) {
            let _ = request.resolve(&resolved::origin(), resolved::generated);
        }
    }
}
