//! `run --each`: a sweep in the foreground.

use std::os::unix::process::ExitStatusExt;

use domain::job::life::StateName;
use rustix::process::Signal;

use crate::cli::harness::background::Background;
use crate::cli::harness::pseudo_terminal::{Terminal, on_terminal};
use crate::cli::harness::working_home::{WorkingHome, wait_until};

/// Waits for the file `go`; the argument is part of what it prints.
const WAITING: &str = "echo ready-{}; until [ -e go ]; do sleep 0.02; done; echo went-{}";

fn states(home: &WorkingHome) -> Vec<StateName> {
    home.jobs().iter().rev().map(|job| job.life.state.name()).collect()
}

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

#[test]
fn all_jobs_run_and_their_output_is_grouped() {
    let home = WorkingHome::new();
    let line = "echo begin-{}; echo err-{} >&2; sleep 0.05; echo end-{}";
    let ran = home.run(["run", "--each", "-j", "3", line, ":::", "1", "2", "3", "4", "5"]).ok();
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(lines.len(), 10);
    for pair in lines.chunks(2) {
        assert_eq!(pair[0].replace("begin", "end"), pair[1], "{lines:?}");
    }
    assert_eq!(sorted(&ran.stderr), ["err-1", "err-2", "err-3", "err-4", "err-5"]);
    assert_eq!(states(&home), [StateName::Completed; 5]);
    assert!(home.jobs().iter().all(|job| job.batch.is_some() && job.life.max_retries == 0));
    home.wait_until_deserted();
}

#[test]
fn that_many_run_at_once() {
    let home = WorkingHome::new();
    // Each job waits for the others.
    let meet = "touch here-{}; until [ -e here-a ] && [ -e here-b ] && [ -e here-c ]; do sleep 0.02; done";
    home.run(["run", "--each", "-j", "3", meet, ":::", "a", "b", "c"]).ok().prints("").says_nothing();
    home.wait_until_deserted();
}

#[test]
fn items_come_from_a_file_or_from_standard_input() {
    let home = WorkingHome::new();
    home.file("list.txt", "x\ny\n");
    let ran = home.run(["run", "--each", "list.txt", "echo", "{#}-{}"]).ok();
    assert_eq!(sorted(&ran.stdout), ["1-x", "2-y"]);
    let ran = home.call(["run", "--each", "-", "echo"]).with_stdin("z\n").run().ok();
    assert_eq!(ran.stdout, "z\n");
    home.run(["run", "--each", "echo", ":::"]).ok().prints("");
    home.run(["run", "--each", "nowhere.txt", "echo"]).fails(2).says("nowhere.txt");
    home.run(["run", "--each", "--dry-run", "echo", "{.}", ":::", "a.b"]).ok().says_nothing();
    assert_eq!(home.count(), 3);
    home.wait_until_deserted();
}

#[test]
fn nothing_is_stored_before_all_items_are_read_and_checked() {
    let home = WorkingHome::new();
    home.call(["run", "--each", "-", "echo"]).with_stdin(b"a\n\xff\n").run().fails(2).says("line 2");
    assert!(home.is_empty());
    let call = home.call(["run", "--each", "-", "echo"]).interruptible();
    let mut terminal = Terminal::start(call.into_command(), 100, 30);
    terminal.type_in("a\n");
    terminal.signal(Signal::INT);
    assert_eq!(terminal.end().status.signal(), Some(Signal::INT.as_raw()));
    assert!(home.is_empty());
}

#[test]
fn flags_and_arguments_without_each_are_explained() {
    let home = WorkingHome::new();
    let how = "`--each COMMAND {} ::: A B C`";
    home.run(["run", "-j", "4", "echo", "a"]).fails(2).says("--each <FILE>").says(how);
    home.run(["run", "gzip {}", ":::", "a"]).fails(2).says("use --each before the command");
    home.run(["enqueue", "--each", "-j", "4", "echo", ":::", "a"]).fails(2).says("`queuectl run --each`");
    home.run(["run", "--each", "--jobs", "4", "echo", ":::", "a"]).fails(2).says("use --concurrency, or -j");
    assert!(home.is_empty());
    home.run(["run", "echo", ":::", "a"]).ok().prints("::: a\n").says("add --each before the command");
    for word in ["parallel", "--each"] {
        home.run(["run", "--", "echo", word, ":::", "a"]).ok().says_nothing();
    }
    home.wait_until_deserted();
}

