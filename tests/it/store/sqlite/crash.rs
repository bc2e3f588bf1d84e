//! FAULTS 26: a process that dies around a commit of a worker's verb leaves all of it or nothing.
//!
//! The one that dies is this test program, started again for one test of its own.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;

use queuectl::domain::life::StateName;
use queuectl::domain::name::WorkerId;
use queuectl::domain::outcome::Outcome;
use rustix::process::Signal;

use super::{Home, value};
use crate::store::fixture::Fixture;

/// Says to the one that dies where the queue is and what to do.
const HOME: &str = "TEST_CRASH_HOME";
const VERB: &str = "TEST_CRASH_VERB";

fn worker() -> WorkerId {
    "w".parse().expect("a worker id")
}

/// Does nothing but where [`die_at`] starts it.
#[test]
fn the_one_that_dies() {
    let (Ok(home), Ok(verb)) = (std::env::var(HOME), std::env::var(VERB)) else {
        return;
    };
    let fixture = Fixture::sqlite_in(Path::new(&home));
    match verb.as_str() {
        "register" => drop(fixture.worker("new")),
        "exchange" => drop(fixture.lease(&worker())),
        "extend" => drop(fixture.store.extend(&worker(), &[])),
        "reap" => drop(fixture.reap(&worker())),
        other => panic!("nobody dies of {other}"),
    }
}

fn die_at(home: &Home, verb: &str, moment: &str) {
    let mark = home.folder.path().join(format!("{verb}.{moment}"));
    let died = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "store::sqlite::crash::the_one_that_dies"])
        .env(HOME, home.folder.path())
        .env(VERB, verb)
        .env("QUEUECTL_FAILPOINT", format!("{verb}.{moment}={}", mark.display()))
        .output()
        .expect("it starts");
    assert_eq!(died.status.signal(), Some(Signal::KILL.as_raw()), "{verb}.{moment}: {died:?}");
    assert!(mark.exists());
}

/// A queue with a worker and one job, which it holds already if the verb is about leases that it has.
fn queue_for(verb: &str) -> Home {
    let home = Home::new();
    let fixture = home.fixture();
    fixture.enqueue("a");
    let worker = fixture.worker("w");
    if ["extend", "reap"].contains(&verb) {
        fixture.lease(&worker);
    }
    home
}

#[test]
fn nothing_is_half_done() {
    for (verb, before, after) in [
        ("register", ("pending", 1), ("pending", 2)),
        ("exchange", ("pending", 1), ("processing", 1)),
        ("extend", ("processing", 1), ("pending", 1)),
        ("reap", ("processing", 1), ("pending", 0)),
    ] {
        for (moment, expected) in [("before_commit", before), ("after_commit", after)] {
            let home = queue_for(verb);
            die_at(&home, verb, moment);
            let fixture = home.fixture();
            fixture.recount();
            let found = (fixture.state("a").name(), fixture.workers().len());
            assert_eq!(found, expected, "{verb}.{moment}");
            drop(fixture);
            assert_eq!(value(&home.connect(), "pragma integrity_check"), "ok");
        }
    }
}

#[test]
fn a_claim_that_nobody_heard_of_is_given_back_by_the_next_heartbeat() {
    let home = queue_for("exchange");
    die_at(&home, "exchange", "after_commit");
    let fixture = home.fixture();
    fixture.store.extend(&worker(), &[]).expect("extend");
    assert_eq!(fixture.outcomes("a"), [Outcome::Released]);
    assert_eq!(fixture.claim(&worker(), 1), ["a"]);
    assert_eq!(fixture.state("a"), StateName::Processing);
}
