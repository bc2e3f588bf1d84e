//! How much memory a command that does one thing touches: every page that a process sees for the first time is a fault.
//!
//! Half of what a short command costs is this, and the count hardly depends on the machine. Starting the program at all
//! is in the count of `--version`, which depends on how it was built, so the others are compared with that one.

use std::fs;
use std::process::Stdio;

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use crate::cli::harness::{Call, Home};

/// Each command with the most faults that it may have beyond those of `--version`. The debug build had about 80 less. To
/// describe all verbs to the parser took 270. The program of the tests has features of libraries that only tests need,
/// which costs it some 20; a plain build of it has 2 more for `enqueue` with the dashboard than without.
const COMMANDS: [(&str, u64); 15] = [
    ("enqueue -- true", 350),
    ("enqueue --command true", 350),
    ("enqueue {\"command\":\"true\"}", 350),
    ("enqueue --queue q --priority 3 --tag a -- true", 360),
    ("status", 300),
    ("list", 300),
    ("show job", 300),
    ("worker list", 240),
    ("queue list", 270),
    ("schedule list", 310),
    ("hook list", 260),
    ("batch list", 250),
    ("dlq list", 290),
    ("config list", 260),
    ("events", 240),
];

#[test]
fn a_command_touches_few_pages_beyond_those_of_a_start() {
    let home = Home::with_jobs(&["job"]);
    let start = faults(&home, "--version");
    for (command, most) in COMMANDS {
        let beyond = faults(&home, command).saturating_sub(start);
        assert!(
            beyond <= most,
            "`{command}` has {beyond} page faults more than --version, which has {start}"
        );
    }
}

/// The whole tree of verbs is built for help and for errors only.
#[test]
fn only_help_and_errors_describe_every_verb() {
    let home = Home::with_jobs(&["job"]);
    let start = faults(&home, "--version");
    let whole = faults(&home, "--help") - start;
    assert!(whole > 150, "the whole tree takes {whole} page faults");
    for command in ["completions --help", "lst"] {
        let beyond = faults(&home, command) - start;
        assert!(beyond > whole / 2, "`{command}` is answered by the whole tree: {beyond} of {whole}");
    }
    // Even with the store that they open, these touch less than a description of all verbs.
    for command in ["config get lease", "worker list"] {
        let beyond = faults(&home, command).saturating_sub(start);
        assert!(beyond < whole, "`{command}` describes more than its verb: {beyond} of {whole}");
    }
}

/// The fewest of several runs: what the system was busy with may add some.
fn faults(home: &Home, command: &str) -> u64 {
    let run = |_| faults_of(home.call(command.split(' ')));
    (0..5).map(run).min().expect("there are runs")
}

fn faults_of(call: Call) -> u64 {
    let mut command = call.into_command();
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().expect("the program starts");
    let pid = Pid::from_child(&child);
    // It has ended but is not reaped, so the system still tells what it used.
    waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).expect("it ends");
    let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).expect("what it used");
    child.wait().expect("it is reaped");
    let after_name = stat.rsplit_once(") ").expect("a name in parentheses").1;
    after_name.split(' ').nth(7).expect("minor faults").parse().expect("a number")
}
