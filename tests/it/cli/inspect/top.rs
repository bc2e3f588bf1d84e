//! `queuectl top`, on a pseudo-terminal. A terminal emulator says what its screen shows.
#![cfg(feature = "tui")]

mod keys;
mod mouse;

use std::num::NonZero;
use std::os::unix::process::ExitStatusExt;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use rustix::termios::LocalModes;

use crate::cli::harness::Home;
use crate::cli::harness::pseudo_terminal::Terminal;
use crate::cli::harness::test_worker::TestWorker;
use domain::job::outcome::Outcome;
use domain::log::Stream;

const LEAVE: &str = "\u{1b}[?25h\u{1b}[?1049l";

/// `top` on a terminal of this size.
struct Top {
    terminal: Terminal,
    columns: u16,
    rows: u16,
    /// Where the output of the present size begins.
    from: usize,
}

impl Top {
    fn start(home: &Home, (columns, rows): (u16, u16), more: &[&str]) -> Self {
        let args = ["top"].iter().chain(more);
        let command = home.call(args).interruptible().into_command();
        let mut top = Self { terminal: Terminal::with_echo(command, columns, rows), columns, rows, from: 0 };
        top.wait("live");
        top
    }

    /// What the terminal shows after this output.
    fn shown(&self, output: &str) -> String {
        emulate(&output.as_bytes()[self.from..], self.columns, self.rows)
    }

    fn screen(&self) -> String {
        self.shown(&self.terminal.screen())
    }

    /// Waits until the screen shows this.
    #[track_caller]
    fn wait(&mut self, text: &str) {
        self.wait_until(|screen| screen.contains(text));
    }

    #[track_caller]
    fn wait_until(&mut self, wanted: impl Fn(&str) -> bool) {
        let (rows, columns, from) = (self.rows, self.columns, self.from);
        self.terminal.wait_until(|output| wanted(&emulate(&output.as_bytes()[from..], columns, rows)));
    }

    /// Presses keys, and waits until the screen shows this.
    #[track_caller]
    fn press(&mut self, keys: &str, then: &str) {
        self.terminal.type_in(keys);
        self.wait(then);
    }

    /// Presses keys, and waits until the cursor is on a row with this.
    #[track_caller]
    fn moves(&mut self, keys: &str, to: &str) {
        self.terminal.type_in(keys);
        self.wait_until(|screen| is_chosen(screen, to));
    }

    fn resize(&mut self, columns: u16, rows: u16) {
        self.from = self.terminal.screen().len();
        (self.columns, self.rows) = (columns, rows);
        self.terminal.resize(columns, rows);
        self.terminal.signal(Signal::WINCH);
    }

    /// Quits, and checks that the terminal is as before.
    fn quit(mut self) {
        self.terminal.type_in("q");
        self.terminal.wait_until(|output| output.contains(LEAVE));
        let run = self.terminal.end();
        assert_eq!(run.code, Some(0), "{}", run.screen);
    }
}

/// Whether the row under the cursor has this.
fn is_chosen(screen: &str, text: &str) -> bool {
    screen.lines().any(|line| line.starts_with('▸') && line.contains(text))
}

/// What a terminal of this size shows after this output.
fn emulate(output: &[u8], columns: u16, rows: u16) -> String {
    let [columns, rows] = [columns, rows].map(|side| NonZero::new(side).expect("a terminal has a size"));
    let mut parser = vt100::Parser::new(rows, columns, 0);
    parser.process(output);
    parser.screen().contents()
}

/// Some jobs: `bad` is dead after it printed this, `wait` is pending, `good` is completed.
fn with_output(output: &str) -> Home {
    let home = Home::with_jobs(&["bad", "good"]);
    home.run(["config", "set", "max-retries", "0"]).ok();
    home.run(["enqueue", "-q", "--id", "printer", "--max-retries", "0", "-c", output]).ok();
    home.run(["worker", "run", "--until-empty"]).ok();
    home.run(["enqueue", "-q", "--id", "wait", "-Q", "mail", "-c", "sleep 1"]).ok();
    home
}

