//! `status --watch`: redraws the screen of a terminal; in a pipe, prints one report after the other.

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;

use domain::job::outcome::Outcome;
use rustix::process::Signal;
use rustix::termios::LocalModes;
use serde_json::{Value, json};

use crate::cli::harness::Home;
use crate::cli::harness::background::{Background, end_of};
use crate::cli::harness::pseudo_terminal::Terminal;
use crate::cli::harness::test_worker::TestWorker;

const ENTER: &str = "\u{1b}[?1049h\u{1b}[?25l";
const LEAVE: &str = "\u{1b}[?25h\u{1b}[?1049l";
const TO_THE_TOP: &str = "\u{1b}[H";

const WATCH: [&str; 4] = ["status", "--watch", "--interval", "100ms"];

fn watch(home: &Home, more: &[&str]) -> Background {
    Background::start(home.call(WATCH.iter().chain(more)))
}

fn watch_on_terminal(home: &Home, more: &[&str]) -> Terminal {
    let args = WATCH.iter().chain(&["--color", "never"]).chain(more);
    Terminal::start(home.call(args).interruptible().into_command(), 100, 30)
}

/// The terminal that a shell leaves to a program.
fn watch_with_echo(home: &Home) -> Terminal {
    let args = WATCH.iter().chain(&["--color", "never"]);
    Terminal::with_echo(home.call(args).interruptible().into_command(), 100, 30)
}

/// Jobs whose backoff is longer than any test takes.
fn with_slow_retries(ids: &[&str]) -> Home {
    let home = Home::with_jobs(ids);
    for key in ["retry-delay", "max-backoff"] {
        home.run(["config", "set", key, "1h"]).ok();
    }
    home
}

/// The lines of the last complete frame.
fn frame(screen: &str) -> Vec<&str> {
    let frames: Vec<&str> = screen.split(TO_THE_TOP).collect();
    let last = frames.iter().rev().nth(1).copied().unwrap_or_default();
    last.lines().map(|line| line.trim_end_matches('\r').trim_start_matches("\u{1b}[K")).collect()
}

fn has_line(screen: &str, begins: &str) -> bool {
    frame(screen).iter().any(|line| line.starts_with(begins))
}

/// Reads reports until one satisfies the condition.
fn update_until(watching: &Background, wanted: impl Fn(&Value) -> bool) -> Value {
    loop {
        let update: Value = serde_json::from_str(&watching.prints()).expect("an update is one line of JSON");
        if wanted(&update) {
            return update;
        }
    }
}

#[test]
fn in_a_pipe_json_is_one_line_per_refresh() {
    let home = with_slow_retries(&["a", "b"]);
    let watching = watch(&home, &["--json"]);
    let first: Value = serde_json::from_str(&watching.prints()).expect("JSON");
    assert_eq!((&first["jobs"]["pending"], &first["throughput"]), (&json!(2), &json!(null)));
    assert_eq!(first["problems"][0]["problem"], "no_worker");
    assert!(
        first["at"].is_string() && first["queues"].is_array() && first["workers"] == json!([]),
        "{first}"
    );

    let worker = TestWorker::new(&home, "w1");
    let lease = worker.claim_job("a");
    let update = update_until(&watching, |update| update["jobs"]["processing"] == 1);
    assert_eq!((&update["running"][0]["id"], &update["workers"][0]["running"]), (&json!("a"), &json!(1)));

    worker.settle(lease, Outcome::Success, None);
    let went = |update: &Value, what: &str| {
        update["throughput"]["now"][what].as_f64().is_some_and(|rate| rate > 0.0)
    };
    let update = update_until(&watching, |update| went(update, "completed_per_second"));
    assert!(update["throughput"]["minute"]["completed_per_second"].as_f64() > Some(0.0), "{update}");
    assert_eq!(update["running"], json!([]));

    let lease = worker.claim_job("b");
    worker.settle(lease, Outcome::Failure { exit_code: 2 }, Some("exit code 2"));
    let update = update_until(&watching, |update| went(update, "failed_per_second"));
    assert_eq!(update["next_retries"][0]["id"], "b");
    watching.signal(Signal::INT);
    let (status, rest) = watching.end();
    assert_eq!(status.code(), Some(0));
    assert!(rest.iter().all(|line| line.starts_with("{\"at\":")), "nothing but updates: {rest:?}");
}

