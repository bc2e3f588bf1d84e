//! FAULTS 34 at a terminal: Ctrl-C counts once, and closing the terminal leaves no process.

use std::process::Command;

use crate::cli::harness::PROGRAM;
use crate::cli::harness::pseudo_terminal::Terminal;
use crate::engine::harness::{Home, Pool, UNTIL_GO, is_alive};

/// `worker run` in the foreground of a terminal, with one job that runs until the test creates `go`.
fn busy(home: &Home) -> Terminal {
    home.enqueue("long", UNTIL_GO);
    let mut command = Command::new("setsid");
    command.args(["--ctty", "env", "--default-signal=INT,TERM,HUP", PROGRAM, "--home"]).arg(home.path());
    command.args(["worker", "run"]).current_dir(home.folder());
    let terminal = Terminal::start(command, 100, 30);
    home.wait_for_file("running");
    terminal
}

#[test]
fn fault_34_one_ctrl_c_lets_running_jobs_finish() {
    let home = Home::new();
    let _pool = Pool::of(&home);
    let mut terminal = busy(&home);
    terminal.type_in("\u{3}");
    home.wait_until_draining();
    assert_eq!(home.state_of("long"), "processing");
    home.file("go", "");
    let seen = terminal.end();
    assert_eq!(seen.code, Some(0), "{}", seen.screen);
    assert_eq!(home.state_of("long"), "completed");
    assert_eq!(seen.screen.matches("stop requested").count(), 1, "{}", seen.screen);
}

#[test]
fn fault_34_a_second_ctrl_c_releases_running_jobs() {
    let home = Home::new();
    let _pool = Pool::of(&home);
    let mut terminal = busy(&home);
    terminal.type_in("\u{3}");
    home.wait_until_draining();
    terminal.type_in("\u{3}");
    assert_eq!(terminal.end().code, Some(0));
    assert_eq!(home.state_of("long"), "pending");
    assert!(!is_alive(home.wait_for_pid("running")));
}

#[test]
fn fault_34_closing_the_terminal_leaves_no_process() {
    let home = Home::new();
    let _pool = Pool::of(&home);
    let terminal = busy(&home);
    let pids = [home.wait_for_pid("running"), home.workers()[0].pid];
    let closed = std::thread::scope(|scope| {
        let closed = scope.spawn(|| terminal.hang_up());
        home.wait_until_draining();
        home.file("go", "");
        closed.join().expect("it ends")
    });
    assert!(closed.success(), "{closed}");
    assert_eq!(home.state_of("long"), "completed");
    assert!(!pids.into_iter().any(is_alive));
}
