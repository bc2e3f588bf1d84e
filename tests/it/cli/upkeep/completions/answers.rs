//! What `queuectl __complete` answers, from a queue and without one.

use std::fs;

use crate::cli::harness::Home;
use crate::folder_snapshot::snapshot;

/// The candidates after the words of a line, each with its description.
fn offered(home: &Home, line: &[&str]) -> Vec<(String, String)> {
    let words = ["__complete", "fish", "--", "queuectl"].iter().chain(line);
    let ran = home.call_without_home(words).env("QUEUECTL_HOME", home.path()).run().ok().says_nothing();
    let mut lines = ran.stdout.lines();
    assert_eq!(lines.next(), Some("values"), "{ran}");
    let split = |line: &str| line.split_once('\t').map_or((line.to_owned(), String::new()), own);
    lines.map(split).collect()
}

fn own((value, about): (&str, &str)) -> (String, String) {
    (value.to_owned(), about.to_owned())
}

fn values(home: &Home, line: &[&str]) -> Vec<String> {
    offered(home, line).into_iter().map(|(value, _)| value).collect()
}

#[test]
fn jobs_are_offered_by_number_the_latest_first_and_by_id() {
    let home = Home::new();
    home.run(["enqueue", "-q", "--id", "build:1", "--", "make", "all"]).ok();
    home.run(["enqueue", "-q", "--name", "nightly", "--", "make", "test"]).ok();
    home.run(["enqueue", "-q", "printf '\\033[31m\u{1b}[0m'"]).ok();
    let found = offered(&home, &["show", ""]);
    let expected = [
        ("3", "pending  printf '\\033[31m\\u{1b}[0m'"),
        ("2", "pending  nightly"),
        ("1", "pending  build:1: make all"),
    ];
    assert_eq!(found, expected.map(own));
    assert_eq!(values(&home, &["logs", "2"]), ["2"]);
    assert_eq!(values(&home, &["logs", "%"]), ["%3", "%2", "%1"]);
    assert_eq!(offered(&home, &["explain", "bu"]), [own(("build:1", "pending  make all"))]);
    assert_eq!(values(&home, &["cancel", "3", "2", ""]), ["1"], "each job once");
    assert_eq!(values(&home, &["enqueue", "--depends-on", "3,"]), ["3,2", "3,1"]);
}

#[test]
fn a_verb_is_offered_the_jobs_that_it_can_change() {
    let home = Home::with_jobs(&["a", "b"]);
    home.run(["cancel", "a"]).ok();
    assert_eq!(values(&home, &["cancel", ""]), ["2"]);
    assert_eq!(values(&home, &["wait", ""]), ["2"]);
    assert_eq!(values(&home, &["retry", ""]), ["1"]);
    assert_eq!(values(&home, &["remove", ""]), ["2", "1"]);
    assert!(values(&home, &["dlq", "retry", ""]).is_empty());
}

#[test]
fn the_number_of_an_old_job_is_found_among_many() {
    let home = Home::new();
    let lines = "{\"command\":\"true\"}\n".repeat(1_300);
    home.call(["enqueue", "-q", "-"]).with_stdin(lines).run().ok();
    let latest = values(&home, &["show", ""]);
    assert_eq!((latest.len(), latest[0].as_str()), (100, "1300"));
    let found = values(&home, &["show", "12"]);
    assert_eq!((found.len(), found[0].as_str()), (100, "1299"), "{found:?}");
    assert_eq!(values(&home, &["show", "99"]).len(), 11, "990 to 999, and 99");
    assert_eq!(values(&home, &["show", "7"]).len(), 100);
    assert!(values(&home, &["show", "0"]).is_empty());
}

#[test]
fn names_of_every_kind_are_offered() {
    let home = Home::new();
    home.run(["enqueue", "-q", "-Q", "mail", "--tag", "red,two words", "--batch", "summer", "true"]).ok();
    home.run(["queue", "pause", "mail"]).ok();
    home.run(["schedule", "add", "nightly", "--every", "1h", "--", "make", "backup"]).ok();
    home.run(["hook", "add", "tell", "--on", "dead", "--", "true"]).ok();
    home.run(["config", "set", "max-retries", "7"]).ok();
    assert_eq!(offered(&home, &["queue", "resume", "m"]), [own(("mail", "paused, 1 pending"))]);
    assert_eq!(values(&home, &["list", "--queue=m"]), ["--queue=mail"]);
    assert_eq!(offered(&home, &["batch", "show", ""]), [own(("summer", "0 of 1 jobs finished"))]);
    assert_eq!(values(&home, &["list", "--batch", "s"]), ["summer"]);
    assert_eq!(offered(&home, &["schedule", "run", ""]), [own(("nightly", "1h  make backup"))]);
    assert_eq!(offered(&home, &["hook", "test", ""]), [own(("tell", "on dead"))]);
    assert_eq!(values(&home, &["list", "--tag", ""]), ["red"], "a tag with a blank needs quotes");
    let settings = [("3", "the default"), ("7", "the current value")];
    assert_eq!(offered(&home, &["config", "set", "max-retries", ""]), settings.map(own));
}

