//! `queuectl edit` and `queuectl retry --edit`

use std::fs;
use std::fs::File;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, SystemTime};

use domain::job::outcome::Outcome;
use rusqlite::Connection;
use serde_json::json;

use crate::cli::harness::pseudo_terminal::{Terminal, TerminalRun, on_terminal};
use crate::cli::harness::test_worker::TestWorker;
use crate::cli::harness::{Home, PROGRAM};

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
    assert_eq!(job["tags"], json!(["x", "y"]));
    home.run(["edit", "a", "--env", "A=secret", "--command", "echo $A"]).ok();
    let job = home.run(["edit", "a", "--max-retries", "9", "--json"]).ok().json();
    assert_eq!((&job["max_retries"], &job["command"]), (&9.into(), &"echo $A".into()));
    home.run(["events", "--json"]).ok().shows("command, env").shows_no("secret");
    home.run(["worker", "run", "-q", "--until-empty"]).ok();
    home.run(["logs", "a"]).ok().prints("secret\n");
    home.run(["edit", "a", "--priority", "1"]).fails(4).says("it is completed");
}

#[test]
fn a_stored_job_with_an_invalid_field_can_be_edited_only_by_replacing_it() {
    let home = Home::with_jobs(&["a"]);
    let database = Connection::open(home.database()).expect("the database opens");
    database.execute("update jobs set cwd = ''", []).expect("updated");
    home.run(["edit", "a", "--priority", "1"]).fails(7).says("`cwd` is empty");
    assert_eq!(home.show("a")["priority"], 0);
    home.run(["edit", "a", "--priority", "1", "--cwd", "/"]).ok();
    assert_eq!((&home.show("a")["priority"], &home.show("a")["cwd"]), (&json!(1), &json!("/")));
}

#[test]
fn job_overrides_can_be_changed_and_removed() {
    let home = Home::with_jobs(&["p", "a"]);
    home.run([
        "enqueue",
        "-q",
        "--id",
        "b",
        "--depends-on",
        "p",
        "--tags",
        "x",
        "--backoff",
        r#"{"delay":"5s"}"#,
        "--batch",
        "all",
        "--",
        "sh",
        "-c",
        "exit 3",
    ])
    .ok();
    home.run([
        "edit",
        "-q",
        "b",
        "--limits",
        "nice=3",
        "--retry-on",
        "1,2",
        "--no-retry-on",
        "3",
        "--on-dependency-failure",
        "run",
        "--max-attempts",
        "5",
        "--cwd",
        "/",
    ])
    .ok();
    let job = home.show("b");
    assert_eq!(job["limits"]["nice"], 3);
    assert_eq!((&job["retry_on"], &job["no_retry_on"]), (&json!([1, 2]), &json!([3])));
    assert_eq!((&job["on_dependency_failure"], &job["max_retries"]), (&"run".into(), &4.into()));
    assert_eq!((&job["cwd"], &job["batch"]), (&"/".into(), &"all".into()));
    home.run(["edit", "b", "--retry-on", "3"]).fails(2).says("exit code 3 is in");
    home.run(["cancel", "-q", "p"]).ok();
    home.run(["worker", "run", "-q", "--until-empty"]).ok();
    let job = home.show("b");
    assert_eq!((&job["state"], &job["reason"]), (&"dead".into(), &"not_retried".into()));
    home.run([
        "retry",
        "-q",
        "b",
        "--edit",
        "--limits",
        "none",
        "--retry-on",
        "none",
        "--no-retry-on",
        "none",
        "--backoff",
        "none",
        "--command",
        "true",
    ])
    .ok();
    home.run(["edit", "-q", "b", "--no-tags"]).ok();
    let job = home.show("b");
    assert_eq!((&job["tags"], &job["backoff"]), (&json!([]), &serde_json::Value::Null));
    assert_eq!((&job["retry_on"], &job["no_retry_on"]), (&serde_json::Value::Null, &serde_json::Value::Null));
    home.run(["worker", "run", "-q", "--until-empty"]).ok();
    let batch = home.run(["batch", "show", "all", "--json"]).ok().json();
    assert_eq!((&batch["jobs"]["completed"], batch["finished_at"].is_string()), (&1.into(), true), "{batch}");
}