#[test]
fn every_size_shows_the_jobs_and_stays_in_its_lines() {
    let home = with_output("echo hello; exit 3");
    for size in [(80, 24), (120, 40), (200, 60), (60, 16)] {
        let mut top = Top::start(&home, size, &[]);
        top.press("2", "printer");
        top.wait("COMMAND");
        let screen = top.screen();
        assert!(screen.lines().count() <= usize::from(size.1), "{screen}");
        assert!(screen.contains("1 Over") || screen.contains("1 Ove"), "{screen}");
        top.quit();
    }
}

#[test]
fn a_resized_window_is_drawn_anew() {
    let home = with_output("echo hello; exit 3");
    let mut top = Top::start(&home, (80, 24), &[]);
    top.press("2", "printer");
    for (columns, rows) in [(120, 40), (200, 60), (50, 12)] {
        top.resize(columns, rows);
        top.wait("printer");
    }
    top.resize(30, 8);
    top.wait("needs 40x10");
    top.resize(80, 24);
    top.wait("printer");
    top.quit();
}

#[test]
fn every_tab_and_every_key_that_looks() {
    let home = with_output("echo hello; echo oops >&2; exit 3");
    let mut top = Top::start(&home, (100, 30), &[]);
    for (key, title) in [
        ("2", "all jobs"),
        ("3", "dead jobs by cause"),
        ("4", "P95 WAIT"),
        ("5", "no worker runs"),
        ("6", "no schedule yet"),
        ("7", "no batch yet"),
        ("8", "worker started"),
        ("1", "newest failures"),
        ("\t", "all jobs"),
        ("\u{1b}[Z", "newest failures"),
        ("?", "mark a job"),
        ("q", "newest failures"),
        ("2", "all jobs"),
        ("s", "oldest"),
        ("sssss", "most urgent first"),
    ] {
        top.press(key, title);
    }
    // The rows of before stay until those of the filter have been read, and keys act on the row that is shown. Those of
    // another order may begin with the same job; only those of the filter are one.
    top.terminal.type_in("/state:dead\r");
    top.wait_until(|screen| is_chosen(screen, "printer") && screen.contains("1 job ·"));
    for (key, title) in [
        ("l", "printer · log · attempt 1 of 1"),
        ("t", "exit code 3"),
        ("o", "stdout"),
        ("o", "stderr"),
        ("o", "hello"),
        ("/oops\r", "find oops"),
        ("\u{1b}", "oops"),
        ("wf", "log · attempt 1 of 1"),
        ("d", "no attempt before"),
        ("d", "hello"),
        ("\u{1b}", "state:dead"),
        ("\r", "enqueued"),
        ("g", "depends on"),
        ("\u{1b}", "enqueued"),
        ("l", "printer · log"),
        ("\u{1b}", "enqueued"),
        ("w", "is dead"),
        ("\u{1b}", "enqueued"),
        ("\u{1b}", "state:dead"),
        ("y", "copied printer"),
        ("Y", "copied queuectl list --state dead"),
        ("z", "UTC"),
        ("m", "mouse off"),
        (" ", "frozen"),
        (" ", "live"),
        (":list --state completed\r", "queuectl list --state completed"),
        ("\u{1b}", "state:dead"),
        ("/\u{15}sta\tde\t\r", "state:dead"),
    ] {
        top.press(key, title);
    }
    top.quit();
}