#[test]
fn the_causes_of_dead_jobs_are_offered() {
    let home = Home::new();
    let ran = home.run(["run", "--", "sh", "-c", "exit 3"]);
    assert_eq!(ran.status.code(), Some(3), "{ran}");
    let found = offered(&home, &["dlq", "retry", "--cause", ""]);
    assert_eq!(found.len(), 1, "{found:?}");
    let (cause, about) = &found[0];
    assert!(about.starts_with("1 dead  "), "{about}");
    home.run(["dlq", "list", "--cause", cause]).ok().shows("exit 3");
}

#[test]
fn the_home_on_the_line_is_asked() {
    let home = Home::with_jobs(&["a"]);
    let elsewhere = Home::new();
    let path = home.path();
    let path = path.to_str().expect("the path is text");
    assert!(values(&elsewhere, &["show", ""]).is_empty());
    assert_eq!(values(&elsewhere, &["--home", path, "show", ""]), ["1"]);
    assert_eq!(values(&elsewhere, &["show", &format!("--home={path}"), ""]), ["1"]);
    // The home of a test's user is its folder.
    assert_eq!(values(&home, &["--home", "~/home", "show", ""]), ["1"]);
}

#[test]
fn a_missing_queue_is_not_created_and_a_broken_one_says_nothing() {
    let home = Home::new();
    assert!(values(&home, &["show", ""]).is_empty());
    assert!(values(&home, &["show"]).contains(&"show".to_owned()), "verbs need no queue");
    assert!(!home.path().exists());
    let home = Home::with_jobs(&["a"]);
    for suffix in ["-wal", "-shm"] {
        // The log may have been merged into the database.
        let _ = fs::remove_file(home.path().join(format!("queue.db{suffix}")));
    }
    fs::write(home.database(), [0x5a; 8192]).expect("the file is broken");
    assert!(values(&home, &["show", ""]).is_empty());
    assert_eq!(values(&home, &["list", "--state", "de"]), ["dead"]);
}

#[test]
fn a_locked_queue_gives_no_names_and_answers_without_waiting() {
    let home = Home::with_jobs(&["a"]);
    let connection = rusqlite::Connection::open(home.database()).expect("it opens");
    connection.pragma_update(None, "locking_mode", "exclusive").expect("the mode is set");
    connection.execute_batch("begin exclusive; update jobs set priority = 1; commit").expect("it is locked");
    assert!(values(&home, &["show", ""]).is_empty());
    drop(connection);
    assert_eq!(values(&home, &["show", ""]), ["1"]);
}

#[test]
fn a_question_changes_no_file() {
    let home = Home::with_jobs(&["a", "b"]);
    let before = snapshot(&home.path());
    for line in [&["show", ""][..], &["list", "--queue", ""], &["config", "set", "lease", ""]] {
        assert!(!values(&home, line).is_empty(), "{line:?}");
    }
    assert_eq!(snapshot(&home.path()), before);
}

#[test]
fn no_line_fails() {
    let home = Home::with_jobs(&["a"]);
    for words in [&[][..], &[""], &["--"], &["--home"], &["-"], &["--=", ""], &["é", "%%"], &["show", "%x"]]
    {
        for shell in super::SHELLS {
            home.run([&["__complete", shell, "--", "queuectl"], words].concat()).ok().says_nothing();
        }
    }
    home.run(["__complete", "bash", "--"]).ok().prints("").says_nothing();
}

#[test]
fn filters_are_offered_their_values() {
    let home = Home::new();
    home.run(["schedule", "add", "nightly", "--every", "1h", "--", "true"]).ok();
    assert_eq!(values(&home, &["list", "--schedule", "n"]), ["nightly"]);
    assert_eq!(values(&home, &["cancel", "--schedule", ""]), ["nightly"]);
    assert_eq!(values(&home, &["list", "--reason", "retries"]), ["retries_exhausted"]);
    assert_eq!(values(&home, &["list", "--id-prefix", ""]), [""; 0]);
}
