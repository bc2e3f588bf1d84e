//! FAULTS 35: a crash at each seam of bringing a database up to date.

use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use rustix::process::Signal;
use store::sqlite::SCHEMA_VERSION;

use super::Home;
use super::migration::{assert_whole, first_database, list, list_by_newer, schema, version};
use crate::cli::harness::MADE_UP_VERSION;

/// Runs the program, which dies at this fail-point.
fn die_at(home: &Home, mut program: Command, place: &str) {
    let mark = home.folder.path().join("died");
    let armed = format!("{place}={}", mark.display());
    let died = program.env("QUEUECTL_FAILPOINT", armed).output().expect("it starts");
    assert_eq!(died.status.signal(), Some(Signal::KILL.as_raw()), "{place}: {died:?}");
    std::fs::remove_file(mark).expect("it was made");
}

/// Each with whether it is done by then.
const PLACES: [(&str, bool); 4] = [
    ("migrate.before_begin", false),
    ("migrate.before_commit", false),
    ("migrate.after_commit", true),
    ("migrate.before_sync", true),
];

#[test]
fn fault_35_a_migration_that_is_killed_is_done_or_rolled_back() {
    for (place, is_done) in PLACES {
        let home = first_database();
        die_at(&home, list_by_newer(&home), place);
        assert_eq!(version(&home), if is_done { MADE_UP_VERSION } else { SCHEMA_VERSION }, "{place}");
        assert_whole(&home);
    }
}

#[test]
fn fault_35_the_making_of_a_queue_that_is_killed_is_done_or_rolled_back() {
    for (place, is_done) in PLACES {
        let home = Home::new();
        die_at(&home, list(&home), place);
        // Twice: the next may die there too, unless it is done by then.
        let second = list(&home).env("QUEUECTL_FAILPOINT", place).output().expect("it starts");
        assert_eq!(second.status.success(), is_done, "{place}: {second:?}");
        let third = list(&home).output().expect("it starts");
        assert!(third.status.success() && third.stdout == b"[]\n", "{place}: {third:?}");
        assert_eq!(schema(&home), schema(&Home::with_queue()), "{place}");
    }
}
