//! `run` on a terminal: notes next to the output, and Ctrl-C.

use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use domain::job::outcome::Outcome;
use rustix::process::Signal;

use crate::cli::harness::pseudo_terminal::{Terminal, on_terminal};
use crate::cli::harness::test_worker::TestWorker;
use crate::cli::harness::working_home::{UNTIL_GO, WorkingHome};

const ABOUT: &str = "job a (queuectl logs -f a)\n";
const QUESTION: &str = "\n[c]ancel the job (or Ctrl-C again), [d]etach, or keep [w]aiting? [d] ";
const DETACHED: &str = "detached: `queuectl logs -f a` follows the job, `queuectl wait a` waits for it\n";

fn start(home: &WorkingHome, args: &[&str]) -> Terminal {
    let args = ["run", "--color", "never", "--id", "a"].iter().chain(args);
    Terminal::start(home.call(args).interruptible().into_command(), 100, 30)
}

/// A job that runs until released, after Ctrl-C was pressed.
fn interrupted(home: &WorkingHome) -> Terminal {
    let mut terminal = start(home, &["--command", UNTIL_GO]);
    terminal.wait_until(|screen| screen.ends_with("ready\n"));
    press_ctrl_c(&mut terminal);
    terminal
}

fn press_ctrl_c(terminal: &mut Terminal) {
    let asked = terminal.screen().matches(QUESTION).count();
    terminal.signal(Signal::INT);
    terminal.wait_until(|screen| screen.matches(QUESTION).count() > asked && screen.ends_with(QUESTION));
}

#[test]
fn a_terminal_shows_the_job_id() {
    let home = WorkingHome::new();
    let call = home.call(["run", "--color", "never", "--id", "a", "--", "printf", "\\033[1mhi"]);
    let seen = on_terminal(call.into_command(), 100, "");
    assert_eq!((seen.screen, seen.code), (format!("{ABOUT}\u{1b}[1mhi"), Some(0)));
    home.wait_until_deserted();
    let seen = on_terminal(home.call(["run", "-q", "--", "echo", "hi"]).into_command(), 100, "");
    assert_eq!(seen.screen, "hi\n");
    home.wait_until_deserted();
    let call = home.call(["run", "--color", "never", "--id", "a", "--if-absent", "--", "true"]);
    let seen = on_terminal(call.into_command(), 100, "");
    assert_eq!(seen.screen, "job a already exists (queuectl logs -f a)\n\u{1b}[1mhi");
    let seen = on_terminal(home.call(["run", "-q", "--command", "kill -9 $$"]).into_command(), 100, "");
    assert_eq!((seen.screen.as_str(), seen.code), ("", Some(137)));
}

#[test]
fn notes_start_on_their_own_line() {
    let home = WorkingHome::new();
    let seen = start(&home, &["--command", "printf half; kill -9 $$"]).end();
    assert_eq!((seen.screen, seen.code), (format!("{ABOUT}half\nkilled by SIGKILL\n"), Some(137)));
    home.run(["remove", "a"]).ok();
    let seen = start(&home, &["--command", "printf half; exit 3"]).end();
    assert!(seen.screen.ends_with("half\nexit code 3\n"), "{}", seen.screen);
}

#[test]
fn the_wait_for_a_slot_is_shown_and_cleared() {
    let home = WorkingHome::new();
    home.run(["enqueue", "-q", "--id", "first", "--", "x"]).ok();
    let worker = TestWorker::new(&home, "w1");
    let first = worker.claim_job("first");
    let mut terminal = start(&home, &["--", "x"]);
    terminal.wait_until(|screen| screen.ends_with("\r\u{1b}[Kwaiting for a free slot (1 job running)"));
    worker.settle(first, Outcome::Success, None);
    let own = worker.claim_job("a");
    terminal.wait_until(|screen| screen.ends_with("\r\u{1b}[K"));
    let capture = worker.capture(&home, &own, 1 << 20);
    worker.settle_captured(own, Outcome::Success, capture.finish());
    let seen = terminal.end();
    assert!(seen.screen.ends_with("(1 job running)\r\u{1b}[K") && seen.code == Some(0), "{:?}", seen.screen);
}

