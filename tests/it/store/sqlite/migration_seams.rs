//! Fault 35: a crash at each fail-point of a migration.

use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use rustix::process::Signal;
use store::sqlite::SCHEMA_VERSION;

use super::Home;
use super::migration::{assert_intact, create, first_database, list_by_newer, schema, version};
use crate::cli::harness::MADE_UP_VERSION;

/// Runs the program, which crashes at this fail-point.
fn crash_at(home: &Home, mut program: Command, fail_point: &str) {
    let marker = home.folder.path().join("died");
    let armed = format!("{fail_point}={}", marker.display());
    let crashed = program.env("QUEUECTL_FAILPOINT", armed).output().expect("the program starts");
    assert_eq!(crashed.status.signal(), Some(Signal::KILL.as_raw()), "{fail_point}: {crashed:?}");
    std::fs::remove_file(marker).expect("the fail-point was reached");
}

/// Each fail-point, and whether the migration is committed by then.
const FAIL_POINTS: [(&str, bool); 4] = [
    ("migrate.before_begin", false),
    ("migrate.before_commit", false),
    ("migrate.after_commit", true),
    ("migrate.before_sync", true),
];

#[test]
fn fault_35_a_killed_migration_is_completed_or_rolled_back() {
    for (fail_point, is_done) in FAIL_POINTS {
        let home = first_database();
        crash_at(&home, list_by_newer(&home), fail_point);
        assert_eq!(version(&home), if is_done { MADE_UP_VERSION } else { SCHEMA_VERSION }, "{fail_point}");
        assert_intact(&home);
    }
}

#[test]
fn fault_35_a_killed_creation_of_a_queue_is_completed_or_rolled_back() {
    for (fail_point, is_done) in FAIL_POINTS {
        let home = Home::new();
        crash_at(&home, create(&home), fail_point);
        // Crashes a second time, unless the migration is already committed.
        let second =
            create(&home).env("QUEUECTL_FAILPOINT", fail_point).output().expect("the program starts");
        assert_eq!(second.status.success(), is_done, "{fail_point}: {second:?}");
        let third = create(&home).output().expect("the program starts");
        assert!(third.status.success() && third.stdout == b"[]\n", "{fail_point}: {third:?}");
        assert_eq!(schema(&home), schema(&Home::with_queue()), "{fail_point}");
    }
}