#[test]
fn output_that_came_while_the_screen_was_frozen_is_shown_afterwards() {
    let home = Home::with_jobs(&["a"]);
    let worker = TestWorker::new(&home, "w1");
    let lease = worker.claim_job("a");
    let mut capture = worker.capture(&home, &lease, 1 << 20);
    capture.take(Stream::Out, b"before-1\n");
    capture.spill();
    let [mut top, mut other] = [(); 2].map(|()| Top::start(&home, (120, 40), &[]));
    top.press("2", "before-1");
    other.press("2", "before-1");
    top.press(" ", "frozen");
    capture.take(Stream::Out, b"after-2\n");
    worker.settle_captured(lease, Outcome::Success, capture.finish());
    other.wait("after-2");
    // Both read several times a second.
    for _ in 0..2 {
        let clock = other.screen().lines().next().map(str::to_owned);
        other.wait_until(|screen| screen.lines().next() != clock.as_deref());
    }
    top.press("z", "UTC");
    assert!(!top.screen().contains("after-2"), "{}", top.screen());
    top.press(" ", "after-2");
    top.wait("completed");
    for top in [top, other] {
        top.quit();
    }
}

#[test]
fn a_job_is_retried_after_a_yes_only() {
    let home = with_output("exit 3");
    let mut top = Top::start(&home, (100, 30), &[]);
    top.moves("/state:dead\r", "printer");
    top.press("r", "retry job printer? y/n");
    top.press("n", "nothing was changed");
    assert_eq!(home.run(["show", "printer", "--json"]).ok().json()["state"], "dead");
    top.press("r", "y/n");
    top.press("y", "queuectl retry printer");
    assert_eq!(home.run(["show", "printer", "--json"]).ok().json()["state"], "pending");
    top.moves("/\u{15}state:pending\r", "wait");
    top.press("x", "1 marked");
    top.press("c", "y/n");
    top.press("y", "cancelled");
    top.quit();
}

#[test]
fn all_that_match_need_their_number() {
    let home = Home::with_jobs(&["a", "b", "c"]);
    let mut top = Top::start(&home, (100, 30), &[]);
    top.press("/state:pending\r", "3 jobs");
    top.press("C", "type 3 and Enter");
    top.press("2\r", "is not 3");
    assert_eq!(home.run(["show", "a", "--json"]).ok().json()["state"], "pending");
    top.press("C", "type 3 and Enter");
    top.press("3\r", "queuectl cancel --state pending");
    for id in ["a", "b", "c"] {
        home.wait_for(id, "cancelled");
    }
    top.press("/\u{15}state:cancelled\r", "3 jobs");
    top.press("*", "all marked");
    top.press("d", "type 3 and Enter");
    top.press("\u{1b}", "nothing was changed");
    top.quit();
}

#[test]
fn a_queue_is_paused_and_limited() {
    let home = Home::with_jobs(&["a"]);
    let mut top = Top::start(&home, (100, 30), &[]);
    top.moves("4", "default");
    top.press("p", "pause queue default? y/n");
    top.press("y", "queuectl queue pause default");
    top.wait("paused by");
    top.press("p", "resume queue default? y/n");
    top.press("y", "queuectl queue resume default");
    top.press("+", "concurrency of queue default: none to 1?");
    top.press("y", "1 at once");
    assert_eq!(home.run(["queue", "list", "--json"]).ok().json()[0]["concurrency"], 1);
    top.quit();
}

#[test]
fn read_only_changes_nothing() {
    let home = Home::with_jobs(&["a"]);
    let mut top = Top::start(&home, (100, 30), &["--read-only"]);
    top.press("2", "all jobs");
    for key in ["r", "c", "d", "R", "C", "D", "p", "+", "-", "e"] {
        top.press(key, "nothing can be changed");
        top.press("?", "the tabs");
        assert!(!top.screen().contains("retry, cancel"), "{}", top.screen());
        top.press("\u{1b}", "read-only");
    }
    top.press(":cancel a\r", "nothing can be changed");
    top.press(":list\r", "queuectl list");
    top.press("\u{1b}", "all jobs");
    assert_eq!(home.run(["show", "a", "--json"]).ok().json()["state"], "pending");
    top.quit();
}

