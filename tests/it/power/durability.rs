//! FAULTS 28: after a power cut, whatever of the unsynced changes reached the disk, every promise holds.

use std::collections::HashMap;

use super::promise::Promises;
use super::record::{Change, Record};
use super::recording::Recording;
use super::trial::{Plan, assert_harmless, assert_same, restore_all};
use super::workload::{busy_queue, first_use_by_many};

#[test]
fn fault_28_nothing_acknowledged_is_lost_by_a_power_cut() {
    let recording = Recording::of(busy_queue);
    let records = recording.records();
    assert_has_checkpoints(&records);
    let kinds = Promises::of(&records, recording.old_jobs).kinds();
    assert!(
        kinds.iter().eq(&["cancelled", "completed", "exists", "retried", "set"]),
        "some are missing: {kinds:?}"
    );
    let test = "fault_28_nothing_acknowledged_is_lost_by_a_power_cut";
    assert_harmless(recording, Plan::new(28, 240), test);
}

#[test]
fn fault_28_everything_that_is_written_is_recorded() {
    let recording = Recording::of(busy_queue);
    let again = tempfile::tempdir().expect("a temporary folder");
    restore_all(&recording, &recording.records(), again.path());
    assert_same(&recording.disk(), again.path());
}

/// All of them make the home, the database and its schema, and only one of them is the first.
#[test]
fn fault_28_the_first_use_of_a_home_by_many_survives_a_power_cut() {
    let recording = Recording::of(first_use_by_many);
    assert_harmless(
        recording,
        Plan::new(30, 60),
        "fault_28_the_first_use_of_a_home_by_many_survives_a_power_cut",
    );
}

/// A process dies between making something and syncing its name; the next one finds it made, and promises.
#[test]
fn fault_28_what_a_killed_process_did_not_sync_is_synced_by_the_next() {
    for (number, point) in
        ["folder.made=MARK", "folder.made=+MARK", "migrate.after_commit"].iter().enumerate()
    {
        let recording = Recording::of(|recording| {
            recording.die_at(point, ["enqueue", "--id", "nobody-promised", "--", "true"]);
            recording.enqueue("promised", "true");
        });
        let test = "fault_28_what_a_killed_process_did_not_sync_is_synced_by_the_next";
        assert_harmless(recording, Plan::new(31 + number as u64, 20), test);
    }
}

/// A process dies between writing a job and syncing it; the next one finds the job, and promises that it exists.
#[test]
fn fault_28_a_job_that_was_found_is_as_safe_as_one_that_was_enqueued() {
    let enqueue = ["enqueue", "--id", "twice", "--if-absent", "--no-env-capture", "--", "true"];
    let recording = unsynced(&enqueue, |recording| recording.run("enqueue", enqueue));
    let test = "fault_28_a_job_that_was_found_is_as_safe_as_one_that_was_enqueued";
    assert_harmless(recording, Plan::new(34, 40), test);
}

/// Whoever was not told whether a job was stored asks again with the same id, and takes the conflict for an answer.
#[test]
fn fault_28_a_job_that_is_in_the_way_is_as_safe_as_one_that_was_enqueued() {
    let enqueue = ["enqueue", "--id", "twice", "--no-env-capture", "--", "true"];
    let recording = unsynced(&enqueue, |recording| recording.conflict("exists twice", enqueue));
    let test = "fault_28_a_job_that_is_in_the_way_is_as_safe_as_one_that_was_enqueued";
    assert_harmless(recording, Plan::new(36, 40), test);
}

/// The same where the conflict is found in a file that is checked before anything is stored.
#[test]
fn fault_28_a_job_that_is_in_the_way_of_a_file_is_as_safe_as_one_that_was_enqueued() {
    let lines = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(lines.path(), "{\"id\":\"twice\",\"command\":\"true\"}\n").expect("a line");
    let path = lines.path().to_str().expect("names here are text");
    let enqueue = ["enqueue", "--no-env-capture", "--file", path];
    let recording = unsynced(&enqueue, |recording| recording.conflict("exists twice", enqueue));
    let test = "fault_28_a_job_that_is_in_the_way_of_a_file_is_as_safe_as_one_that_was_enqueued";
    assert_harmless(recording, Plan::new(37, 40), test);
}

/// What comes after an enqueue that died before its sync. It has no environment, which would be written anew where it
/// differs: so there is nothing to commit.
fn unsynced(enqueue: &[&str], then: impl FnOnce(&Recording)) -> Recording {
    Recording::of(|recording| {
        recording.enqueue("first", "true");
        // This one folds in the log and begins it anew, so that the next has nothing to sync but its own commit.
        recording.enqueue("second", "true");
        recording.die_before_sync("queue.db-wal", enqueue);
        then(recording);
    })
}

/// The log was folded into the database, and begun anew.
fn assert_has_checkpoints(records: &[Record]) {
    let mut names: HashMap<u64, &str> = HashMap::new();
    let (mut pages, mut headers) = (0, 0);
    for record in records {
        if let Record::Create { inode, path, .. } = record {
            names.insert(*inode, path);
        } else if let Record::Change { inode, change: Change::Write { offset, .. } } = record {
            let name = names.get(inode).copied().unwrap_or_default();
            pages += usize::from(name.ends_with("queue.db") && *offset > 0);
            headers += usize::from(name.ends_with("-wal") && *offset == 0);
        }
    }
    assert!(pages > 0, "nothing was folded into the database");
    assert!(headers > 1, "the log was never begun anew");
}
