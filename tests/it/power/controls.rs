//! The check can fail: with less durability the same cuts break promises.

use std::collections::BTreeSet;

use super::checker::{Expected, check};
use super::recording::Recording;
use super::trial::{Plan, cut};
use super::workload::enqueue_only;
use crate::cli::harness::Home;

const CUTS: usize = 40;

#[test]
fn fault_28_commits_that_wait_for_no_disk_turn_the_check_red() {
    let recording = Recording::with(&[("QUEUECTL_WITHOUT", "durability")], enqueue_only);
    let found = cut(&recording, Plan::new(1, CUTS));
    assert!(found.iter().any(|found| !found.faults.broken.is_empty()), "no cut has broken a promise");
}

#[test]
fn fault_28_normal_durability_loses_the_last_moments_and_corrupts_nothing() {
    let recording = Recording::of(|recording| {
        recording.run("", ["config", "set", "durability", "normal"]);
        enqueue_only(recording);
    });
    let found = cut(&recording, Plan::new(2, 2 * CUTS));
    for found in &found {
        assert_eq!(found.faults.unsound, [""; 0], "{}", found.cut);
    }
    assert!(!found.is_empty(), "no cut has lost anything: the setting changes nothing");
}

#[test]
fn fault_28_counters_that_part_from_the_jobs_turn_the_check_red() {
    let home = Home::with_jobs(&["a"]);
    let asked = BTreeSet::from(["a".to_owned()]);
    let database = rusqlite::Connection::open(home.database()).expect("the database opens");
    database.execute_batch("update counters set count = count + 1").expect("a wrong number");
    drop(database);
    let faults = check(&home.path(), &Expected { promises: &[], asked: &asked, drain: false });
    assert!(faults.unsound.iter().any(|said| said.starts_with("it counts ")), "{faults:?}");
}
