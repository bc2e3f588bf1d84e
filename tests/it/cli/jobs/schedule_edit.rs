//! `schedule edit`

use serde_json::{Value, json};

use crate::cli::harness::Home;
use crate::cli::harness::pseudo_terminal::on_terminal;

fn add(home: &Home, flags: &[&str]) {
    let call = ["schedule", "add", "-q", "s"].into_iter().chain(flags.iter().copied());
    home.run(call.chain(["--", "echo", "a b"])).ok().says_nothing();
}

fn show(home: &Home) -> Value {
    home.run(["schedule", "show", "s", "--json"]).ok().json()
}

#[test]
fn flags_change_only_what_they_name() {
    let home = Home::new();
    add(
        &home,
        &["--cron", "0 3 * * *", "--tz", "Europe/Berlin", "--env", "A=1", "--timeout", "5s", "--tag", "x"],
    );
    let before = show(&home);
    home.run(["schedule", "edit", "s", "--cron", "30 4 * * *", "--priority", "7"])
        .ok()
        .prints("s\n")
        .says_nothing();
    let mut after = show(&home);
    assert_eq!((&after["expression"], &after["time_zone"]), (&json!("30 4 * * *"), &json!("Europe/Berlin")));
    assert_ne!(after["next_at"], before["next_at"]);
    assert_eq!(after["job"].as_object_mut().expect("a job").remove("priority"), Some(json!(7)));
    assert_eq!((&after["job"], &after["created_at"]), (&before["job"], &before["created_at"]));

    home.run(["schedule", "edit", "s", "--tz", "UTC", "--on-missed", "all", "--", "echo", "c d"]).ok();
    let after = show(&home);
    assert_eq!((&after["expression"], &after["time_zone"]), (&json!("30 4 * * *"), &json!("UTC")));
    assert_eq!((&after["on_missed"], &after["on_overlap"]), (&json!("all"), &json!("queue")));
    assert_eq!((&after["job"]["command"], &after["job"]["timeout"]), (&json!("echo 'c d'"), &json!("5s")));

    home.run(["schedule", "edit", "s", "--every", "10m", "--max-attempts", "2"]).ok();
    let after = show(&home);
    assert_eq!((&after["kind"], &after["expression"]), (&json!("every"), &json!("10m")));
    home.run(["schedule", "edit", "s", "--every", "10m", "echo", "--every", "e"]).ok();
    assert_eq!(show(&home)["job"]["command"], "echo --every e", "a command needs no mark");
    assert_eq!(after["next_runs"].as_array().map(Vec::len), Some(5));
    home.run(["schedule", "run", "s"]).ok();
}

#[test]
fn an_invalid_change_is_refused_and_changes_nothing() {
    let home = Home::new();
    add(&home, &["--every", "1h"]);
    let before = show(&home);
    for (flags, expected) in [
        (&["--cron", "61 * * * *"][..], "minute `61` is out of range"),
        (&["--at", "2020-01-01 10:00"], "is in the past"),
        (&["--tz", "UTC"], "--tz needs --cron or --at"),
        (&["--every", "5m", "--cron", "@daily"], "cannot be used with"),
        (&["--id", "x"], "cannot have `id`"),
        (&["--delay", "5s"], "cannot have `delay`"),
        (&["--on-missed", "all", "--on-overlap", "skip"], "requires --on-overlap queue"),
        (&["--command", "true", "--", "false"], "more than one way"),
        (&["--", ""], "`command` is blank"),
        (&[], "no changes given"),
    ] {
        home.run(["schedule", "edit", "s"].iter().chain(flags)).fails(2).prints("").says(expected);
    }
    home.run(["schedule", "edit", "t", "--every", "5m"]).fails(3).says("there is no schedule `t`");
    assert_eq!(show(&home), before);
}

#[test]
fn a_directory_that_does_not_exist_is_mentioned() {
    let home = Home::new();
    add(&home, &["--every", "1h"]);
    home.run(["schedule", "edit", "s", "--cwd", "/nowhere"])
        .ok()
        .says("/nowhere")
        .says("runs fail until there is one");
    assert_eq!(show(&home)["job"]["cwd"], "/nowhere");
}

#[test]
fn without_flags_an_editor_opens() {
    let home = Home::new();
    add(&home, &["--cron", "0 3 * * *", "--tz", "Europe/Berlin", "--timeout", "5s"]);
    let edit = |editor: &str, typed: &str| {
        let call = home
            .call(["--color", "never", "schedule", "edit", "s"])
            .without_env("VISUAL")
            .env("EDITOR", editor);
        on_terminal(call.into_command(), 200, typed)
    };
    let seen = edit("true", "");
    assert_eq!((seen.screen.as_str(), seen.code), ("Schedule s is unchanged\n", Some(0)));
    let seen = edit("sed -i -e 's/0 3/30 4/' -e '/timeout/d'", "");
    assert!(seen.screen.starts_with("Schedule s changed\n  next  "), "{}", seen.screen);
    let after = show(&home);
    assert_eq!((&after["expression"], &after["job"]["timeout"]), (&json!("30 4 * * *"), &Value::Null));
    let seen = edit("sed -i 's/cron/corn/'", "n\n");
    assert_eq!(seen.code, Some(1), "{}", seen.screen);
    assert!(seen.screen.contains("unknown field `corn`"), "{}", seen.screen);
    assert!(seen.screen.contains("Edit again? [Y/n] "), "{}", seen.screen);
    assert_eq!(show(&home), after);
}