#[test]
fn the_exit_code_is_1_if_a_job_failed() {
    let home = WorkingHome::new();
    let ran =
        home.run(["run", "--each", "-j", "2", "--batch", "sweep", "exit {}", ":::", "0", "3", "0", "7"]);
    ran.fails(1).prints("").says("2 of 4 jobs in batch `sweep` did not succeed").says("--batch sweep");
    home.run(["run", "--each", "--batch", "sweep", "echo", ":::", "a"]).fails(4).says("already a batch");
    let call = home.call(["run", "--each", "--json", "-j", "2", "echo {}; exit {}", ":::", "0", "1"]);
    let ran = call.into_command().output().expect("it runs");
    assert_eq!(ran.status.code(), Some(1));
    let batch: serde_json::Value = serde_json::from_slice(&ran.stdout).expect("only JSON");
    assert_eq!((&batch["total"], &batch["jobs"]["dead"]), (&2.into(), &1.into()), "{batch}");
    let problems = home.run(["status", "--json"]).ok().json()["problems"].to_string();
    assert!(!problems.contains("dlq_growing"), "the caller knows of the failures: {problems}");
    home.wait_until_deserted();
}

#[test]
fn the_first_failure_can_cancel_the_rest() {
    let home = WorkingHome::new();
    let line = "[ {} != bad ] || exit 9; until [ -e go ]; do sleep 0.02; done";
    let args = ["run", "--each", "-j", "2", "--halt-on-failure", line, ":::", "slow", "bad", "c", "d"];
    home.run(args).fails(1).says("1 of 4 jobs");
    let cancelled = StateName::Cancelled;
    assert_eq!(states(&home), [cancelled, StateName::Dead, cancelled, cancelled]);
    home.wait_until_deserted();
}

#[test]
fn a_sweep_that_is_killed_loses_nothing() {
    let home = WorkingHome::new();
    let args = ["run", "--each", "-j", "1", WAITING, ":::", "a", "b", "c"];
    let sweep = Background::start(home.call(args));
    wait_until("the first job runs", || states(&home).contains(&StateName::Processing));
    sweep.signal(Signal::KILL);
    let (status, _) = sweep.end();
    assert_eq!(status.signal(), Some(Signal::KILL.as_raw()));
    home.go();
    wait_until("all jobs are completed", || states(&home) == [StateName::Completed; 3]);
    home.wait_until_deserted();
}

#[test]
fn status_counts_only_waiting_jobs_that_the_sweep_does_not_run() {
    let home = WorkingHome::new();
    let sweep = Background::start(home.call(["run", "--each", "-j", "1", WAITING, ":::", "a", "b", "c"]));
    wait_until("the first job runs", || states(&home).contains(&StateName::Processing));
    home.run(["status", "--check"]).ok();
    home.run(["enqueue", "-q", "--", "true"]).ok();
    let checked = home.run(["status", "--check"]).shows("1 job waits, but no worker is running");
    assert_eq!(checked.status.code(), Some(1), "{checked}");
    home.go();
    assert!(sweep.end().0.success());
    home.wait_until_deserted();
}

#[test]
fn without_a_terminal_a_signal_detaches() {
    let home = WorkingHome::new();
    let args = ["run", "--each", "--batch", "sweep", "-j", "2", WAITING, ":::", "a", "b"];
    let sweep = Background::start(home.call(args));
    wait_until("the jobs run", || states(&home) == [StateName::Processing; 2]);
    sweep.signal(Signal::TERM);
    assert!(sweep.says().starts_with("detached: `queuectl batch wait sweep`"));
    let (status, _) = sweep.end();
    assert_eq!(status.signal(), Some(Signal::TERM.as_raw()));
    home.go();
    home.run(["batch", "wait", "sweep", "-q"]).ok();
    home.wait_until_deserted();
}

#[test]
fn a_killed_pool_is_replaced() {
    let home = WorkingHome::new();
    let args = ["run", "--each", "-j", "2", WAITING, ":::", "a", "b", "c"];
    let sweep = Background::start(home.call(args));
    wait_until("the jobs run", || states(&home).contains(&StateName::Processing));
    let worker = home.workers().pop().expect("a worker");
    for pid in [worker.supervisor_pid.expect("a supervisor"), worker.pid] {
        let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw).expect("a pid");
        let _ = rustix::process::kill_process(pid, Signal::KILL);
    }
    home.go();
    let (status, lines) = sweep.end();
    assert!(status.success(), "{lines:?}");
    assert_eq!(states(&home), [StateName::Completed; 3]);
    home.wait_until_deserted();
}

