//! The simulated disk keeps what a real disk must keep and loses what a real disk may lose.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use super::cut::{Cut, Survivors};
use super::disk::Disk;
use super::record::{Change, Record, Target};

const INODE: u64 = 7;
/// Several sectors.
const LONG: usize = 4 * 512;

fn create(path: &str) -> Record {
    Record::Create { inode: INODE, path: path.to_owned(), is_pipe: false }
}

fn write(offset: usize, data: &[u8]) -> Record {
    Record::Change { inode: INODE, change: Change::Write { offset, data: data.to_vec() } }
}

fn begin(token: u64, target: Target) -> Record {
    Record::SyncBegin { token, target }
}

fn sync(target: Target) -> [Record; 2] {
    [begin(1, target), Record::SyncEnd { token: 1 }]
}

fn root() -> Target {
    Target::Folder(String::new())
}

/// The state after all records, with these survivors of the unsynced changes.
fn found(records: &[Record], files: Survivors, folders: Survivors, seed: u64) -> TempDir {
    let (nothing, found) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let mut disk = Disk::holding(nothing.path());
    disk.advance(records, records.len());
    disk.restore(records, &Cut { at: records.len(), files, folders, seed }, found.path());
    found
}

fn content(folder: &TempDir, name: &str) -> Option<Vec<u8>> {
    fs::read(folder.path().join(name)).ok()
}

#[test]
fn a_name_is_durable_after_its_folder_was_synced() {
    let file_synced = [&[create("a"), write(0, b"text")][..], &sync(Target::File(INODE))].concat();
    let after = found(&file_synced, Survivors::Everything, Survivors::Nothing, 0);
    assert_eq!(content(&after, "a"), None, "syncing a file does not make its name durable");
    let both_synced = [&file_synced[..], &sync(root())].concat();
    let after = found(&both_synced, Survivors::Nothing, Survivors::Nothing, 0);
    assert_eq!(content(&after, "a").as_deref(), Some(&b"text"[..]));
}

#[test]
fn content_is_durable_after_the_file_was_synced() {
    let name_synced = [&[create("a"), write(0, b"text")][..], &sync(root())].concat();
    let after = found(&name_synced, Survivors::Nothing, Survivors::Nothing, 0);
    assert_eq!(content(&after, "a").as_deref(), Some(&b""[..]));
    let after = found(&name_synced, Survivors::Everything, Survivors::Nothing, 0);
    assert_eq!(content(&after, "a").as_deref(), Some(&b"text"[..]));
}

#[test]
fn a_sync_covers_earlier_changes_and_takes_effect_when_it_ends() {
    let records = [
        create("a"),
        write(0, b"before"),
        begin(2, root()),
        Record::SyncEnd { token: 2 },
        begin(1, Target::File(INODE)),
        write(0, b"DURING"),
    ];
    let after = |records: &[Record]| content(&found(records, Survivors::Nothing, Survivors::Nothing, 0), "a");
    assert_eq!(after(&records).as_deref(), Some(&b""[..]), "the sync has not ended");
    let ended = [&records[..], &[Record::SyncEnd { token: 1 }]].concat();
    assert_eq!(after(&ended).as_deref(), Some(&b"before"[..]));
}

#[test]
fn changes_written_back_in_order_survive_as_a_prefix() {
    let records = [create("a"), write(0, b"one"), write(3, b"two"), write(6, b"three")];
    let after = found(&records, Survivors::Until(3), Survivors::Everything, 0);
    assert_eq!(content(&after, "a").as_deref(), Some(&b"onetwo"[..]));
}

#[test]
fn each_sector_has_its_own_cutoff() {
    let mut records = vec![create("a"), write(0, &[b'1'; LONG])];
    records.extend(sync(Target::File(INODE)));
    records.extend([write(0, &[b'2'; LONG]), write(0, &[b'3'; LONG])]);
    let mut torn = 0;
    for seed in 0..20 {
        let after = found(&records, Survivors::Scattered(512), Survivors::Everything, seed);
        let content = content(&after, "a").expect("its name survives");
        assert_eq!(content.len(), LONG);
        let sectors: Vec<u8> = content.chunks(512).map(|sector| sector[0]).collect();
        assert!(content.chunks(512).all(|sector| sector.iter().all(|byte| *byte == sector[0])));
        torn += usize::from(sectors.iter().any(|version| *version != sectors[0]));
    }
    assert!(torn > 10, "only {torn} of 20 cuts tore a write");
}

#[test]
fn a_truncated_file_that_grows_again_contains_zeros() {
    let resize = |size| Record::Change { inode: INODE, change: Change::Resize { size } };
    let hole = Record::Change { inode: INODE, change: Change::Zero { offset: 1, length: 1 } };
    let records = [create("a"), write(0, b"secret"), resize(3), resize(5), hole];
    let after = found(&records, Survivors::Everything, Survivors::Everything, 0);
    assert_eq!(content(&after, "a").as_deref(), Some(&b"s\0c\0\0"[..]));
}

#[test]
fn a_rename_is_atomic() {
    let rename = Record::Rename { inode: INODE, from: "a".to_owned(), to: "b".to_owned() };
    let records = [&[create("a")][..], &sync(root()), &[rename]].concat();
    for seed in 0..20 {
        let after = found(&records, Survivors::Nothing, Survivors::Scattered(512), seed);
        assert_ne!(content(&after, "a").is_some(), content(&after, "b").is_some());
    }
}

#[test]
fn a_removed_name_reappears_unless_its_folder_was_synced() {
    let remove = Record::Remove { path: "a".to_owned() };
    let removed = [&[create("a")][..], &sync(root()), &[remove]].concat();
    assert!(content(&found(&removed, Survivors::Nothing, Survivors::Nothing, 0), "a").is_some());
    let synced = [&removed[..], &sync(root())].concat();
    assert!(content(&found(&synced, Survivors::Nothing, Survivors::Nothing, 0), "a").is_none());
}

#[test]
fn a_file_that_reuses_an_inode_is_a_different_file() {
    let remove = Record::Remove { path: "a".to_owned() };
    let records = [create("a"), write(0, b"old"), remove, create("b"), write(0, b"n")];
    let after = found(&records, Survivors::Everything, Survivors::Everything, 0);
    assert_eq!(content(&after, "b").as_deref(), Some(&b"n"[..]));
    assert!(!Path::exists(&after.path().join("a")));
}