#[test]
fn in_a_pipe_frames_follow_each_other() {
    let home = Home::with_jobs(&["a"]);
    let watching = watch(&home, &[]);
    for _ in 0..2 {
        let head = watching.prints();
        assert!(head.starts_with("queuectl status  20") && head.contains(", every 100ms"), "{head}");
        let lines: Vec<String> = (0..8).map(|_| watching.prints()).collect();
        assert_eq!(
            lines[..6],
            [
                "",
                "! 1 job waits, but no worker is running; start one with `queuectl worker start`",
                "",
                "QUEUE    PENDING  PROCESSING  COMPLETED  FAILED  DEAD  CANCELLED",
                "default        1           0          0       0     0          0",
                "",
            ]
        );
        assert!(lines[6].starts_with("THROUGHPUT") && lines[7].starts_with("completed"), "{lines:?}");
        assert!(watching.prints().starts_with("failed"));
        assert_eq!(watching.prints(), "", "a blank line between two frames");
    }
    watching.signal(Signal::TERM);
    assert_eq!(watching.end().0.signal(), Some(Signal::TERM.as_raw()));
}

#[test]
fn fault_13_watching_ends_when_the_reader_is_gone() {
    let home = Home::with_jobs(&["a"]);
    let mut child = home.call(["status", "--watch", "--json", "--interval", "1h"]).spawn();
    let mut line = String::new();
    let mut reader = BufReader::new(child.stdout.take().expect("stdout is a pipe"));
    reader.read_line(&mut line).expect("a line");
    drop(reader);
    assert_eq!(end_of(child).code(), Some(0), "at once, not at the next update");
}

#[test]
fn a_terminal_is_redrawn_and_restored() {
    let home = with_slow_retries(&["a", "b"]);
    let mut terminal = watch_on_terminal(&home, &[]);
    terminal.wait_until(|screen| has_line(screen, "! 2 jobs wait, but no worker is running"));
    let worker = TestWorker::new(&home, "w1");
    terminal.wait_until(|screen| has_line(screen, "w1      idle       0/1"));
    assert!(!has_line(&terminal.screen(), "!"), "nothing is wrong any more: {:?}", frame(&terminal.screen()));

    let lease = worker.claim_job("a");
    terminal.wait_until(|screen| {
        has_line(screen, "a        w1") && has_line(screen, "default        1           1")
    });
    worker.settle(lease, Outcome::Failure { exit_code: 2 }, Some("exit code 2: no luck"));
    terminal.wait_until(|screen| has_line(screen, "NEXT RETRY") && !has_line(screen, "RUNNING "));
    assert!(frame(&terminal.screen()).iter().any(|line| line.ends_with("1/4  exit code 2: no luck")));

    terminal.signal(Signal::INT);
    let seen = terminal.end();
    assert_eq!(seen.code, Some(0));
    assert!(seen.screen.starts_with(ENTER) && seen.screen.ends_with(LEAVE), "{:?}", seen.screen);
    assert_eq!(seen.screen.matches(ENTER).count(), 1);
}

#[test]
fn q_ends_watching_and_keys_are_not_echoed() {
    let home = Home::with_queue();
    let mut terminal = watch_with_echo(&home);
    terminal.wait_until(|screen| screen.contains("every 100ms, q quits") && has_line(screen, "THROUGHPUT"));
    assert!(!terminal.modes().contains(LocalModes::ECHO));
    terminal.type_in("xyz");
    let before = terminal.screen().matches(TO_THE_TOP).count();
    terminal.wait_until(|screen| screen.matches(TO_THE_TOP).count() > before + 2);
    assert!(!terminal.screen().contains("xyz"));
    terminal.type_in("q");
    terminal.wait_until(|screen| screen.ends_with(LEAVE));
    assert!(terminal.modes().contains(LocalModes::ECHO | LocalModes::ICANON), "the modes are restored");
    assert_eq!(terminal.end().code, Some(0));
}