#[test]
fn invalid_edits_are_refused() {
    let home = Home::with_jobs(&["a"]);
    let before = home.show("a");
    home.run(["edit", "a"]).fails(2).says("no changes given");
    home.run(["edit", "absent", "--priority", "1"]).fails(3);
    home.run(["edit", "a", "--command", " "]).fails(2).says("blank");
    home.run(["edit", "a", "--timeout", "0"]).fails(2);
    home.run(["edit", "a", "--cwd", "here"]).fails(2).says("absolute");
    home.run(["edit", "a", "--run-at", "2030-01-01T00:00:00Z", "--delay", "1h"]).fails(2).says("not both");
    for (flag, field, why) in [
        ("--id", "id", "refer to the job by it"),
        ("--depends-on", "depends_on", "at enqueue time"),
        ("--unique-key", "unique_key", "deduplicated against it"),
        ("--unique-for", "unique_for", "deduplicated against it"),
        ("--batch", "batch", "waiting for the batch"),
    ] {
        home.run(["edit", "a", flag, "b"]).fails(2).says(&format!("`{field}` cannot be changed")).says(why);
    }
    home.run(["edit", "a", "--retry-on", "1", "--no-retry-on", "1"]).fails(2).says("exit code 1 is in");
    home.run(["edit", "a", "--limits", "memroy=1G"]).fails(2).says("memory");
    home.run(["edit", "a", "--max-retries", "1", "--max-attempts", "1"]).fails(2);
    assert_eq!(home.show("a"), before);
}

#[test]
fn a_dead_job_is_changed_and_retried() {
    let home = Home::new();
    home.run(["enqueue", "-q", "--id", "a", "--max-retries", "0", "--", "false"]).ok();
    home.run(["worker", "run", "-q", "--until-empty"]).ok();
    home.run(["retry", "a", "--command", "true"]).fails(2).says("--edit");
    home.run(["retry", "a", "--edit"]).fails(2).says("no changes given");
    home.run(["retry", "a", "--edit", "--queue", "other"])
        .fails(2)
        .says("--edit needs the ids of jobs")
        .says("--set-queue");
    home.run(["retry", "a", "--set-queue", "other"]).fails(2).says("--edit");
    home.run(["retry", "--edit", "--set-queue", "other"]).fails(2).says("no jobs given");
    home.run(["retry", "--queue", "default", "--edit", "--command", "true"])
        .fails(2)
        .says("--edit needs the ids of jobs");
    assert_eq!(home.state_of("a"), "dead");
    home.run(["retry", "a", "absent", "--edit", "--command", "true"]).fails(3).prints("a\n");
    home.run(["worker", "run", "-q", "--until-empty"]).ok();
    assert_eq!(home.state_of("a"), "completed");
    home.run(["enqueue", "-q", "--id", "b", "--", "true"]).ok();
    home.run(["retry", "b", "--edit", "--command", "false"]).fails(4).says("it is pending");
    assert_eq!(home.show("b")["command"], "true");
}

#[test]
fn edit_and_retry_share_the_flags_for_queue_and_tags() {
    let home = Home::with_jobs(&["a"]);
    let place = |home: &Home| {
        let job = home.show("a");
        (job["queue"].as_str().expect("a queue is text").to_owned(), job["tags"].clone())
    };
    for (flags, expected) in [
        (&["--set-queue", "b", "--set-tags", "x,y"][..], ("b", json!(["x", "y"]))),
        (&["--queue", "c", "--tags", "z"], ("c", json!(["z"]))),
        (&["--set-tag", "v", "--set-tag", "w"], ("c", json!(["v", "w"]))),
        (&["--tag", "u"], ("c", json!(["u"]))),
    ] {
        home.run(["edit", "-q", "a"].iter().chain(flags)).ok();
        assert_eq!(place(&home), (expected.0.to_owned(), expected.1), "{flags:?}");
    }
    home.run(["cancel", "-q", "a"]).ok();
    home.run(["retry", "-q", "a", "--edit", "--set-queue", "d", "--set-tags", "x,y"]).ok();
    assert_eq!(place(&home), ("d".to_owned(), json!(["x", "y"])));
    assert_eq!(home.state_of("a"), "pending");
    home.run(["cancel", "-q", "a"]).ok();
    home.run(["retry", "-q", "a", "--edit", "--no-tags"]).ok();
    assert_eq!(place(&home), ("d".to_owned(), json!([])));
    home.run(["edit", "a", "--no-tags", "--tag", "x"]).fails(2).says("cannot be used with");
    home.run(["edit", "a", "--queue", "b", "--set-queue", "c"])
        .fails(2)
        .says("cannot be used multiple times");
}

