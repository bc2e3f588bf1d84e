//! FAULTS 21: a command inherits no descriptors or signal settings, no matter how its worker was started.

use std::process::Command;

use crate::engine::harness::{Home, Pool};

/// Commands that inspect their own process, and the expected output.
const QUESTIONS: [(&str, &str); 4] = [
    // `ls` itself opens descriptor 3.
    ("ls /proc/self/fd", "0\n1\n2\n3\n60\n"),
    ("ls /proc/self/fd; :", "0\n1\n2\n3\n60\n"),
    ("readlink /proc/self/fd/0", "/dev/null\n"),
    // It leads its own session and group.
    ("set -- $(cat /proc/$$/stat); [ $5 = $$ ] && [ $6 = $$ ] && echo leader", "leader\n"),
];

#[track_caller]
fn assert_clean(home: &Home) {
    assert_clean_with(home, "");
}

/// The same, for jobs with these flags.
#[track_caller]
fn assert_clean_with(home: &Home, flags: &str) {
    for (at, (question, answer)) in QUESTIONS.iter().enumerate() {
        let id = format!("question-{at}");
        home.enqueue_with(&id, question, flags);
        home.wait_for(&id, "completed");
        assert_eq!(home.printed_text(&id), *answer, "{question}");
    }
    home.enqueue_with("status", "cat /proc/self/status", flags);
    home.wait_for("status", "completed");
    let status = home.printed_text("status");
    for set in ["SigBlk", "SigIgn", "SigCgt"] {
        assert_eq!(signals_in(&status, set), 0, "{status}");
    }
}

/// One of the sets of signals in the status of a process.
fn signals_in(status: &str, set: &str) -> u64 {
    // A process started by `posix_spawn` ignores the two signals that glibc reserves for itself; programs cannot use
    // them.
    const OF_GLIBC: u64 = 1 << 31 | 1 << 32;
    let line = status.lines().find_map(|line| line.strip_prefix(set)?.strip_prefix(":\t"));
    u64::from_str_radix(line.expect("the set is there"), 16).expect("a number") & !OF_GLIBC
}

/// The program, called from a shell that ignores signals and leaves descriptors open.
fn called_carelessly(home: &Home, verb: &[&str]) -> Command {
    let mut command = Command::new("bash");
    command.args(["-c", "trap '' HUP INT QUIT PIPE USR1 TSTP; exec 7<\"$0\" 42>/dev/null; exec \"$@\""]);
    command.arg(home.file("secret", "")).arg(crate::cli::harness::PROGRAM).arg("--home").arg(home.path());
    command.args(verb).current_dir(home.folder());
    command
}

#[test]
fn fault_21_a_command_inherits_nothing() {
    let home = Home::new();
    let _pool = Pool::run(&home, "");
    assert_clean(&home);
}

#[test]
fn fault_21_a_command_with_limits_inherits_nothing() {
    let home = Home::new();
    let _pool = Pool::run(&home, "");
    assert_clean_with(&home, "--limits memory=1G,pids=50,nice=1,open_files=100");
}

#[test]
fn fault_21_a_careless_caller_of_worker_run_makes_no_difference() {
    let home = Home::new();
    let _pool = Pool::up(&home, called_carelessly(&home, &["worker", "run"]));
    assert_clean(&home);
}

#[test]
fn fault_21_a_careless_caller_of_worker_start_makes_no_difference() {
    let home = Home::new();
    let _pool = Pool::of(&home);
    let status = called_carelessly(&home, &["worker", "start"]).status().expect("it runs");
    assert!(status.success());
    assert_clean(&home);
}

#[test]
fn fault_21_concurrent_commands_inherit_nothing_from_each_other() {
    let home = Home::new();
    for at in 0..20 {
        home.enqueue(&format!("job-{at}"), "ls /proc/self/fd");
    }
    Pool::drain(&home, "--concurrency 8");
    for at in 0..20 {
        let id = format!("job-{at}");
        assert_eq!(home.printed_text(&id), "0\n1\n2\n3\n60\n", "{}", home.show(&id));
    }
}
