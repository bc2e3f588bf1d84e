use rusqlite::Connection;
use serde_json::json;

use crate::cli::harness::Home;

/// The documented settings and defaults.
const DEFAULTS: [(&str, &str); 24] = [
    ("max_retries", "3"),
    ("backoff_strategy", "exponential"),
    ("retry_delay", "1s"),
    ("backoff_base", "2"),
    ("max_backoff", "5m"),
    ("backoff_jitter", "0"),
    ("job_timeout", "none"),
    ("kill_grace", "10s"),
    ("shutdown_grace", "never"),
    ("concurrency", "1"),
    ("autostart", "off"),
    ("autostart_idle", "5m"),
    ("heartbeat_interval", "5s"),
    ("lease", "30s"),
    ("crash_limit", "5"),
    ("log_max_bytes", "16M"),
    ("limits", "none"),
    ("retain_completed", "7d"),
    ("retain_dead", "never"),
    ("retain_logs", "7d"),
    ("retain_events", "30d"),
    ("retain_metrics", "90d"),
    ("durability", "full"),
    ("traces", "off"),
];

#[test]
fn every_documented_setting_is_listed_with_its_default() {
    let home = Home::with_queue();
    let settings = home.run(["config", "list", "--json"]).ok().says_nothing().json();
    let expected: Vec<_> = DEFAULTS
        .iter()
        .map(|(key, value)| json!({"key": key, "value": value, "default": value, "origin": "default"}))
        .collect();
    assert_eq!(settings, json!(expected));
}

#[test]
fn a_change_persists_and_can_be_unset() {
    let home = Home::new();
    home.run(["config", "set", "max-retries", "5"]).ok().prints("max_retries\n");
    home.run(["config", "get", "max_retries"]).ok().prints("5\n");
    let changed = json!({"key": "max_retries", "value": "5", "default": "3", "origin": "store"});
    assert_eq!(home.run(["config", "get", "max-retries", "--json"]).ok().json(), changed);
    home.run(["config", "list"]).ok().shows("max_retries         5            3            store");
    home.run(["config", "unset", "max-retries"]).ok();
    home.run(["config", "get", "max-retries"]).ok().prints("3\n");
}

#[test]
fn a_value_is_shown_in_its_canonical_form() {
    let home = Home::new();
    for (key, typed, shown) in [
        ("retry-delay", "0.5", "500ms"),
        ("retry_delay", "PT1M30S", "1m30s"),
        ("log-max-bytes", "16 MiB", "16M"),
        ("backoff-base", "1.5", "1.5"),
        ("job-timeout", "90", "1m30s"),
        ("job-timeout", "none", "none"),
        ("retain-dead", "2w", "14d"),
        ("shutdown-grace", "0", "0s"),
        ("limits", "{\"memory\":\"1024M\",\"nice\":5}", "memory=1G,nice=5"),
        ("limits", "none", "none"),
        ("retain-completed", "forever", "never"),
        ("job-timeout", "never", "none"),
        ("shutdown-grace", "off", "never"),
        ("backoff-strategy", "linear", "linear"),
        ("traces", "never", "off"),
        ("traces", "none", "off"),
        ("autostart", "forever", "off"),
    ] {
        assert_eq!(
            home.run(["config", "set", key, typed, "--json"]).ok().json()["value"],
            shown,
            "{key} {typed}"
        );
    }
}

#[test]
fn invalid_values_are_refused_with_the_valid_ones() {
    let home = Home::new();
    for (key, value, message) in [
        ("max-retries", "-1", "a whole number from 0 to 1000000"),
        ("max-retries", "1.5", "a whole number"),
        ("max-retries", "", "a whole number"),
        ("max-retries", "9223372036854775808", "a whole number"),
        ("concurrency", "0", "from 1 to 1024"),
        ("backoff-strategy", "quadratic", "exponential"),
        ("backoff-base", "0.9", "at least 1"),
        ("backoff-base", "NaN", "at least 1"),
        ("backoff-jitter", "2", "jitter"),
        ("retry-delay", "soon", "not a valid duration"),
        ("retry-delay", "-5s", "must not be negative"),
        ("job-timeout", "0", "greater than 0, or `none`"),
        ("job-timeout", "soon", "must be a duration or `none`"),
        ("retain-logs", "soon", "must be a duration or `never`"),
        ("heartbeat-interval", "0", "greater than 0"),
        ("lease", "1s", "shorter than 3 heartbeats"),
        ("heartbeat-interval", "11s", "shorter than 3 heartbeats"),
        ("log-max-bytes", "much", "not a valid size"),
        ("durability", "none", "full or normal"),
        ("limits", "512M", "memory=512M,pids=100"),
        ("limits", "memroy=1G", "did you mean `memory`?"),
    ] {
        home.run(["config", "set", key, value]).fails(2).prints("").says(message);
    }
    let settings = home.run(["config", "list", "--json"]).ok().json();
    let changed: Vec<_> = settings
        .as_array()
        .expect("an array")
        .iter()
        .filter(|setting| setting["origin"] != "default")
        .collect();
    assert!(changed.is_empty(), "{changed:?}");
}

