use serde_json::{Value, json};

use crate::cli::harness::Home;
use crate::cli::harness::pseudo_terminal::on_terminal;
use crate::cli::harness::test_worker::TestWorker;

const NO_WORKER: &str = "hint: no worker is running, and only workers run schedules; start one with `queuectl worker \
                         start`\n";

fn add(home: &Home, name: &str, flags: &str) {
    let call = ["schedule", "add", "-q", name].into_iter().chain(flags.split_whitespace());
    home.run(call.chain(["--", "echo", "a b"])).ok().says_nothing();
}

fn show(home: &Home, name: &str) -> Value {
    home.run(["schedule", "show", name, "--json"]).ok().says_nothing().json()
}

#[test]
fn adding_prints_the_name_and_a_hint_without_workers() {
    let home = Home::new();
    let ran = home.run(["schedule", "add", "s", "--every", "15m", "--", "true"]).ok().prints("s\n");
    assert_eq!(ran.stderr, NO_WORKER);
    let _worker = TestWorker::new(&home, "w");
    home.run(["schedule", "add", "t", "--every", "15m", "--", "true"]).ok().prints("t\n").says_nothing();
}

#[test]
fn a_terminal_shows_the_next_five_runs() {
    let home = Home::new();
    let _worker = TestWorker::new(&home, "w");
    let args = ["schedule", "add", "nightly", "--cron", "0 3 1 1 *", "--tz", "europe/berlin", "--", "true"];
    let seen = on_terminal(home.call(args).into_command(), 100, "");
    let lines: Vec<&str> = seen.screen.lines().collect();
    assert_eq!((lines[0], lines.len()), ("Schedule nightly added", 6), "{}", seen.screen);
    assert!(lines[1].starts_with("  next  20"), "{}", seen.screen);
    assert!(lines[2..6].iter().all(|line| line.starts_with("  then  20")), "{}", seen.screen);
    assert!(lines[1..].iter().all(|line| line.contains("-01-01 03:00:00 CET (in ")), "{}", seen.screen);
}

#[test]
fn a_schedule_has_the_documented_shape() {
    let home = Home::new();
    let args = [
        "schedule",
        "add",
        "s",
        "--cron",
        " 30  4 * * * ",
        "--tz",
        "UTC",
        "--on-missed",
        "skip",
        "--queue",
        "q",
    ];
    let more = ["--env", "SECRET=hidden", "--tag", "x", "--timeout", "1m", "--json", "--command", "true"];
    let added = home.run(args.into_iter().chain(more)).ok().json();
    let mut shown = show(&home, "s");
    let runs = shown.as_object_mut().expect("an object").remove("runs");
    assert_eq!((runs, &shown), (Some(json!([])), &added));
    let next = shown["next_runs"].take();
    let next = next.as_array().expect("a list");
    assert_eq!((next.len(), &shown["next_at"].take()), (5, &next[0]));
    assert!(next.iter().all(|at| at.as_str().is_some_and(|at| at.ends_with("T04:30:00.000Z"))), "{next:?}");
    assert!(shown["created_at"].take().is_string() && shown["created_by"].take().is_string());
    let cwd = home.folder().canonicalize().expect("a folder");
    assert_eq!(shown["job"]["cwd"].take(), json!(cwd));
    let expected = json!({
        "name": "s", "kind": "cron", "expression": "30 4 * * *", "time_zone": "UTC", "description": "at 04:30",
        "on_missed": "skip", "missed_limit": null, "on_overlap": "skip", "paused": false, "paused_at": null,
        "paused_by": null, "pause_reason": null, "created_at": null, "created_by": null, "next_at": null,
        "last_at": null, "missed_at": null, "skipped_at": null, "next_runs": null,
        "job": {"command": "true", "queue": "q", "timeout": "1m", "cwd": null, "env": ["SECRET"], "tags": ["x"]},
    });
    assert_eq!(shown, expected);
    home.run(["schedule", "show", "s"]).ok().shows("SECRET").shows_no("hidden").shows("at 04:30");
}

#[test]
fn the_default_zone_is_that_of_the_machine() {
    let home = Home::new();
    let add = |name: &str, zone: &str| {
        let call = home.call(["schedule", "add", name, "--cron", "@daily", "--", "true"]);
        call.env("TZ", zone).run().ok();
        show(&home, name)["time_zone"].clone()
    };
    assert_eq!(add("a", "America/New_York"), json!("America/New_York"));
    assert_eq!(add("b", "Europe/Berlin"), json!("Europe/Berlin"));
}

