//! Negative controls: with less durability the same cuts break promises, and the checker reports it.

use std::collections::BTreeSet;

use super::checker::{Expectations, check};
use super::recording::Recording;
use super::trial::{Plan, cut};
use super::workload::enqueue_only;
use crate::cli::harness::Home;

const CUTS: usize = 40;

#[test]
fn fault_28_commits_without_syncs_fail_the_check() {
    let recording = Recording::with(&[("QUEUECTL_WITHOUT", "durability")], enqueue_only);
    let found = cut(&recording, Plan::new(1, CUTS));
    assert!(found.iter().any(|found| !found.faults.broken.is_empty()), "no cut broke a promise");
}

#[test]
fn fault_28_normal_durability_loses_recent_changes_but_corrupts_nothing() {
    let recording = Recording::of(|recording| {
        recording.run("", ["config", "set", "durability", "normal"]);
        enqueue_only(recording);
    });
    let found = cut(&recording, Plan::new(2, 2 * CUTS));
    for found in &found {
        assert_eq!(found.faults.defects, [""; 0], "{}", found.cut);
    }
    assert!(!found.is_empty(), "no cut lost anything: the setting has no effect");
}

#[test]
fn fault_28_counters_that_disagree_with_the_jobs_fail_the_check() {
    let home = Home::with_jobs(&["a"]);
    let requested = BTreeSet::from(["a".to_owned()]);
    let database = rusqlite::Connection::open(home.database()).expect("the database opens");
    database.execute_batch("update counters set count = count + 1").expect("a wrong number");
    drop(database);
    let faults = check(&home.path(), &Expectations { promises: &[], requested: &requested, drain: false });
    assert!(faults.defects.iter().any(|said| said.starts_with("the counters are ")), "{faults:?}");
}
