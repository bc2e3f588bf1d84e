//! A server whose disk is full. Its write-ahead log is on another disk: without space for that the server itself ends.

use std::fs;

use super::small_disk::SmallDisk;
use super::working_machine::WorkingMachine;
use crate::cli::harness::working_home::wait_until;

#[test]
fn fault_37_a_full_disk_of_the_server_refuses_jobs_and_keeps_outcomes_waiting() {
    let disk = SmallDisk::with_database();
    let machine = WorkingMachine::new(&disk.cluster.socket_url("keeper"));
    machine.start_worker();
    let folder = machine.home.folder().display().to_string();
    // Too long for the free space of pages that exist.
    let held =
        "until [ -e go ]; do sleep 0.02; done; head -c 20000 /dev/urandom | base64 -w 0; echo done > ended";
    machine.run(["enqueue", "-q", "--id", "held", "--cwd", &folder, "-c", held]).ok();
    machine.wait_for_state("held", "processing");

    disk.fill();
    let random: String = (0..60_000).map(|_| fastrand::alphanumeric()).collect();
    let long = format!(": {random}");
    let refused = machine.run(["enqueue", "-q", "--id", "refused", "-c", &long]).fails(5);
    let refused =
        refused.says("the disk of the PostgreSQL server is full").says("free some space on the server");
    assert_eq!(refused.stderr.lines().count(), 2, "an error and a hint: {refused}");
    machine.run(["status"]).ok();
    machine.go();
    wait_until("the command has ended", || machine.home.folder().join("ended").exists());
    let journal = || fs::read_to_string(machine.home.path().join("worker.log")).unwrap_or_default();
    wait_until("the worker reports the full disk", || {
        journal().contains("the disk of the PostgreSQL server is full")
    });
    assert_eq!(machine.show("held")["state"], "processing", "its outcome could not be recorded");

    disk.empty();
    machine.run(["wait", "-q", "held"]).ok();
    assert_eq!(machine.show("held")["history"].as_array().map(Vec::len), Some(1), "it ran once");
    assert_eq!(machine.run(["logs", "held"]).ok().stdout.len(), 26_668);
    machine.run(["show", "refused"]).fails(3);
    machine.run(["enqueue", "-q", "--id", "refused", "-c", &long]).ok();
    machine.run(["wait", "-q", "refused"]).ok();
}