#[test]
fn a_killed_worker_is_restarted_and_its_jobs_run_again() {
    let home = WorkingHome::new();
    let sweep = Background::start(home.call(["run", "--each", "-j", "2", WAITING, ":::", "a", "b"]));
    wait_until("the jobs run", || states(&home) == [StateName::Processing; 2]);
    let worker = home.workers().pop().expect("a worker");
    let pid = i32::try_from(worker.pid).ok().and_then(rustix::process::Pid::from_raw).expect("a pid");
    rustix::process::kill_process(pid, Signal::KILL).expect("it is killed");
    wait_until("the jobs run again", || home.jobs().iter().all(|job| job.life.attempts == 2));
    home.go();
    let (status, lines) = sweep.end();
    assert!(status.success(), "{lines:?}");
    home.wait_until_deserted();
}

#[test]
fn a_paused_queue_is_reported() {
    let home = WorkingHome::new();
    home.run(["queue", "pause", "slow", "-q"]).ok();
    let sweep = Background::start(home.call(["run", "--each", "--queue", "slow", "true", ":::", "a", "b"]));
    let note = sweep.says();
    assert!(note.starts_with("queue slow was paused by "), "{note}");
    assert!(note.contains("`queuectl queue resume slow` resumes it"), "{note}");
    home.run(["queue", "resume", "slow", "-q"]).ok();
    let (status, lines) = sweep.end();
    assert!(status.success(), "{lines:?}");
    home.wait_until_deserted();
}

#[test]
fn a_terminal_shows_a_bar_and_a_summary() {
    let home = WorkingHome::new();
    let args =
        ["run", "--color", "never", "--each", "-j", "1", "--batch", "sweep", "printf {}", ":::", "a", "b"];
    let seen = on_terminal(home.call(args).into_command(), 100, "");
    assert!(
        seen.screen.contains("a\n") && seen.screen.contains("b\n"),
        "each ends its line: {:?}",
        seen.screen
    );
    assert_eq!(seen.code, Some(0), "{}", seen.screen);
    assert!(seen.screen.contains("2 jobs in batch sweep\n"), "{}", seen.screen);
    assert!(seen.screen.ends_with("2 jobs completed\n"), "{}", seen.screen);
    home.wait_until_deserted();
}

#[test]
fn ctrl_c_asks_and_can_cancel_the_remaining_jobs() {
    let home = WorkingHome::new();
    let args = ["run", "--color", "never", "--each", "-j", "1", WAITING, ":::", "a", "b"];
    cancel_by_ctrl_c(&home, home.call(args).interruptible().into_command());
}

#[test]
fn ctrl_c_asks_also_if_the_items_come_from_standard_input() {
    let home = WorkingHome::new();
    home.file("list", "a\nb\n");
    let args = ["run", "--color", "never", "--each", "-", "-j", "1", WAITING];
    let call = home.call(args).interruptible().into_command();
    let mut shell = std::process::Command::new("/bin/sh");
    shell.args(["-c", "exec \"$0\" \"$@\" < list"]).arg(call.get_program()).args(call.get_args());
    shell.current_dir(home.folder());
    cancel_by_ctrl_c(&home, shell);
}

fn cancel_by_ctrl_c(home: &WorkingHome, command: std::process::Command) {
    let states = || states(home);
    let mut terminal = Terminal::start(command, 100, 30);
    wait_until("the first job runs", || states().contains(&StateName::Processing));
    terminal.wait_until(|screen| screen.contains("0 of 2"));
    terminal.signal(Signal::INT);
    terminal.wait_until(|screen| {
        screen.ends_with("[c]ancel remaining jobs (or Ctrl-C again), [d]etach, or keep [w]aiting? [d] ")
    });
    terminal.type_in("c\n");
    let seen = terminal.end();
    assert!(seen.screen.ends_with("the remaining jobs are cancelled\n"), "{}", seen.screen);
    assert_eq!(seen.status.signal(), Some(Signal::INT.as_raw()));
    assert_eq!(states(), [StateName::Cancelled; 2]);
    home.wait_until_deserted();
}
