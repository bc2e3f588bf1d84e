//! FAULTS 28: after a power cut every promise holds, regardless of which unsynced changes reached the disk.

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
        "some kinds of promises are missing: {kinds:?}"
    );
    let test = "fault_28_nothing_acknowledged_is_lost_by_a_power_cut";
    assert_harmless(recording, Plan::new(28, 240), test);
}

#[test]
fn fault_28_every_write_is_recorded() {
    let recording = Recording::of(busy_queue);
    let again = tempfile::tempdir().expect("a temporary folder");
    restore_all(&recording, &recording.records(), again.path());
    assert_same(&recording.disk(), again.path());
}

/// All processes try to create the home, the database and its schema, but only one is the first.
#[test]
fn fault_28_the_concurrent_first_use_of_a_home_survives_a_power_cut() {
    let recording = Recording::of(first_use_by_many);
    assert_harmless(
        recording,
        Plan::new(30, 60),
        "fault_28_the_concurrent_first_use_of_a_home_survives_a_power_cut",
    );
}

/// A process dies between creating a file and syncing its name; the next one finds it and makes a promise.
#[test]
fn fault_28_changes_that_a_killed_process_did_not_sync_are_synced_by_the_next() {
    for (number, point) in
        ["folder.made=MARK", "folder.made=+MARK", "migrate.after_commit"].iter().enumerate()
    {
        let recording = Recording::of(|recording| {
            recording.die_at(point, ["enqueue", "--id", "not-promised", "--", "true"]);
            recording.enqueue("promised", "true");
        });
        let test = "fault_28_changes_that_a_killed_process_did_not_sync_are_synced_by_the_next";
        assert_harmless(recording, Plan::new(31 + number as u64, 20), test);
    }
}

/// A process dies between writing a job and syncing it; the next one finds the job and promises that it exists.
#[test]
fn fault_28_an_existing_job_is_synced_before_it_is_reported() {
    let enqueue = ["enqueue", "--id", "twice", "--if-absent", "--no-env-capture", "--", "true"];
    let recording = unsynced(&enqueue, |recording| recording.run("enqueue", enqueue));
    let test = "fault_28_an_existing_job_is_synced_before_it_is_reported";
    assert_harmless(recording, Plan::new(34, 40), test);
}

/// After an unknown outcome a caller enqueues again with the same id; the conflict tells it that the job is stored.
#[test]
fn fault_28_a_conflicting_job_is_synced_before_the_conflict_is_reported() {
    let enqueue = ["enqueue", "--id", "twice", "--no-env-capture", "--", "true"];
    let recording = unsynced(&enqueue, |recording| recording.conflict("exists twice", enqueue));
    let test = "fault_28_a_conflicting_job_is_synced_before_the_conflict_is_reported";
    assert_harmless(recording, Plan::new(36, 40), test);
}

/// The same with a file, which is checked before any job is stored.
#[test]
fn fault_28_a_job_that_conflicts_with_a_file_is_synced_before_the_conflict_is_reported() {
    let lines = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(lines.path(), "{\"id\":\"twice\",\"command\":\"true\"}\n").expect("a line");
    let path = lines.path().to_str().expect("names are UTF-8");
    let enqueue = ["enqueue", "--no-env-capture", "--file", path];
    let recording = unsynced(&enqueue, |recording| recording.conflict("exists twice", enqueue));
    let test = "fault_28_a_job_that_conflicts_with_a_file_is_synced_before_the_conflict_is_reported";
    assert_harmless(recording, Plan::new(37, 40), test);
}

/// Runs `then` after an enqueue that died before its sync. The job has no environment, because a different one would be
/// stored again; so the next enqueue has nothing to commit.
fn unsynced(enqueue: &[&str], then: impl FnOnce(&Recording)) -> Recording {
    Recording::of(|recording| {
        recording.enqueue("first", "true");
        // This one checkpoints and resets the log, so that the next has nothing to sync but its own commit.
        recording.enqueue("second", "true");
        recording.die_before_sync("queue.db-wal", enqueue);
        then(recording);
    })
}

/// Asserts that the write-ahead log was checkpointed and reset.
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
    assert!(pages > 0, "the log was never checkpointed");
    assert!(headers > 1, "the log was never reset");
}