#[test]
fn a_default_that_would_contradict_another_setting_is_refused() {
    let home = Home::new();
    home.run(["config", "set", "lease", "2m"]).ok();
    home.run(["config", "set", "heartbeat-interval", "30s"]).ok();
    let ran = home.run(["config", "set", "retry-delay", "soon"]).fails(2);
    assert_eq!(ran.stderr.matches("not a valid duration").count(), 1, "it is reported once: {ran}");
    home.run(["config", "unset", "lease"]).fails(2).says("shorter than 3 heartbeats");
    home.run(["config", "get", "lease"]).ok().prints("2m\n");
}

#[test]
fn unknown_keys_are_refused_and_the_nearest_is_offered() {
    let home = Home::with_queue();
    for args in [vec!["get", "max-retires"], vec!["set", "max-retires", "5"], vec!["unset", "max-retires"]] {
        let ran = home.run(["config"].into_iter().chain(args)).fails(2);
        ran.says("unknown setting `max-retires`").says("did you mean `max_retries`?");
    }
    home.run(["config", "get", "colour"]).fails(2).says("the settings are max_retries, backoff_strategy");
}

#[test]
fn names_of_other_programs_are_answered_with_the_setting_to_use() {
    let home = Home::new();
    for (typed, instead) in [
        ("poll-interval", "hint: there is nothing to set"),
        ("timeout", "use job_timeout"),
        ("lease-seconds", "use lease"),
        ("base-backoff", "use retry_delay"),
        ("max_attempts", "use max_retries"),
        ("workers", "`queuectl worker start --count N`"),
    ] {
        home.run(["config", "set", typed, "5"])
            .fails(2)
            .says(&format!("error: unknown setting `{typed}`"))
            .says(instead);
    }
}

#[test]
fn without_a_key_all_settings_are_listed_with_their_meaning() {
    let home = Home::with_queue();
    let listed = home.run(["config", "list"]).ok().says_nothing();
    assert!(listed.lines()[0].ends_with("MEANING"), "{listed}");
    assert!(listed.lines()[1..].iter().all(|line| line.split_whitespace().count() > 6), "{listed}");
    for args in [["config"].as_slice(), &["config", "show"], &["config", "get"]] {
        home.run(args).ok().prints(&listed.stdout);
    }
}

#[test]
fn a_missing_argument_is_named() {
    let home = Home::new();
    home.run(["config", "set", "lease"]).fails(2).says("<VALUE>");
}

#[test]
fn a_stored_setting_that_cannot_be_read_is_named_and_can_be_repaired() {
    let home = Home::with_jobs(&["a"]);
    let connection = Connection::open(home.database()).expect("the database opens");
    let rows = "insert into settings values ('lease', 'soon'), ('durability', 'none'), ('colour', 'blue')";
    connection.execute_batch(rows).expect(rows);
    home.run(["config", "list"]).fails(7).says("`colour`").says("hint: `queuectl config unset colour`");
    home.run(["config", "set", "colour", "red"]).fails(2).says("unknown setting `colour`");
    home.run(["config", "set", "lease", "60s"]).fails(7).says("`colour`");
    home.run(["config", "unset", "colour"]).ok().prints("colour\n").says_nothing();
    home.run(["config", "unset", "colour"]).fails(2).says("unknown setting `colour`");

    home.run(["enqueue", "--", "true"]).fails(7).says("hint: `queuectl config unset ");
    home.run(["config", "list"])
        .ok()
        .shows("soon")
        .says("`lease`")
        .says("`queuectl config unset durability`");
    home.run(["config", "get", "lease", "--json"])
        .ok()
        .says("hint: the stored value of `lease` is not valid; `queuectl config unset lease`");
    home.run(["config", "set", "lease", "later"]).fails(2).says("lease");
    home.run(["config", "set", "lease", "60s"]).ok();
    home.run(["config", "unset", "durability"]).ok().says_nothing();
    home.run(["config", "list"]).ok().says_nothing();
    home.run(["enqueue", "-q", "--", "true"]).ok();
}
