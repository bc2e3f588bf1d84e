//! `queuectl` without a verb.

use serde_json::{Value, json};

use crate::cli::harness::pseudo_terminal::Terminal;
use crate::cli::harness::{Home, ids};

const NO_ARGUMENTS: [&str; 0] = [];

fn busy() -> Home {
    let home = Home::new();
    for at in 0..12 {
        home.run(["enqueue", "-q", "--id", &format!("j{at}"), "--", "true"]).ok();
    }
    for (name, every) in [("later", "12h"), ("soon", "6h")] {
        home.run(["schedule", "add", "-q", name, "--every", every, "--", "true"]).ok();
    }
    home
}

#[test]
fn it_shows_the_home_the_status_the_last_ten_jobs_and_the_next_schedule() {
    let home = busy();
    let ran = home.run(NO_ARGUMENTS).ok();
    let lines = ran.lines();
    let status = home.run(["status"]).ok();
    let status: Vec<&str> = status.lines();
    assert_eq!(lines[..status.len()], status[..], "the status comes first");
    let jobs = lines.iter().filter(|line| line.contains("  pending  "));
    let shown: Vec<&str> = jobs.filter_map(|line| line.split_whitespace().nth(1)).collect();
    assert_eq!(shown, ["j11", "j10", "j9", "j8", "j7", "j6", "j5", "j4", "j3", "j2"]);
    let [next, last] = lines[lines.len() - 2..] else { panic!("{ran}") };
    assert!(next.starts_with("Next schedule: soon at 2") && next.ends_with(" (in 6h)"), "{next}");
    assert_eq!(last, format!("Home: {}", home.path().display()));
    ran.says_nothing();
}

#[test]
fn with_json_it_is_one_object() {
    let home = busy();
    let seen = home.run(["--json"]).ok().says_nothing().json();
    let keys: Vec<&String> = seen.as_object().expect("an object").keys().collect();
    assert_eq!(keys, ["home", "jobs", "next_schedule", "status"]);
    assert_eq!(seen["home"], json!(home.path()));
    let mut status = home.run(["status", "--json"]).ok().json();
    let last_hour = status.as_object_mut().and_then(|fields| fields.remove("last_hour"));
    assert!(last_hour.is_some(), "only `status` has the last hour: {status}");
    assert_eq!(seen["status"], status);
    assert_eq!(ids(&seen["jobs"])[..2], ["j11", "j10"]);
    assert_eq!(seen["next_schedule"]["name"], "soon");
}

#[test]
fn a_terminal_has_room_for_it_and_for_the_prompt() {
    let home = busy();
    for queue in ["a", "b", "c", "d"] {
        home.run(["enqueue", "-q", "-Q", queue, "--", "true"]).ok();
    }
    for (rows, jobs) in [(40, 10), (24, 6), (10, 3)] {
        let command = home.call(["--color", "never"]).into_command();
        let seen = Terminal::start(command, 80, rows).end();
        assert_eq!(seen.code, Some(0));
        let lines: Vec<&str> = seen.screen.lines().map(str::trim_end).collect();
        assert!(jobs == 3 || lines.len() < rows.into(), "{rows}: {}", seen.screen);
        assert_eq!(lines.iter().filter(|line| line.contains("  pending  ")).count(), jobs, "{}", seen.screen);
        let [next, home, help] = lines[lines.len() - 3..] else { panic!("{}", seen.screen) };
        assert!(next.starts_with("Next schedule: soon at ") && home.starts_with("Home: "), "{}", seen.screen);
        assert_eq!(help, "`queuectl -h` lists the commands");
    }
}

#[test]
fn an_empty_queue_has_no_list_of_jobs() {
    let home = Home::with_queue();
    home.run(NO_ARGUMENTS).ok().shows("Home: ").shows("QUEUE").shows_no("COMMAND").shows_no("Next schedule");
    home.run(["-q"]).ok().prints("").says_nothing();
}

#[test]
fn without_a_queue_it_names_the_first_command_and_creates_nothing() {
    let home = Home::new();
    let found = home.folder().join(".queuectl");
    for (call, missing, flags) in [
        (home.call(NO_ARGUMENTS), home.path(), format!("--home {} ", home.path().display())),
        (home.call_without_home(NO_ARGUMENTS), found.clone(), String::new()),
        (
            home.call_without_home(["--home", "an other", "--store", "other.db"]),
            "other.db".into(),
            "--home 'an other' --store other.db ".to_owned(),
        ),
    ] {
        let text = format!("There is no queue in {} yet. The first job creates it:", missing.display());
        let first = format!("\n  queuectl {flags}run echo hello\n");
        call.run().ok().shows(&text).shows(&first).says_nothing();
    }
    let seen = home.run(["--json"]).ok().says_nothing().json();
    let expected =
        json!({"home": home.path(), "status": Value::Null, "jobs": [], "next_schedule": Value::Null});
    assert_eq!(seen, expected);
    assert!(!home.path().exists() && !found.exists(), "nothing is created");
    assert_eq!(std::fs::read_dir(home.folder()).expect("the folder").count(), 0);
}

#[test]
fn a_queue_that_cannot_be_used_is_an_error() {
    let home = Home::new();
    std::fs::create_dir_all(home.path()).expect("the home");
    std::fs::write(home.database(), "not a database, whatever it says").expect("a file");
    home.run(NO_ARGUMENTS).fails(7).prints("");
    home.run(["--bogus"]).fails(2).prints("");
}
