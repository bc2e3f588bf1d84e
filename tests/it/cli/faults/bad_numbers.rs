//! Cases 7 and 8: numbers and times.

use crate::cli::harness::Home;

/// Refused as JSON, with this field named, and nothing stored.
#[track_caller]
fn refused(field: &str, value: &str) {
    let home = Home::new();
    let job = format!("{{\"command\":\"x\",\"{field}\":{value}}}");
    home.run(["enqueue", &job]).fails(2).prints("").says(&format!("`{field}`"));
    home.call(["enqueue", "-"]).with_stdin(job).run().fails(2).says(&format!("`{field}`"));
    assert!(home.is_empty(), "{field} {value}");
}

#[test]
fn fault_07_a_count_is_a_whole_number_within_bounds() {
    for value in
        ["-1", "1.5", "1.0", "1e2", "NaN", "Infinity", "1e400", "9223372036854775808", "1000001", "\"3\""]
    {
        refused("max_retries", value);
    }
    for value in ["0", "-1", "1.5", "1e400", "9223372036854775808"] {
        refused("max_attempts", value);
    }
    for value in ["1.5", "NaN", "1e400", "9223372036854775808", "2147483648", "-2147483649"] {
        refused("priority", value);
    }
}

#[test]
fn fault_07_flags_have_the_same_bounds() {
    for (flag, values) in [
        ("--max-retries", ["-1", "1.5", "NaN", "1e400", "9223372036854775808", "1000001", ""].as_slice()),
        ("--max-attempts", &["0", "-1", "1e9", ""]),
        ("--priority", &["1.5", "2147483648", "highest", ""]),
        ("--timeout", &["0", "0s", "-1", "NaN", "1e400", "soon", "", "1y"]),
        ("--delay", &["-1", "NaN", "1e400", "inf", "someday", ""]),
    ] {
        for value in values {
            let home = Home::new();
            home.run(["enqueue", &format!("{flag}={value}"), "--", "x"]).fails(2).prints("").says(flag);
            assert!(home.is_empty(), "{flag} {value}");
        }
    }
}

#[test]
fn fault_07_a_negative_number_is_named_and_not_taken_for_a_flag() {
    for flag in ["--max-retries", "--max-attempts", "--timeout", "--delay"] {
        let home = Home::new();
        home.run(["enqueue", flag, "-1", "--", "x"]).fails(2).says("invalid value '-1'");
        assert!(home.is_empty(), "{flag}");
    }
    Home::new().run(["list", "--limit", "-1"]).fails(2).says("invalid value '-1'");
}

#[test]
fn fault_07_an_invalid_number_is_refused_with_its_bounds() {
    for (args, bounds) in [
        (
            ["enqueue", "--priority"].as_slice(),
            " from -2147483648 to 2147483647, or low, normal, high or urgent",
        ),
        (&["enqueue", "--max-retries"], " from 0 to 1000000"),
        (&["edit", "a", "--max-attempts"], " from 1 to 1000001"),
        (&["list", "--limit"], ", 0 or more"),
        (&["events", "--limit"], ", 0 or more"),
        (&["batch", "list", "--limit"], ", 0 or more"),
        (&["graph", "a", "--limit"], " from 1 to 1000000"),
        (&["logs", "a", "--attempt"], ", 1 or more"),
        (&["worker", "start", "--count"], " from 1 to 1000"),
        (&["worker", "start", "--concurrency"], " from 1 to 1024, or auto for the number of cores"),
        (&["run", "--each", "x", "-j"], " from 1 to 1024, or auto for the number of cores"),
        (&["schedule", "add", "s", "--every", "1h", "--missed-limit"], " from 1 to 100"),
        (&["selftest", "--seconds"], ", 0 or more"),
    ] {
        for number in ["many", "1.5", "-2147483649"] {
            let ran = Home::new().run(args.iter().copied().chain([number])).fails(2).prints("");
            ran.says(&format!("invalid value '{number}'")).says(&format!("must be a whole number{bounds}\n"));
        }
    }
}

#[test]
fn fault_07_the_bounds_themselves_are_accepted() {
    let home = Home::new();
    for field in [
        "\"max_retries\":0",
        "\"max_retries\":1000000",
        "\"max_attempts\":1",
        "\"max_attempts\":1000001",
        "\"priority\":2147483647",
        "\"priority\":-2147483648",
        "\"timeout\":0.001",
        "\"delay\":0",
        "\"delay\":\"36500d\"",
        "\"backoff\":{\"base\":1}",
        "\"backoff\":{\"base\":1e300,\"delay\":\"36500d\",\"max\":\"36500d\"}",
    ] {
        home.run(["enqueue", &format!("{{\"command\":\"x\",{field}}}")]).ok();
    }
}

