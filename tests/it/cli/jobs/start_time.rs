//! Start times as people type them.

use domain::values::timestamp::Timestamp;
use sys::clock::{Clock, SystemClock};

use crate::cli::harness::Home;
use crate::cli::harness::pseudo_terminal::on_terminal;

fn time(text: &serde_json::Value) -> Timestamp {
    text.as_str().expect("a time").parse().expect("RFC 3339")
}

#[test]
fn flags_take_times_of_the_local_clock() {
    let home = Home::new();
    for (id, flags, expected) in [
        ("a", ["--run-at", "2099-01-01 10:00"], "2099-01-01T09:00:00.000Z"),
        ("b", ["--delay", "2099-07-01 10:00"], "2099-07-01T08:00:00.000Z"),
        ("c", ["--run-at", "2099-03-29"], "2099-03-28T23:00:00.000Z"),
        ("d", ["--run-at", "2020-01-01 10:00"], "2020-01-01T09:00:00.000Z"),
        ("e", ["--run-at", "2099-01-01T10:00:00+05:00"], "2099-01-01T05:00:00.000Z"),
    ] {
        let args = ["enqueue", "-q", "--id", id].into_iter().chain(flags).chain(["--", "true"]);
        home.call(args).env("TZ", "Europe/Berlin").run().ok().says_nothing();
        assert_eq!(home.show(id)["run_at"], expected, "{flags:?}");
    }
    home.call(["edit", "a", "--run-at", "2099-01-02 10:00"]).env("TZ", "America/New_York").run().ok();
    assert_eq!(home.show("a")["run_at"], "2099-01-02T15:00:00.000Z");
}

#[test]
fn relative_times_lie_in_the_future() {
    let home = Home::new();
    for (id, flags) in
        [("a", ["--run-at", "3am"]), ("b", ["--delay", "tomorrow 3am"]), ("c", ["--run-at", "in 2h"])]
    {
        let args = ["enqueue", "-q", "--id", id].into_iter().chain(flags).chain(["--", "true"]);
        let before = Timestamp::from_millis(SystemClock.wall_millis());
        home.call(args).env("TZ", "UTC").run().ok();
        let job = home.show(id);
        assert!(time(&job["run_at"]) > before, "{job}");
    }
    assert!(home.show("a")["run_at"].as_str().expect("a time").ends_with("T03:00:00.000Z"));
}

#[test]
fn a_terminal_confirms_a_time_in_full() {
    let home = Home::new();
    let see = |args: &[&str]| {
        let call = home.call([&["--color", "never"], args].concat()).env("TZ", "Europe/Berlin");
        on_terminal(call.into_command(), 100, "").screen
    };
    let screen = see(&["enqueue", "--id", "a", "--run-at", "2099-01-01 10:00", "--", "true"]);
    assert!(screen.contains("\nruns at 2099-01-01 10:00:00 +01:00, in "), "{screen}");
    let screen = see(&["enqueue", "--delay", "2020-01-01", "--", "true"]);
    assert!(screen.contains("\nruns now: 2020-01-01 00:00:00 +01:00 has passed\n"), "{screen}");
    let screen = see(&["edit", "a", "--run-at", "2099-01-02 10:00"]);
    assert!(screen.contains("runs at 2099-01-02 10:00:00 +01:00, in "), "{screen}");
    let at = ["--at", "2099-01-02 10:00", "--tz", "America/New_York"];
    let screen = see(&[&["schedule", "add", "s"], &at[..], &["--", "true"]].concat());
    assert!(screen.contains("runs at 2099-01-02 10:00:00 -05:00, in "), "{screen}");
    let screen = see(&["enqueue", "--delay", "15:24:09", "--", "true"]);
    assert!(screen.contains("\nruns at ") && screen.contains("15:24:09"), "{screen}");
    for exact in [["--run-at", "2099-01-01T10:00:00Z"], ["--delay", "1h"]] {
        let screen = see(&[&["enqueue"], &exact[..], &["--", "true"]].concat());
        assert!(!screen.contains("runs at"), "{screen}");
    }
}

#[test]
fn schedules_and_jobs_read_times_in_the_same_zone() {
    let home = Home::new();
    let at = "2099-01-01 10:00";
    for (name, zone, expected) in
        [("a", "<+0330>-3:30", "2099-01-01T06:30:00.000Z"), ("b", "Asia/Tehran", "2099-01-01T06:30:00.000Z")]
    {
        let call = |args: &[&str]| home.call(args.iter().chain(&["-q", "--", "true"])).env("TZ", zone).run();
        call(&["enqueue", "--id", name, "--run-at", at]).ok();
        call(&["schedule", "add", name, "--at", at]).ok();
        assert_eq!(home.show(name)["run_at"], expected, "{zone}");
        assert_eq!(home.run(["schedule", "show", name, "--json"]).ok().json()["next_at"], expected, "{zone}");
    }
}

#[test]
fn an_unknown_zone_in_the_environment_is_named() {
    let home = Home::new();
    for args in [
        &["enqueue", "--run-at", "2099-01-01 10:00", "--", "true"][..],
        &["schedule", "add", "a", "--at", "2099-01-01 10:00", "--", "true"],
        &["schedule", "add", "b", "--cron", "0 3 * * *", "--", "true"],
    ] {
        let unknown = "hint: the time zone `Nonsense/Zone` in TZ is unknown; ";
        home.call(args).env("TZ", "Nonsense/Zone").run().ok().says(unknown);
    }
    let ran = home.call(["enqueue", "--delay", "1h", "--", "true"]).env("TZ", "Nonsense/Zone").run().ok();
    assert!(!ran.stderr.contains("Nonsense"), "no zone was needed: {ran}");
}

#[test]
fn a_time_that_cannot_be_read_is_refused_with_examples() {
    let home = Home::new();
    for typed in ["soon", "25:00", "2099-02-30", "tomorrow 3"] {
        home.run(["enqueue", "--run-at", typed, "--", "true"])
            .fails(2)
            .says("write 03:00, \"tomorrow 3am\" or \"2027-01-01 10:00\"");
        home.run(["enqueue", "--delay", typed, "--", "true"])
            .fails(2)
            .says("write 90, 1h30m or \"tomorrow 3am\"");
    }
    home.run(["enqueue", "--run-at", "3am", "--delay", "4am", "--", "true"]).fails(2).says("not both");
    home.run(["enqueue", "--run-at", "9999-12-31 23:59", "--", "true"]).fails(2).says("9999");
    assert!(home.is_empty());
}

#[test]
fn json_takes_only_exact_times() {
    let home = Home::new();
    for field in [r#""run_at":"03:00""#, r#""run_at":"2099-01-01 10:00""#, r#""delay":"tomorrow""#] {
        home.run(["enqueue", &format!(r#"{{"command":"true",{field}}}"#)]).fails(2).prints("");
    }
    assert!(home.is_empty());
}