#[test]
fn list_shows_the_next_and_the_last_run() {
    let home = Home::with_queue();
    home.run(["schedule", "list", "--json"]).ok().prints("[]\n").says_nothing();
    home.run(["schedule", "list"]).ok().prints("").says("no schedules");
    add(&home, "b", "--every 1h");
    add(&home, "a", "--every 100w");
    let id = home.run(["schedule", "run", "a"]).ok().lines()[0].to_owned();
    home.run(["cancel", "-q", &id]).ok();
    home.run(["schedule", "pause", "-q", "b", "--reason", "no\u{1b}[31m disk"]).ok();
    let ran = home.run(["schedule", "list"]).ok().says_nothing();
    let lines = ran.lines();
    let columns =
        |line: &str| line.split("  ").map(str::trim).filter(|c| !c.is_empty()).map(str::to_owned).collect();
    let rows: Vec<Vec<String>> = lines.iter().map(|line| columns(line)).collect();
    assert_eq!(rows[0], ["NAME", "WHEN", "ZONE", "NEXT", "LAST", "COMMAND"]);
    assert_eq!(rows[1][..3], ["a", "every 700d", "-"]);
    assert!(rows[1][3].contains("Z (in 700d)") && rows[1][4].starts_with("cancelled "), "{ran}");
    assert_eq!(rows[2][..3], ["b", "every 1h", "-"]);
    assert!(rows[2][3].starts_with("paused ") && rows[2][3].ends_with("(no\\u{1b}[31m disk)"), "{ran}");
    assert_eq!(
        (rows[1][5].as_str(), &rows[2][4..]),
        ("echo 'a b'", &["-".to_owned(), "echo 'a b'".to_owned()][..])
    );
    let json = home.run(["schedule", "list", "--json"]).ok().json();
    assert_eq!(json[0]["last_run"]["id"], json!(id));
    assert_eq!(
        (&json[1]["last_run"], &json[1]["paused"], &json[1]["next_runs"]),
        (&Value::Null, &json!(true), &json!([]))
    );
}

#[test]
fn a_schedule_is_paused_resumed_and_removed() {
    let home = Home::new();
    add(&home, "s", "--every 1h");
    home.run(["schedule", "pause", "s", "--reason", "why"]).ok().prints("s\n");
    let paused = show(&home, "s");
    assert_eq!((&paused["paused"], &paused["pause_reason"]), (&json!(true), &json!("why")));
    home.run(["schedule", "show", "s"]).ok().shows("reason        why");
    let resumed = home.run(["schedule", "resume", "s", "--json"]).ok().json();
    assert_eq!((&resumed["paused"], &resumed["paused_by"]), (&json!(false), &Value::Null));
    assert!(resumed["next_at"].is_string());
    let seen = on_terminal(home.call(["schedule", "remove", "s"]).into_command(), 100, "");
    assert_eq!(seen.screen, "Schedule s removed; its jobs are kept\n");
    home.run(["schedule", "list", "--json"]).ok().prints("[]\n");
}

#[test]
fn a_manual_run_is_a_job_that_knows_its_schedule() {
    let home = Home::new();
    add(&home, "s", "--every 1h");
    let job = home.run(["schedule", "run", "s", "--json"]).ok().json();
    let id = job["id"].as_str().expect("an id");
    assert!(id.starts_with("s:20") && id.ends_with('Z'), "{id}");
    assert_eq!(job["command"], json!("echo 'a b'"));
    let shown = home.show(id);
    assert_eq!((&shown["schedule"], &shown["scheduled_for"]), (&json!("s"), &Value::Null));
    home.run(["show", id]).ok().shows("schedule      s, manual run");
    home.run(["schedule", "show", "s"]).ok().shows(id).shows("manual");
    let seen = on_terminal(home.call(["schedule", "run", "s"]).into_command(), 100, "");
    assert!(seen.screen.starts_with("Job s:20"), "{}", seen.screen);
}

#[test]
fn an_unknown_schedule_is_not_found_and_the_nearest_offered() {
    let home = Home::new();
    add(&home, "nightly", "--every 1h");
    for verb in ["show", "pause", "resume", "remove", "run"] {
        home.run(["schedule", verb, "nigthly"])
            .fails(3)
            .prints("")
            .says("there is no schedule `nigthly`")
            .says("did you mean `nightly`?");
        home.run(["schedule", verb, "other"]).fails(3).says("`queuectl schedule list` shows the schedules");
        home.run(["schedule", verb, "a b"]).fails(2).says("invalid name `a b`");
    }
    home.run(["schedule", "add", "nightly", "--every", "5m", "--", "true"])
        .fails(4)
        .says("there is already a schedule");
    assert_eq!(show(&home, "nightly")["expression"], json!("1h"), "the first is untouched");
}

