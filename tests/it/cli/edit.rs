//! `queuectl edit` and `queuectl retry --edit`

use std::fs;

use super::harness::Home;
use super::pseudo_terminal::{Seen, on_terminal};

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
    home.run(["retry", "a", "--edit", "--queue", "other"]).fails(2).says("not both");
    home.run(["retry", "--queue", "default", "--edit", "--command", "true"]).fails(2).says("by their ids");
    assert_eq!(home.state_of("a"), "dead");
    home.run(["retry", "a", "nobody", "--edit", "--command", "true"]).fails(3).prints("a\n");
    home.run(["worker", "run", "-q", "--until-empty"]).ok();
    assert_eq!(home.state_of("a"), "completed");
    home.run(["enqueue", "-q", "--id", "b", "--", "true"]).ok();
    home.run(["retry", "b", "--edit", "--command", "false"]).fails(4).says("it is pending");
    assert_eq!(home.show("b")["command"], "true");
}

/// What a person sees who changes the job in an editor that is this command.
fn in_editor(home: &Home, editor: &str) -> Seen {
    let call = home.call(["--color", "never", "edit", "a"]).env("EDITOR", editor);
    on_terminal(call.into_command(), 100, "")
}

fn kept_files(home: &Home) -> usize {
    let names = fs::read_dir(home.path()).expect("a folder").flatten().map(|entry| entry.file_name());
    names.filter(|name| name.to_string_lossy().starts_with("edit-")).count()
}

#[test]
fn a_job_is_changed_in_an_editor() {
    let home = Home::with_jobs(&["a"]);
    home.run(["edit", "-q", "a", "--env", "A=secret", "--delay", "1h"]).ok();
    let seen = in_editor(&home, "sed -i -e 's/\"priority\": 0/\"priority\": 4/' -e '/run_at/d'");
    assert_eq!((&*seen.screen, seen.code), ("Job a changed: priority, run_at\n", Some(0)));
    let job = home.show("a");
    assert_eq!((&job["priority"], &job["run_at"]), (&4.into(), &serde_json::Value::Null));
    assert_eq!(job["env"], serde_json::json!(["A"]), "what is not shown stays");
    assert_eq!(kept_files(&home), 0);
}

#[test]
fn what_cannot_be_understood_is_refused_and_kept() {
    let home = Home::with_jobs(&["a"]);
    let seen = in_editor(&home, "sed -i s/priority/pirority/");
    assert!(
        seen.screen.contains("did you mean `priority`?") && seen.screen.contains("is kept in"),
        "{}",
        seen.screen
    );
    assert_eq!((seen.code, kept_files(&home)), (Some(2), 1));
    let seen = in_editor(&home, "false");
    assert!(seen.screen.contains("the editor `false` failed"), "{}", seen.screen);
    let seen = in_editor(&home, "true");
    assert!(seen.screen.contains("nothing is to be changed"), "{}", seen.screen);
}