#[test]
fn hostile_output_reaches_no_terminal() {
    let hostile = r"printf '\033]0;owned\007\033[2J\033[?1049l\033[31mred\033[0m \342\200\256evil\n'; exit 3";
    let home = with_output(hostile);
    let mut top = Top::start(&home, (120, 30), &[]);
    top.press("/state:dead\r", "printer");
    top.press("l", "\\u{1b}]0;owned");
    let output = top.terminal.screen();
    assert!(!output.contains("\u{1b}]0;owned"), "a title was set");
    assert!(!output.contains('\u{202e}'), "the direction of text was changed");
    assert!(!output.contains("\u{1b}[?1049l"), "the screen was left");
    top.quit();
}

#[test]
fn without_colours_there_are_only_attributes() {
    let home = with_output("exit 3");
    let mut top = Top::start(&home, (100, 30), &["--color", "never", "--ascii"]);
    top.press("2", "printer");
    let output = top.terminal.screen();
    for color in [";31m", ";32m", ";33m", ";90m", ";38;2", ";36m"] {
        assert!(!output.contains(color), "{color} in {output:?}");
    }
    for tab in ["1", "2", "3", "4", "5", "6", "7", "8", "?"] {
        top.terminal.type_in(tab);
        top.wait_until(str::is_ascii);
    }
    top.press("\u{1b}", "events");
    top.quit();
}

#[test]
fn a_signal_and_a_panic_leave_the_terminal_as_it_was() {
    let home = Home::with_jobs(&["a"]);
    let before = LocalModes::ICANON | LocalModes::ECHO;
    let top = Top::start(&home, (80, 24), &[]);
    assert!(!top.terminal.modes().intersects(before), "keys arrive at once");
    top.terminal.signal(Signal::TERM);
    let mut terminal = top.terminal;
    terminal.wait_until(|output| output.contains(LEAVE));
    wait_for_modes(&terminal, before);
    assert_eq!(terminal.end().status.signal(), Some(Signal::TERM.as_raw()));

    let mut command = home.call(["top"]).interruptible().into_command();
    command.env("QUEUECTL_TOP_PANICS", "1");
    let mut terminal = Terminal::with_echo(command, 80, 24);
    terminal.wait_until(|output| output.contains("the test asked for it"));
    let at = terminal.screen().find(LEAVE).expect("the screen was left");
    assert!(
        at < terminal.screen().find("the test asked for it").expect("a message"),
        "the message is readable"
    );
    wait_for_modes(&terminal, before);
    assert_eq!(terminal.end().code, Some(101));
}

#[track_caller]
fn wait_for_modes(terminal: &Terminal, modes: LocalModes) {
    let began = Instant::now();
    while !terminal.modes().contains(modes) {
        assert!(began.elapsed() < Duration::from_secs(10), "the modes are {:?}", terminal.modes());
        std::thread::yield_now();
    }
}

#[test]
fn a_stopped_top_gives_the_terminal_back_and_continues() {
    let home = Home::with_jobs(&["a"]);
    let mut top = Top::start(&home, (80, 24), &[]);
    top.terminal.signal(Signal::TSTP);
    top.terminal.wait_until_stopped();
    assert!(top.terminal.modes().contains(LocalModes::ICANON | LocalModes::ECHO));
    top.from = top.terminal.screen().len();
    top.terminal.signal(Signal::CONT);
    top.press("2", "all jobs");
    top.quit();
}

#[test]
fn a_job_that_ends_changes_on_the_screen() {
    let home = Home::with_jobs(&["a"]);
    let worker = TestWorker::new(&home, "w1");
    let lease = worker.claim_job("a");
    let mut top = Top::start(&home, (100, 30), &[]);
    top.press("2", "for ");
    top.press("\r", "runs for");
    worker.settle(lease, Outcome::Success, None);
    top.wait("completed");
    top.quit();
}

#[test]
fn without_a_terminal_it_says_so() {
    let home = Home::with_jobs(&["a"]);
    home.run(["top"]).fails(2).says("top needs a terminal");
    home.run(["top", "--json"]).fails(2);
}