/// The terminal output of `edit` with this command as the editor.
fn in_editor(home: &Home, editor: &str) -> TerminalRun {
    let call = home.call(["--color", "never", "edit", "a"]).env("EDITOR", editor);
    on_terminal(call.into_command(), 100, "")
}

/// As [`in_editor`], with an answer to the question whether to edit again.
fn in_editor_answering(home: &Home, editor: &str, answer: &str) -> TerminalRun {
    let call = home.call(["--color", "never", "edit", "a"]).env("EDITOR", editor);
    on_terminal(call.into_command(), 100, answer)
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
    assert_eq!(job["env"], json!(["A"]), "what is not shown stays");
    assert_eq!(kept_files(&home), 0);
}

#[test]
fn an_editor_shows_only_the_fields_set_on_the_job() {
    let home = Home::new();
    home.run([
        "enqueue",
        "-q",
        "--id",
        "a",
        "--limits",
        "nice=3",
        "--retry-on",
        "1,2",
        "--delay",
        "1h",
        "--",
        "true",
    ])
    .ok();
    let seen = in_editor(&home, "sed -i -e 's/\"nice\": 3/\"nice\": 4/' -e 's/\"retry_on/\"no_retry_on/'");
    assert_eq!((&*seen.screen, seen.code), ("Job a changed: limits, retry_on, no_retry_on\n", Some(0)));
    let editor = "sed -i 's/\"priority\"/\"id\": \"b\", \"priority\"/'";
    let seen = in_editor_answering(&home, editor, "n\n");
    assert!(
        seen.screen.contains("`id` cannot be changed: other jobs and scripts refer to the job by it"),
        "{}",
        seen.screen
    );
}

#[test]
fn after_invalid_input_the_editor_opens_again_or_nothing_changes() {
    let home = Home::with_jobs(&["a"]);
    let seen = in_editor_answering(&home, "sed -i s/priority/pirority/", "n\n");
    assert!(seen.screen.contains("error: invalid job (line "), "{}", seen.screen);
    assert!(seen.screen.contains("did you mean `priority`?"), "{}", seen.screen);
    assert!(seen.screen.contains("Edit again? [Y/n] error: nothing was changed\n"), "{}", seen.screen);
    assert!(seen.screen.contains("your text is in "), "{}", seen.screen);
    assert_eq!((seen.code, kept_files(&home)), (Some(1), 1));

    // The second time, the editor finds what the first one wrote, and mends it.
    let editor = "sed -i -e s/pirority/fixed/ -e 's/priority\": 0/pirority\": 7/' -e s/fixed/priority/";
    let seen = in_editor_answering(&home, editor, "\n");
    assert!(seen.screen.ends_with("Edit again? [Y/n] Job a changed: priority\n"), "{}", seen.screen);
    assert_eq!((seen.code, &home.show("a")["priority"]), (Some(0), &7.into()));

    for text in ["relative", ""] {
        let editor = format!("sed -i 's|\"cwd\": \".*\"|\"cwd\": \"{text}\"|'");
        let seen = in_editor_answering(&home, &editor, "n\n");
        assert!(seen.screen.contains("Edit again?"), "{}", seen.screen);
    }
    let kept = kept_files(&home);
    let seen = in_editor(&home, "false");
    assert!(seen.screen.contains("the editor `false` failed"), "{}", seen.screen);
    assert_eq!((seen.code, kept_files(&home)), (Some(1), kept), "there is no text to keep");
}

#[test]
fn an_unchanged_or_emptied_text_changes_nothing() {
    let home = Home::with_jobs(&["a"]);
    let before = home.show("a");
    for editor in ["true", "truncate -s 0", "sed -i 's/: /:  /'"] {
        let seen = in_editor(&home, editor);
        assert_eq!((&*seen.screen, seen.code), ("hint: no changes\n", Some(0)), "{editor}");
    }
    assert_eq!(home.show("a"), before);
    home.run(["cancel", "-q", "a"]).ok();
    for editor in ["true", "truncate -s 0"] {
        let call = home.call(["--color", "never", "retry", "a", "--edit"]).env("EDITOR", editor);
        let seen = on_terminal(call.into_command(), 100, "");
        assert_eq!((&*seen.screen, seen.code), ("hint: no changes; the job is not retried\n", Some(0)));
        assert_eq!(home.state_of("a"), "cancelled");
    }
    assert_eq!(kept_files(&home), 0);
}