#[test]
fn fault_12_an_invalid_schedule_is_refused() {
    let home = Home::new();
    for (flags, expected) in [
        (&["--cron", "0 0 30 2 *"][..], "the cron expression `0 0 30 2 *` never fires"),
        (&["--cron", "* * * *"], "it has 4 fields"),
        (&["--cron", "61 * * * *"], "(minute `61` is out of range: 0-59)"),
        (&["--cron", "@dayly"], "did you mean `@daily`?"),
        (&["--cron", ""], "it has 0 fields"),
        (&["--cron", "@daily", "--tz", "Europe/Berln"], "did you mean `Europe/Berlin`?"),
        (&["--cron", "@daily", "--tz", "Mars/Phobos"], "unknown time zone `Mars/Phobos`"),
        (&["--at", "2020-01-01T00:00:00Z"], "`2020-01-01T00:00:00.000Z` is in the past"),
        (&["--at", "someday"], "write 03:00, \"tomorrow 3am\" or \"2027-01-01 10:00\""),
        (&["--at", "2020-01-01 10:00"], "is in the past"),
        (&["--at", "2099-01-01T00:00:00Z", "--tz", "UTC"], "which has its own offset"),
        (
            &["--cron", "@daily", "--tz", "PST"],
            "`PST` is an abbreviation; zones have names such as America/Los_Angeles",
        ),
        (&["--every", "999ms"], "a period of 999ms is too short"),
        (&["--every", "0"], "is too short"),
        (&["--every", "-5"], "negative"),
        (&["--every", "soon"], "soon"),
        (&["--every", "5m", "--tz", "UTC"], "--tz"),
        (&["--every", "5m", "--at", "2099-01-01T00:00:00Z"], "cannot be used with"),
        (&[], "no time given\nhint: use --cron, --every or --at\n"),
        (&["--every", "5m", "--on-missed", "never"], "expected skip, once or all"),
        (&["--every", "5m", "--on-overlap", "wait"], "expected skip, queue or replace"),
        (&["--every", "5m", "--missed-limit", "3"], "--missed-limit requires --on-missed all"),
        (&["--every", "5m", "--on-missed", "all", "--missed-limit", "101"], "101"),
        (&["--every", "5m", "--on-missed", "all", "--on-overlap", "skip"], "requires --on-overlap queue"),
        (&["--every", "5m", "--id", "a"], "cannot have `id`"),
        (&["--every", "5m", "--depends-on", "a"], "cannot have `depends_on`"),
        (&["--every", "5m", "--on-dependency-failure", "run"], "cannot have `on_dependency_failure`"),
        (&["--every", "5m", "--run-at", "2099-01-01T00:00:00Z"], "cannot have `run_at`"),
        (&["--every", "5m", "--delay", "5s"], "cannot have `delay`"),
        (&["--every", "5m", "--unique-key", "k", "--on-overlap", "queue"], "cannot have `unique_key`"),
        (&["--every", "5m", "--max-retries", "1", "--max-attempts", "2"], "not both"),
        (&["--every", "5m", "--command", "true"], "more than one way"),
    ] {
        let args = ["schedule", "add", "s"].into_iter().chain(flags.iter().copied()).chain(["--", "true"]);
        home.run(args).fails(2).prints("").says(expected);
    }
    home.run(["schedule", "add", "s", "--every", "5m"]).fails(2).says("no command given");
    home.run(["schedule", "add", "a/b", "--every", "5m", "--", "true"]).fails(2).says("invalid name `a/b`");
    home.run(["schedule", "list", "--json"]).ok().prints("[]\n");
}

#[test]
fn help_lists_only_flags_that_a_schedule_takes() {
    let help = Home::new().run(["schedule", "add", "--help"]).ok();
    for refused in [
        "--id",
        "--run-at",
        "--delay",
        "--depends-on",
        "--on-dependency-failure",
        "Start time and dependencies",
    ] {
        assert!(!help.stdout.contains(&format!("{refused} ")), "{refused}: {help}");
    }
    for taken in ["--queue", "--unique-key", "--timeout", "--limits", "--no-retry-on", "--tags"] {
        assert!(help.stdout.contains(&format!("{taken} ")), "{taken}: {help}");
    }
}
