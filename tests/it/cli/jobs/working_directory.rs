//! Commands and working directories that no attempt could use: refused when the job is enqueued.

use crate::cli::harness::Home;

#[test]
fn an_empty_command_is_refused_in_every_form() {
    for args in [
        ["enqueue", "--", ""].as_slice(),
        &["enqueue", "--", "", "x"],
        &["enqueue", "--command", ""],
        &["enqueue", r#"{"command":"''"}"#],
        &["run", "--", ""],
        &["schedule", "add", "s", "--every", "1h", "--", ""],
        &["enqueue", "--each", "lines", "--", ""],
    ] {
        let home = Home::with_queue();
        home.file("lines", "a\n");
        home.run(args).fails(2).says("`command` is blank");
        assert!(home.is_empty());
    }
    let home = Home::with_queue();
    home.run(["hook", "add", "h", "--on", "dead", "--", ""]).fails(2).says("blank");
    home.run(["enqueue", "--", "printf", ""]).ok();
    home.run(["enqueue", "--command", "''true"]).ok();
}

#[test]
fn a_working_directory_that_does_not_exist_is_refused_with_a_hint() {
    let home = Home::with_queue();
    home.file("file", "");
    let json = r#"{"command":"true","cwd":"gone"}"#;
    let gone = home.folder().canonicalize().expect("a folder").join("gone");
    let missing = format!("the working directory `{}` does not exist", gone.display());
    for args in [
        ["enqueue", "--cwd", "gone", "--", "true"].as_slice(),
        &["enqueue", json],
        &["enqueue", &format!("[{json}]")],
        &["run", "--cwd", "gone", "--", "true"],
        &["enqueue", "--cwd", "gone", "--each", "file", "--", "true", "{}"],
    ] {
        if args.contains(&"--each") {
            home.file("file", "a\n");
        }
        home.run(args).fails(2).prints("").says(&missing).says("hint: create it first");
    }
    home.run(["enqueue", "--cwd", "file", "--", "true"]).fails(2).says("file` is not a directory");
    home.run(["enqueue", "--cwd", "file/below", "--", "true"]).fails(2).says("is not a directory");
    assert!(home.is_empty());
}

#[test]
fn lines_name_the_one_whose_working_directory_is_missing() {
    let home = Home::with_queue();
    let lines = "{\"command\":\"true\",\"cwd\":\"/\"}\n{\"command\":\"true\",\"cwd\":\"/gone\"}\n";
    home.file("jobs", lines);
    home.run(["enqueue", "--file", "jobs"]).fails(2).says("line 2").says("`/gone` does not exist");
    assert!(home.is_empty(), "a file is checked whole");
    home.call(["enqueue", "-"])
        .with_stdin(lines)
        .run()
        .fails(1)
        .says("line 2")
        .says("`/gone` does not exist");
    assert_eq!(home.count(), 1, "a stream is stored up to the bad line");
}

#[test]
fn a_job_that_starts_later_may_name_a_directory_that_does_not_exist_yet() {
    let home = Home::with_jobs(&["clone"]);
    let hint =
        "hint: the working directory `/gone` does not exist; the job fails if it is still missing then";
    for when in [["--depends-on", "clone"], ["--delay", "1h"], ["--run-at", "2090-01-01T03:00:00Z"]] {
        home.run([&["enqueue"], &when[..], &["--cwd", "/gone", "--", "make"]].concat()).ok().says(hint);
    }
    home.run(["enqueue", r#"{"command":"true","cwd":"/gone","delay":"1h"}"#]).ok().says(hint);
    assert_eq!(home.count(), 5);
    for now in [["--delay", "0"], ["--run-at", "2020-01-01T03:00:00Z"]] {
        let args = [&["enqueue"], &now[..], &["--cwd", "/gone", "--", "make"]].concat();
        home.run(args).fails(2).says("`/gone` does not exist");
    }
    let lines = "{\"command\":\"true\",\"cwd\":\"/gone\",\"delay\":\"1h\"}\n".repeat(3);
    let ran = home.call(["enqueue", "-"]).with_stdin(lines).run().ok().says(hint);
    assert_eq!(ran.stderr.matches("/gone").count(), 1, "one hint is enough: {ran}");
}

#[test]
fn a_schedule_may_name_a_directory_that_does_not_exist_yet() {
    let home = Home::with_queue();
    home.run(["schedule", "add", "s", "--every", "1h", "--cwd", "/gone", "--", "true"])
        .ok()
        .says("hint: the working directory `/gone` does not exist; runs fail until there is one");
}