#[test]
fn old_files_of_editors_are_removed_and_young_ones_stay() {
    let home = Home::with_jobs(&["a"]);
    let [old, young, other] =
        ["edit-7.json", "edit-4194305.json", "edit-notes.txt"].map(|name| home.path().join(name));
    for file in [&old, &young, &other] {
        fs::write(file, "{}").expect("written");
    }
    let two_days_ago = SystemTime::now() - Duration::from_secs(2 * 24 * 60 * 60);
    for file in [&old, &other] {
        File::options().write(true).open(file).and_then(|file| file.set_modified(two_days_ago)).expect("set");
    }
    in_editor(&home, "true");
    assert!(!old.exists(), "it was kept long enough");
    assert!(young.exists(), "its editor may be open in another container");
    assert!(other.exists(), "it is not a file of an editor");
}

#[test]
fn no_editor_opens_for_a_job_that_cannot_be_edited() {
    let home = Home::with_jobs(&["a"]);
    let worker = TestWorker::new(&home, "w");
    let lease = worker.claim_job("a");
    let editor = format!("touch {}/opened #", home.folder().display());
    let edit = |args: &[&str], state: &str| {
        let call = home.call(args).env("EDITOR", &editor);
        let seen = on_terminal(call.into_command(), 100, "");
        assert!(seen.screen.contains(&format!("it is {state}")), "{}", seen.screen);
        assert_eq!(seen.code, Some(4), "{}", seen.screen);
        assert!(!home.folder().join("opened").exists(), "the editor was opened");
    };
    edit(&["--color", "never", "edit", "a"], "processing");
    edit(&["--color", "never", "retry", "a", "--edit"], "processing");
    worker.settle(lease, Outcome::Success, None);
    edit(&["--color", "never", "edit", "a"], "completed");
}

#[test]
fn the_text_is_kept_if_the_job_cannot_be_changed_any_more() {
    let home = Home::with_jobs(&["a"]);
    let run = format!("{PROGRAM} --home {} worker run -q --until-empty", home.path().display());
    let editor =
        home.file("editor.sh", format!("sed -i 's/\"priority\": 0/\"priority\": 4/' \"$1\"\n{run}\n"));
    let seen = in_editor(&home, &format!("sh {}", editor.display()));
    assert_eq!(seen.code, Some(4), "{}", seen.screen);
    assert!(seen.screen.contains("your text is in "), "{}", seen.screen);
    assert_eq!(kept_files(&home), 1);
    let kept = fs::read_dir(home.path()).expect("a folder").flatten().map(|entry| entry.path());
    let kept = kept.filter(|path| seen.screen.replace('\n', "").contains(&path.display().to_string()));
    let kept: Vec<PathBuf> = kept.filter(|path| path.extension().is_some()).collect();
    assert!(fs::read_to_string(&kept[0]).expect("a text").contains("\"priority\": 4"));
}

#[test]
fn the_text_is_kept_if_the_editor_fails_after_a_change() {
    let home = Home::with_jobs(&["a"]);
    let editor = home.file("editor.sh", "echo '{}' > \"$1\"\nexit 3\n");
    let seen = in_editor(&home, &format!("sh {}", editor.display()));
    assert_eq!((seen.code, kept_files(&home)), (Some(1), 1), "{}", seen.screen);
    assert!(seen.screen.contains("your text is in "), "{}", seen.screen);
}

#[test]
fn interrupts_from_the_keyboard_reach_the_editor_alone() {
    let home = Home::with_jobs(&["a"]);
    let editor = home.file(
        "editor.sh",
        "trap 'echo caught INT' INT\ntrap 'echo caught QUIT' QUIT\necho ready\n\
         until read line; do echo again; done\n\
         sed -i 's/\"priority\": 0/\"priority\": 4/' \"$1\"\n",
    );
    let call = home.call(["--color", "never", "edit", "a"]).env("EDITOR", format!("sh {}", editor.display()));
    let mut with_terminal = Command::new("setsid");
    with_terminal.args(["--ctty", "--wait", PROGRAM]);
    let mut terminal = Terminal::start(call.through(with_terminal).into_command(), 100, 24);
    terminal.wait_until(|screen| screen.contains("ready"));
    terminal.type_in("\u{3}");
    terminal.wait_until(|screen| screen.contains("caught INT"));
    terminal.type_in("\u{1c}");
    terminal.wait_until(|screen| screen.contains("caught QUIT"));
    terminal.type_in("\n");
    let seen = terminal.end();
    assert!(seen.screen.ends_with("Job a changed: priority\n"), "{}", seen.screen);
    assert_eq!(seen.code, Some(0));
}