#[test]
fn fault_07_a_number_that_no_store_can_keep_is_refused() {
    let home = Home::new();
    let add =
        |above: &str| home.run(["hook", "add", "h", "--on", "dlq-above", "--above", above, "--", "true"]);
    for above in ["9223372036854775808", "18446744073709551615"] {
        add(above).fails(2).prints("").says("the threshold must be at most 9223372036854775807");
    }
    add("9223372036854775807").ok();
    let exported = home.run(["export"]).ok().stdout;
    for number in ["9223372036854775808", "-1"] {
        let lines = exported.replace("9223372036854775807", number);
        Home::new().call(["import", "-"]).with_stdin(lines).run().fails(2);
    }
}

#[test]
fn fault_07_a_zero_or_infinite_timeout_is_refused() {
    for value in
        ["0", "0.0", "\"0s\"", "-1", "1e400", "1e300", "\"-5s\"", "\"never\"", "\"99999999h\"", "0.0001"]
    {
        refused("timeout", value);
    }
    for value in ["-1", "1e400", "\"-5s\"", "\"soon\"", "9223372036854775808"] {
        refused("delay", value);
    }
}

#[test]
fn fault_07_a_backoff_base_below_one_is_refused() {
    for value in [
        "{\"base\":0.99}",
        "{\"base\":0}",
        "{\"base\":-2}",
        "{\"base\":1e400}",
        "{\"base\":\"2\"}",
        "{\"jitter\":-0.1}",
        "{\"jitter\":1.1}",
        "{\"strategy\":\"quadratic\"}",
        "{\"delay\":-1}",
        "{\"max\":\"x\"}",
    ] {
        refused("backoff", value);
    }
    let home = Home::new();
    home.run(["enqueue", "--backoff", "{\"base\":0.5}", "--", "x"]).fails(2).says("at least 1");
    home.run(["enqueue", "--backoff", "quick", "--", "x"]).fails(2).says("--backoff");
    assert!(home.is_empty());
}

#[test]
fn fault_07_a_backoff_that_overflows_a_float_is_capped() {
    let home = Home::new();
    home.run(["config", "set", "backoff-base", "1e300"]).ok();
    home.run(["config", "set", "max-backoff", "1h"]).ok();
    home.run(["enqueue", "-q", "--id", "a", "--", "false"]).ok();
    home.kill_next("a", "exit code 1");
    let job = home.show("a");
    let millis = |field: &str| {
        let text = job[field].as_str().expect("a time is text");
        text.parse::<domain::values::timestamp::Timestamp>().expect("a time").as_millis()
    };
    assert_eq!(millis("next_retry_at") - millis("updated_at"), 3_600_000, "{job}");
}

#[test]
fn fault_08_a_time_in_json_must_be_rfc_3339_with_a_zone() {
    for value in [
        "someday",
        "",
        "2026-02-30T00:00:00Z",
        "2026-01-31T25:00:00Z",
        "2026-01-31T09:30:00[Europe/Berlin]",
        "1700000000",
        "10000-01-01T00:00:00Z",
        "9999-12-31T23:59:59-01:00",
    ] {
        refused("run_at", &format!("\"{value}\""));
        let home = Home::new();
        home.run(["enqueue", &format!("--run-at={value}"), "--", "x"]).fails(2).says("--run-at");
        assert!(home.is_empty(), "{value}");
    }
    for local in ["tomorrow", "2026-01-31", "2026-01-31T09:30:00"] {
        refused("run_at", &format!("\"{local}\""));
    }
}

#[test]
fn fault_08_a_past_time_is_due_and_the_year_9999_is_accepted() {
    let home = Home::new();
    for (id, time) in [
        ("past", "1999-12-31T23:59:59Z"),
        ("before-1970", "1969-12-31T23:59:59Z"),
        ("year-1", "0001-01-01T00:00:00Z"),
        ("far", "9999-12-31T23:59:59.999Z"),
    ] {
        home.run(["enqueue", "--id", id, "--run-at", time, "--", "true"]).ok();
    }
    let ready = home.run(["list", "--state", "ready", "--json"]).ok().json();
    assert_eq!(ready.as_array().map(Vec::len), Some(3), "{ready}");
    home.run(["list", "--state", "scheduled"]).ok().shows("far");
    assert_eq!(home.show("far")["run_at"], "9999-12-31T23:59:59.999Z");
    home.run(["show", "far"]).ok();
}
