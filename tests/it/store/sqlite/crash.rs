//! Fault 26: a crash around a commit leaves all of the transaction or nothing.
//!
//! The crashing process is this test program, started again for a single test.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;

use domain::job::life::StateName;
use domain::job::outcome::Outcome;
use domain::settings::SettingKey;
use domain::values::name::WorkerId;
use rustix::process::Signal;
use store::{JobFilter, Stop, StopScope};

use super::{Home, value};
use crate::store::fixture::{ACTOR, Fixture};

/// Environment variables that give the crashing process its queue and its verb.
const HOME: &str = "TEST_CRASH_HOME";
const VERB: &str = "TEST_CRASH_VERB";

fn worker() -> WorkerId {
    "w".parse().expect("a worker id")
}

/// Does nothing unless [`crash_at`] starts it.
#[test]
fn the_crashing_process() {
    let (Ok(home), Ok(verb)) = (std::env::var(HOME), std::env::var(VERB)) else {
        return;
    };
    let fixture = Fixture::sqlite_in(Path::new(&home));
    match verb.as_str() {
        "enqueue" => fixture.enqueue("b"),
        "cancel" => drop(fixture.cancel("a")),
        "pause" => drop(fixture.pause_job("a")),
        "resume" => drop(fixture.resume_job("a")),
        "resume_all" => fixture.store.resume_all(&worker()).expect("resume_all"),
        "retry" => drop(fixture.retry("a")),
        "remove" => drop(fixture.remove("a")),
        "register" => drop(fixture.worker("new")),
        "set_worker_state" => fixture.retire(&worker()),
        "stop" => drop(fixture.store.stop(&Stop { scope: StopScope::Everywhere, kill_at: None }, ACTOR)),
        "exchange" => drop(fixture.lease(&worker())),
        "extend" => drop(fixture.store.extend(&worker(), &[])),
        "reap" => drop(fixture.reap(&worker())),
        "set" => fixture.set(SettingKey::MaxRetries, "9"),
        "pause_queue" => fixture.pause("default"),
        "resume_queue" => fixture.resume("default"),
        "set_queue" => fixture.limit("default", Some(1), Some("1/m")),
        other => panic!("unknown verb {other}"),
    }
}

fn crash_at(home: &Home, verb: &str, point: &str) {
    let marker = home.folder.path().join(format!("{verb}.{point}"));
    let crashed = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "store::sqlite::crash::the_crashing_process"])
        .env(HOME, home.folder.path())
        .env(VERB, verb)
        .env("QUEUECTL_FAILPOINT", format!("{verb}.{point}={}", marker.display()))
        .output()
        .expect("the test program starts");
    assert_eq!(crashed.status.signal(), Some(Signal::KILL.as_raw()), "{verb}.{point}: {crashed:?}");
    assert!(marker.exists());
}

/// A queue with a worker and one job, prepared for the verb.
fn queue_for(verb: &str) -> Home {
    let home = Home::new();
    let fixture = home.fixture();
    fixture.enqueue("a");
    let worker = fixture.worker("w");
    match verb {
        "extend" | "reap" | "pause" => drop(fixture.lease(&worker)),
        "resume" | "resume_all" => {
            fixture.lease(&worker);
            fixture.pause_job("a");
        }
        "retry" => drop(fixture.cancel("a")),
        "resume_queue" => fixture.pause("default"),
        _ => {}
    }
    home
}

/// The content of the queue: jobs and their states, workers, whether they must stop, settings, paused and limited
/// queues.
fn summary(fixture: &Fixture) -> String {
    let mut words = fixture.list_by(&JobFilter::default(), 9);
    words.sort();
    for word in &mut words {
        let state = fixture.job(word).life.state;
        let paused = if state.paused_at().is_some() { " paused" } else { "" };
        *word = format!("{word}={}{paused}", state.name().name());
    }
    for worker in fixture.workers() {
        let suffix = if fixture.orders(&worker.id).drain { " stops" } else { "" };
        words.push(format!("{}{suffix}", worker.id));
    }
    let settings = fixture.store.settings().expect("settings");
    words.extend(settings.iter().map(|(key, value)| format!("{key}={value}")));
    for queue in fixture.store.queues().expect("queues") {
        let paused = queue.paused.map(|_| format!("{} is paused", queue.name));
        let limited = queue.concurrency.zip(queue.rate).map(|_| format!("{} is limited", queue.name));
        words.extend(paused.into_iter().chain(limited));
    }
    words.join(", ")
}

#[test]
fn fault_26_a_crash_around_any_commit_leaves_nothing_half_done() {
    for (verb, before, after) in [
        ("enqueue", "a=pending, w", "a=pending, b=pending, w"),
        ("cancel", "a=pending, w", "a=cancelled, w"),
        ("pause", "a=processing, w", "a=processing paused, w"),
        ("resume", "a=processing paused, w", "a=processing, w"),
        ("resume_all", "a=processing paused, w", "a=processing, w"),
        ("retry", "a=cancelled, w", "a=pending, w"),
        ("remove", "a=pending, w", "w"),
        ("register", "a=pending, w", "a=pending, w, new"),
        ("set_worker_state", "a=pending, w", "a=pending"),
        ("stop", "a=pending, w", "a=pending, w stops"),
        ("exchange", "a=pending, w", "a=processing, w"),
        ("extend", "a=processing, w", "a=pending, w"),
        ("reap", "a=processing, w", "a=pending"),
        ("set", "a=pending, w", "a=pending, w, max_retries=9"),
        ("pause_queue", "a=pending, w", "a=pending, w, default is paused"),
        ("resume_queue", "a=pending, w, default is paused", "a=pending, w"),
        ("set_queue", "a=pending, w", "a=pending, w, default is limited"),
    ] {
        for (point, expected) in [("before_commit", before), ("after_commit", after)] {
            let home = queue_for(verb);
            crash_at(&home, verb, point);
            let fixture = home.fixture();
            fixture.recount();
            assert_eq!(summary(&fixture), expected, "{verb}.{point}");
            drop(fixture);
            assert_eq!(value(&home.connect(), "pragma integrity_check"), "ok");
        }
    }
}

#[test]
fn fault_26_a_claim_unknown_to_its_worker_is_released_by_the_next_heartbeat() {
    let home = queue_for("exchange");
    crash_at(&home, "exchange", "after_commit");
    let fixture = home.fixture();
    fixture.store.extend(&worker(), &[]).expect("extend");
    assert_eq!(fixture.outcomes("a"), [Outcome::Released]);
    assert_eq!(fixture.claim(&worker(), 1), ["a"]);
    assert_eq!(fixture.state("a"), StateName::Processing);
}
