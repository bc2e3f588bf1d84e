//! `queuectl edit` and `queuectl retry --edit`

use std::fs;

use super::harness::Home;

#[test]
fn a_job_is_changed_by_flags() {
    let home = Home::with_jobs(&["a"]);
    home.run(["edit", "a", "--priority", "-3", "--queue", "other", "--tags", "x,y", "--timeout", "1m"])
        .ok()
        .prints("a\n");
    let job = home.show("a");
    assert_eq!(
        (&job["priority"], &job["queue"], &job["timeout_ms"]),
        (&(-3).into(), &"other".into(), &60_000.into())
    );
    assert_eq!(job["tags"], serde_json::json!(["x", "y"]));
    home.run(["edit", "a", "--env", "A=secret", "--command", "echo $A"]).ok();
    let job = home.run(["edit", "a", "--max-retries", "9", "--json"]).ok().json();
    assert_eq!((&job["max_retries"], &job["command"]), (&9.into(), &"echo $A".into()));
    home.run(["events", "--json"]).ok().shows("command, env").shows_no("secret");
    home.run(["worker", "run", "-q", "--until-empty"]).ok();
    home.run(["logs", "a"]).ok().prints("secret\n");
    home.run(["edit", "a", "--priority", "1"]).fails(4).says("it is completed");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let home = Home::with_jobs(&["a"]);
    let before = home.show("a");
    home.run(["edit", "a"]).fails(2).says("nothing is to be changed");
    home.run(["edit", "nobody", "--priority", "1"]).fails(3);
    home.run(["edit", "a", "--command", " "]).fails(2).says("blank");
    home.run(["edit", "a", "--timeout", "0"]).fails(2);
    home.run(["edit", "a", "--cwd", "here"]).fails(2).says("absolute");
    home.run(["edit", "a", "--run-at", "2030-01-01T00:00:00Z", "--delay", "1h"]).fails(2).says("not both");
    home.run(["edit", "a", "--id", "b"]).fails(2);
    assert_eq!(home.show("a"), before);
}

#[test]
fn a_dead_job_is_changed_and_retried() {
    let home = Home::new();
    home.run(["enqueue", "-q", "--id", "a", "--max-retries", "0", "--", "false"]).ok();
    home.run(["worker", "run", "-q", "--until-empty"]).ok();
    home.run(["retry", "a", "--command", "true"]).fails(2).says("--edit");
    home.run(["retry", "a", "--edit"]).fails(2).says("nothing is to be changed");
    assert_eq!(home.state_of("a"), "dead");
    home.run(["retry", "a", "nobody", "--edit", "--command", "true"]).fails(3).prints("a\n");
    home.run(["worker", "run", "-q", "--until-empty"]).ok();
    assert_eq!(home.state_of("a"), "completed");
    home.run(["enqueue", "-q", "--id", "b", "--", "true"]).ok();
    home.run(["retry", "b", "--edit", "--command", "false"]).fails(4).says("it is pending");
    assert_eq!(home.show("b")["command"], "true");
}

#[test]
fn no_file_of_an_editor_is_left_in_the_home() {
    let home = Home::with_jobs(&["a"]);
    home.run(["edit", "a"]).fails(2);
    let names = fs::read_dir(home.path()).expect("a folder").flatten();
    assert!(names.map(|entry| entry.file_name()).all(|name| !name.to_string_lossy().starts_with("edit-")));
}
