//! `--stdin`: standard input is kept with the job and given to every attempt.

use serde_json::json;

use crate::cli::harness::Home;
use crate::cli::harness::working_home::{WorkingHome, wait_until};

/// The most that is kept.
const LIMIT: usize = 16 << 20;

#[test]
fn a_command_reads_the_standard_input_of_the_call() {
    let home = WorkingHome::new();
    home.call(["run", "--stdin", "cat"]).with_stdin("a\0b\nc").run().ok().prints("a\0b\nc");
    home.call(["run", "cat"]).with_stdin("ignored").run().ok().prints("");
    home.call(["run", "--stdin", "wc", "-c"]).with_stdin("").run().ok().prints("0\n");
    home.wait_until_deserted();
}

#[test]
fn every_attempt_gets_it_from_the_beginning_and_so_does_a_retry() {
    let home = WorkingHome::new();
    let fails_once = "cat; [ \"$QUEUECTL_ATTEMPT\" -gt 1 ]";
    let backoff = r#"{"strategy":"fixed","delay":"1ms"}"#;
    let args = ["enqueue", "-q", "--stdin", "--id", "a", "--backoff", backoff, "--command", fails_once];
    home.call(args).with_stdin("input\n").run().ok();
    assert_eq!(home.show("a")["stdin_bytes"], 6);
    home.run(["worker", "run", "--until-empty", "-q"]).ok();
    for attempt in ["1", "2"] {
        home.run(["logs", "a", "--attempt", attempt]).ok().prints("input\n");
    }
    home.run(["retry", "a", "-q"]).ok();
    home.run(["edit", "a", "--priority", "3", "-q"]).ok();
    home.run(["worker", "run", "--until-empty", "-q"]).ok();
    home.run(["logs", "a", "--attempt", "3"]).ok().prints("input\n");
}

#[test]
fn an_attempt_after_a_killed_worker_gets_it_too() {
    let home = WorkingHome::new();
    let line = "cat; until [ -e go ]; do sleep 0.02; done";
    home.call(["enqueue", "-q", "--stdin", "--id", "a", line]).with_stdin("input\n").run().ok();
    home.run(["worker", "start", "-q"]).ok();
    home.wait_for_state("a", "processing");
    let worker = home.workers().pop().expect("a worker");
    let pid = i32::try_from(worker.pid).ok().and_then(rustix::process::Pid::from_raw).expect("a pid");
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("it is killed");
    wait_until("it runs again", || home.show("a")["attempts"] == 2);
    home.go();
    home.wait_for_state("a", "completed");
    home.run(["logs", "a", "--attempt", "2"]).ok().prints("input\n");
}

#[test]
fn it_is_kept_as_long_as_the_job_although_the_output_is_deleted() {
    let home = WorkingHome::new();
    home.call(["enqueue", "-q", "--stdin", "--id", "a", "cat"]).with_stdin("input\n").run().ok();
    home.run(["worker", "run", "--until-empty", "-q"]).ok();
    home.run(["config", "set", "retain-logs", "0s", "-q"]).ok();
    home.run(["prune", "-q"]).ok();
    assert_eq!(home.run(["logs", "a"]).stdout, "", "the output is deleted");
    home.run(["doctor", "--full"]).ok();
    home.run(["config", "unset", "retain-logs", "-q"]).ok();
    home.run(["retry", "a", "-q"]).ok();
    home.run(["worker", "run", "--until-empty", "-q"]).ok();
    home.run(["logs", "a"]).ok().prints("input\n");
}

#[test]
fn more_than_the_limit_is_refused_and_nothing_is_stored() {
    let home = Home::new();
    let call = |bytes: usize| {
        home.call(["enqueue", "-q", "--stdin", "--", "cat"]).with_stdin(vec![b'x'; bytes]).run()
    };
    call(LIMIT + 1).fails(2).prints("").says("larger than 16 MiB");
    assert!(home.is_empty());
    call(LIMIT).ok();
    assert_eq!(home.jobs()[0].options.stdin_bytes, LIMIT as u64);
}

#[test]
fn it_belongs_to_one_job() {
    let home = Home::new();
    for args in [["-"].as_slice(), &["[]"], &["--each", "-", "echo", "{}"], &["--each", "echo", ":::", "a"]] {
        let args = ["enqueue", "--stdin"].iter().chain(args);
        home.call(args).with_stdin("").run().fails(2).says("--stdin gives standard input to one job");
    }
    home.run(["run", "--stdin", "--each", "echo", ":::", "a"]).fails(2).says("to one job");
    assert!(home.is_empty());
}

#[test]
fn export_and_import_keep_it_and_removing_the_job_deletes_it() {
    let home = WorkingHome::new();
    home.call(["enqueue", "-q", "--stdin", "--id", "a", "cat"]).with_stdin("kept\n").run().ok();
    home.run(["export", "all.jsonl", "-q"]).ok();
    home.run(["remove", "a", "-q"]).ok();
    let content = || {
        let database = rusqlite::Connection::open(home.database()).expect("it opens");
        let count = "select count(*) from outputs";
        database.query_row(count, [], |row| row.get::<_, i64>(0)).expect("a number")
    };
    assert_eq!(content(), 0);
    home.run(["import", "all.jsonl", "-q"]).ok();
    assert_eq!((content(), &home.show("a")["stdin_bytes"]), (1, &json!(5)));
    home.run(["worker", "run", "--until-empty", "-q"]).ok();
    home.run(["logs", "a"]).ok().prints("kept\n");
    home.run(["config", "set", "retain-completed", "0s", "-q"]).ok();
    home.run(["prune", "-q"]).ok();
    assert_eq!((home.count(), content()), (0, 0), "pruning the job deletes it");
}

#[test]
fn an_import_without_the_input_that_a_job_needs_is_refused() {
    let home = Home::new();
    home.call(["enqueue", "-q", "--stdin", "--id", "a", "cat"]).with_stdin("kept\n").run().ok();
    home.run(["export", "all.jsonl", "-q"]).ok();
    let path = home.folder().join("all.jsonl");
    let export = std::fs::read_to_string(&path).expect("it is text");
    let damaged = export.replace("\"stdin_bytes\":5", "\"stdin_bytes\":6");
    assert_ne!(damaged, export);
    std::fs::write(&path, damaged).expect("it is written");
    home.run(["remove", "a", "-q"]).ok();
    home.run(["import", "all.jsonl"]).fails(2).says("stdin");
    assert!(home.is_empty());
}