#[test]
fn a_signal_restores_the_modes_of_the_terminal() {
    let home = Home::with_queue();
    for signal in [Signal::INT, Signal::TERM, Signal::TSTP] {
        let mut terminal = watch_with_echo(&home);
        terminal.wait_until(|screen| has_line(screen, "THROUGHPUT"));
        terminal.signal(signal);
        terminal.wait_until(|screen| screen.ends_with(LEAVE));
        assert!(terminal.modes().contains(LocalModes::ECHO | LocalModes::ICANON), "{signal:?}");
    }
}

#[test]
fn a_frame_fits_the_window_after_a_resize() {
    let home = Home::new();
    for number in 0..40 {
        home.run(["enqueue", "-q", "--queue", &format!("q{number:02}"), "--", "true"]).ok();
    }
    let mut terminal = watch_on_terminal(&home, &[]);
    terminal.wait_until(|screen| has_line(screen, "all queues"));
    assert_eq!(frame(&terminal.screen()).len(), 30);
    terminal.resize(40, 12);
    let fits = |screen: &str| {
        frame(screen).len() <= 12 && frame(screen).iter().all(|line| line.chars().count() <= 40)
    };
    terminal.wait_until(|screen| fits(screen) && has_line(screen, "! 40 jobs wait"));
    terminal.resize(120, 60);
    terminal.wait_until(|screen| has_line(screen, "q39 "));
    assert!(
        !frame(&terminal.screen()).iter().any(|line| line.contains('…')),
        "{:?}",
        frame(&terminal.screen())
    );
}

#[test]
fn ctrl_z_restores_the_terminal_until_resumed() {
    let home = Home::with_queue();
    let mut terminal = watch_on_terminal(&home, &[]);
    terminal.wait_until(|screen| has_line(screen, "THROUGHPUT"));
    terminal.signal(Signal::TSTP);
    terminal.wait_until_stopped();
    terminal.wait_until(|screen| screen.ends_with(LEAVE));
    terminal.signal(Signal::CONT);
    terminal.wait_until(|screen| screen.matches(ENTER).count() == 2 && has_line(screen, "THROUGHPUT"));
    terminal.signal(Signal::TERM);
    let seen = terminal.end();
    assert_eq!(seen.status.signal(), Some(Signal::TERM.as_raw()));
    assert!(seen.screen.ends_with(LEAVE), "{:?}", seen.screen);
}

#[test]
fn colours_can_be_disabled() {
    let home = Home::with_jobs(&["a"]);
    let yellow = "\u{1b}[33m! 1 job waits";
    let call = home.call(WATCH).interruptible();
    let mut terminal = Terminal::start(call.into_command(), 100, 30);
    terminal.wait_until(|screen| screen.contains(yellow));
    let mut terminal = watch_on_terminal(&home, &[]);
    terminal.wait_until(|screen| screen.contains("\u{1b}[K! 1 job waits"));
}

#[test]
fn on_a_terminal_json_is_one_line_per_refresh() {
    let home = Home::with_queue();
    let mut terminal = watch_on_terminal(&home, &["--json"]);
    terminal.wait_until(|screen| screen.lines().count() >= 2);
    assert!(terminal.screen().starts_with("{\"at\":") && !terminal.screen().contains('\u{1b}'));
}

#[test]
fn a_store_failure_is_reported_after_the_screen_is_restored() {
    let home = Home::with_jobs(&["a"]);
    let mut terminal = watch_on_terminal(&home, &[]);
    terminal.wait_until(|screen| has_line(screen, "default"));
    let database = rusqlite::Connection::open(home.database()).expect("the database opens");
    database.execute_batch("update counters set state = 'broken'").expect("it is broken");
    let seen = terminal.end();
    let (_, after) = seen.screen.rsplit_once(LEAVE).expect("the screen was restored");
    let output = "error: a stored state is malformed: broken\nhint: `queuectl doctor` shows more\n";
    assert_eq!((after, seen.code), (output, Some(7)));
}

#[test]
fn invalid_arguments_are_refused() {
    let home = Home::new();
    for args in [
        ["status", "--watch", "-q"].as_slice(),
        &["status", "--watch", "--interval", "99ms"],
        &["status", "--watch", "--interval", "0"],
        &["status", "--watch", "--interval", "-1"],
        &["status", "--watch", "--interval", "often"],
        &["status", "--interval", "1s"],
    ] {
        home.run(args).fails(2).prints("");
    }
}