#[test]
fn a_scheduled_job_is_waited_for() {
    let home = WorkingHome::new();
    let mut terminal = start(&home, &["--delay", "1h", "--", "true"]);
    terminal.wait_until(|screen| screen.contains("\r\u{1b}[Kstarts in 1h"));
    press_ctrl_c(&mut terminal);
    terminal.type_in("c");
    let seen = terminal.end();
    assert_eq!(seen.status.signal(), Some(Signal::INT.as_raw()), "{:?}", seen.screen);
    assert_eq!(home.state_of("a"), "cancelled");
}

#[test]
fn ctrl_c_can_cancel_the_job() {
    let home = WorkingHome::new();
    let mut terminal = interrupted(&home);
    terminal.type_in("c");
    let seen = terminal.end();
    assert_eq!(seen.status.signal(), Some(Signal::INT.as_raw()), "130 for a shell: {:?}", seen.screen);
    assert!(seen.screen.ends_with("job a is cancelled\n"), "{:?}", seen.screen);
    assert_eq!(home.state_of("a"), "cancelled");
    home.wait_until_deserted();
}

#[test]
fn ctrl_c_can_detach() {
    for answer in ["d", "D", "\r", "\u{4}"] {
        let home = WorkingHome::new();
        let mut terminal = interrupted(&home);
        terminal.type_in(answer);
        let seen = terminal.end();
        assert_eq!(seen.status.signal(), Some(Signal::INT.as_raw()), "{answer:?}: {:?}", seen.screen);
        assert_eq!(seen.screen, format!("{ABOUT}ready\n{QUESTION}\n{DETACHED}"));
        assert_eq!(home.state_of("a"), "processing");
        home.go();
        home.run(["wait", "a"]).ok();
    }
}

#[test]
fn a_second_ctrl_c_cancels_the_job() {
    let home = WorkingHome::new();
    let terminal = interrupted(&home);
    terminal.signal(Signal::INT);
    let seen = terminal.end();
    assert_eq!(seen.status.signal(), Some(Signal::INT.as_raw()), "{:?}", seen.screen);
    assert_eq!(home.state_of("a"), "cancelled");
}

#[test]
fn other_signals_detach() {
    for signal in [Signal::TERM, Signal::HUP] {
        let home = WorkingHome::new();
        let terminal = interrupted(&home);
        terminal.signal(signal);
        let seen = terminal.end();
        assert_eq!(seen.status.signal(), Some(signal.as_raw()), "{:?}", seen.screen);
        assert!(seen.screen.ends_with(&format!("{QUESTION}\n{DETACHED}")), "{:?}", seen.screen);
        assert_eq!(home.state_of("a"), "processing");
    }
}

#[test]
fn after_ctrl_c_the_user_can_keep_waiting() {
    let home = WorkingHome::new();
    let in_steps = format!("echo begun; until [ -e on ]; do sleep 0.02; done; {UNTIL_GO}");
    let mut terminal = start(&home, &["--command", &in_steps]);
    terminal.wait_until(|screen| screen.ends_with("begun\n"));
    press_ctrl_c(&mut terminal);
    terminal.type_in("?xw");
    home.file("on", "");
    terminal.wait_until(|screen| screen.ends_with("ready\n"));
    press_ctrl_c(&mut terminal);
    terminal.type_in("W");
    home.go();
    let seen = terminal.end();
    assert_eq!((seen.screen.ends_with("went\n"), seen.code), (true, Some(0)), "{:?}", seen.screen);
}

#[test]
fn the_question_ends_when_the_job_does() {
    let home = WorkingHome::new();
    let terminal = interrupted(&home);
    home.go();
    let seen = terminal.end();
    assert_eq!((seen.screen, seen.code), (format!("{ABOUT}ready\n{QUESTION}\nwent\n"), Some(0)));
}

#[test]
fn without_a_terminal_on_stdin_there_is_no_question() {
    let home = WorkingHome::new();
    let call = home.call(["run", "--color", "never", "--id", "a", "--command", UNTIL_GO]).interruptible();
    let call = call.into_command();
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", "exec \"$0\" \"$@\" < /dev/null"]).arg(call.get_program()).args(call.get_args());
    shell.current_dir(home.folder());
    let mut terminal = Terminal::start(shell, 100, 30);
    terminal.wait_until(|screen| screen.ends_with("ready\n"));
    terminal.signal(Signal::INT);
    let seen = terminal.end();
    assert_eq!(seen.status.signal(), Some(Signal::INT.as_raw()));
    assert!(seen.screen.ends_with(&format!("ready\n{DETACHED}")), "{:?}", seen.screen);
}
