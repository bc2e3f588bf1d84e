//! The check can fail: with less durability the same cuts break promises.

use super::recording::Recording;
use super::trial::{Plan, cut};
use super::workload::enqueue_only;

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
