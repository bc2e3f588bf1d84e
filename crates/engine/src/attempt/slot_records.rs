//! The records of a worker's attempts, from which others recover when it dies: `workers/<id>.slots`.
//!
//! One small record for each attempt that was started and is not settled yet: job, attempt, pid, and when the process
//! started. The record is locked through its own open file description, which the command inherits; while the lock is
//! held, some process of the attempt is alive. An attempt needs no file of its own, only that description.
//!
//! The lease is written *before* the command is started, so a reader of the record must assume that the command ran. A
//! record is cleared and reused only when its settlement is committed; otherwise a started attempt could look as if it
//! had never been started.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::Pid;

use store::LeaseRef;
use sys::clock::boot_ticks;
use sys::fs::{owner_only, range_lock};
use sys::process;
use sys::process::spawn::ChildProcess;

/// A job id has at most 128 characters; the rest are numbers.
const RECORD_BYTES: u64 = 256;

/// The start of an empty record.
const EMPTY: &[u8] = b"\n";

/// The records of this worker.
#[derive(Debug)]
pub(crate) struct Slots {
    path: PathBuf,
    /// Holds no locks; used to clear records.
    file: File,
    free: Mutex<FreeRecords>,
}

#[derive(Debug, Default)]
struct FreeRecords {
    reusable: VecDeque<u64>,
    used: u64,
}

/// The record of one attempt. Dropping it closes the worker's copy of the lock; the command keeps its own.
#[derive(Debug)]
pub(crate) struct Record {
    file: File,
    index: u64,
    lease: LeaseRef,
}

/// The lock on a record, which every process of an attempt holds unless it has closed its descriptors.
#[derive(Clone, Debug)]
pub(crate) struct RecordLock<'a> {
    path: &'a Path,
    bytes: Range<u64>,
}

impl RecordLock<'_> {
    /// `true` if the process holds this lock, `false` if it holds that of another attempt, `None` if it holds none.
    pub(crate) fn held_by(&self, pid: Pid) -> Option<bool> {
        let locks = process::locks_on(pid, self.path);
        (!locks.is_empty()).then(|| locks.contains(&self.bytes))
    }
}

/// The contents of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AttemptRecord {
    pub(crate) lease: LeaseRef,
    /// Absent if the worker died before it could write it.
    pub(crate) process: Option<ProcessRecord>,
}

/// A process: its pid, and the range of ticks since boot in which it was started, because the pid alone may be reused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProcessRecord {
    pub(crate) pid: Pid,
    pub(crate) ticks: Range<u64>,
}

impl Slots {
    pub(crate) fn create(folder: &Path, worker: &str) -> io::Result<Self> {
        let path = path(folder, worker);
        let file = owner_only::open_file(&path)?;
        Ok(Self { path, file, free: Mutex::default() })
    }

    /// Writes a record for an attempt that is about to be started.
    pub(crate) fn begin(&self, lease: &LeaseRef) -> io::Result<Record> {
        // Opened again: orphans may still hold a description that an earlier command inherited.
        let file = owner_only::open_file(&self.path)?;
        let mut index = self.oldest_free();
        while !range_lock::take(&file, bytes(index))? {
            // Most likely a command of another slot is between fork and exec, when it has copies of all our
            // descriptors. A record that was never used is certainly free.
            self.clear_record(index);
            index = self.unused();
        }
        let record = Record { file, index, lease: lease.clone() };
        record.write(None).inspect_err(|_| self.clear_record(index))?;
        Ok(record)
    }

    /// Clears the record, because the settlement of its attempt is committed. Left in place, its pid could match the id
    /// of an unrelated session whose leader has ended.
    pub(crate) fn clear_record(&self, index: u64) {
        let _ = self.file.write_all_at(EMPTY, index * RECORD_BYTES);
        self.free().reusable.push_back(index);
    }

    /// The lock on a record, by which its processes are recognised.
    pub(crate) fn lock(&self, index: u64) -> RecordLock<'_> {
        RecordLock { path: &self.path, bytes: bytes(index) }
    }

    /// A lock that matches no record: a process that holds any record lock belongs to another attempt.
    pub(crate) fn no_lock(&self) -> RecordLock<'_> {
        RecordLock { path: &self.path, bytes: 0..0 }
    }

    fn oldest_free(&self) -> u64 {
        let reusable = self.free().reusable.pop_front();
        reusable.unwrap_or_else(|| self.unused())
    }

    fn unused(&self) -> u64 {
        let mut free = self.free();
        free.used += 1;
        free.used - 1
    }

    fn free(&self) -> MutexGuard<'_, FreeRecords> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Record {
    pub(crate) fn index(&self) -> u64 {
        self.index
    }

    /// The file that the command inherits.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Starts the process, and records its pid.
    pub(crate) fn start(&self, spawn: impl FnOnce() -> io::Result<ChildProcess>) -> io::Result<ChildProcess> {
        let before = boot_ticks();
        let spawned = spawn()?;
        // Recovery works without the pid, through the lease and the cookie; it only takes longer.
        let _ = self.write(Some(ProcessRecord { pid: spawned.pid, ticks: before..boot_ticks() + 1 }));
        Ok(spawned)
    }

    fn write(&self, process: Option<ProcessRecord>) -> io::Result<()> {
        let record = AttemptRecord { lease: self.lease.clone(), process };
        self.file.write_all_at(&record.to_bytes(), self.index * RECORD_BYTES)
    }
}

impl AttemptRecord {
    /// Whether this process is in the session of the attempt.
    pub(crate) fn has_in_session(&self, pid: Pid) -> bool {
        let session = process::stat(pid).and_then(|stat| Pid::from_raw(stat.session));
        session.is_some() && session == self.process.as_ref().map(|started| started.pid)
    }

    fn to_bytes(&self) -> Vec<u8> {
        let LeaseRef { job, attempt } = &self.lease;
        let text = match &self.process {
            Some(ProcessRecord { pid, ticks }) => {
                format!("{job} {attempt} {} {} {}\n", pid.as_raw_pid(), ticks.start, ticks.end)
            }
            None => format!("{job} {attempt}\n"),
        };
        let mut bytes = text.into_bytes();
        bytes.resize(usize::try_from(RECORD_BYTES).unwrap_or(usize::MAX), 0);
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?.split('\n').next()?;
        let words: Vec<&str> = text.split(' ').collect();
        let lease = LeaseRef { job: words.first()?.parse().ok()?, attempt: words.get(1)?.parse().ok()? };
        Some(Self { lease, process: ProcessRecord::from_words(words.get(2..)?) })
    }
}

impl ProcessRecord {
    fn from_words(words: &[&str]) -> Option<Self> {
        let [pid, from, to] = words else {
            return None;
        };
        Some(Self { pid: Pid::from_raw(pid.parse().ok()?)?, ticks: from.parse().ok()?..to.parse().ok()? })
    }
}

/// Reads the records that a dead worker left.
pub(crate) fn read(folder: &Path, worker: &str) -> io::Result<Vec<AttemptRecord>> {
    let bytes = std::fs::read(path(folder, worker))?;
    let size = usize::try_from(RECORD_BYTES).unwrap_or(usize::MAX);
    Ok(bytes.chunks(size).filter_map(AttemptRecord::from_bytes).collect())
}

/// Whether this worker has ever started a command.
pub(crate) fn were_used(folder: &Path, worker: &str) -> bool {
    path(folder, worker).metadata().is_ok_and(|meta| meta.len() > 0)
}

/// Whether a process that inherited a lock of this worker's attempts is still alive.
pub(crate) fn are_held(folder: &Path, worker: &str) -> io::Result<bool> {
    match File::options().read(true).write(true).open(path(folder, worker)) {
        Ok(file) => range_lock::is_held(&file, 0..i64::MAX.cast_unsigned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

pub(crate) fn path(folder: &Path, worker: &str) -> PathBuf {
    folder.join(format!("{worker}.slots"))
}

fn bytes(index: u64) -> Range<u64> {
    index * RECORD_BYTES..(index + 1) * RECORD_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use sys::process::ProcessHandle;

    fn lease(attempt: u32) -> LeaseRef {
        LeaseRef { job: "x".repeat(128).parse().expect("an id"), attempt }
    }

    #[test]
    fn a_record_names_the_process_and_is_held_until_its_last_descriptor_is_closed() {
        let folder = tempfile::tempdir().expect("a folder");
        let slots = Slots::create(folder.path(), "w").expect("slots");
        assert!(!were_used(folder.path(), "w"));
        let record = slots.begin(&lease(u32::MAX)).expect("a record");
        let expected = AttemptRecord { lease: lease(u32::MAX), process: None };
        assert_eq!(read(folder.path(), "w").expect("records"), [expected], "before it is started");
        assert!(were_used(folder.path(), "w"));

        let me = rustix::process::getpid();
        record.start(|| Ok(ChildProcess { pid: me, handle: ProcessHandle::open(me)? })).expect("started");
        let records = read(folder.path(), "w").expect("records");
        assert_eq!(records[0].process.as_ref().map(|started| started.pid), Some(me));
        let inherited = record.file().try_clone().expect("clone");
        drop(record);
        assert!(are_held(folder.path(), "w").expect("look"));
        drop(inherited);
        assert!(!are_held(folder.path(), "w").expect("look"));
    }

    #[test]
    fn a_record_is_reused_only_after_it_was_cleared() {
        let folder = tempfile::tempdir().expect("a folder");
        let slots = Slots::create(folder.path(), "w").expect("slots");
        let first = slots.begin(&lease(1)).expect("a record").index();
        let second = slots.begin(&lease(2)).expect("a record").index();
        assert_ne!(first, second, "the first attempt is not settled yet");
        slots.clear_record(first);
        let kept: Vec<u32> =
            read(folder.path(), "w").expect("records").iter().map(|record| record.lease.attempt).collect();
        assert_eq!(kept, [2], "its pid may be reused before the record is read");
        assert_eq!(slots.begin(&lease(3)).expect("a record").index(), first);
        let held = slots.begin(&lease(4)).expect("a record");
        slots.clear_record(held.index());
        assert_ne!(slots.begin(&lease(5)).expect("a record").index(), held.index(), "its lock is still held");
        let kept: Vec<u32> =
            read(folder.path(), "w").expect("records").iter().map(|record| record.lease.attempt).collect();
        assert_eq!(kept, [3, 2, 5]);
    }

    fn started(pid: i32, ticks: Range<u64>) -> AttemptRecord {
        let pid = Pid::from_raw(pid).expect("a pid");
        AttemptRecord { lease: lease(u32::MAX), process: Some(ProcessRecord { pid, ticks }) }
    }

    #[test]
    fn the_longest_record_fits() {
        let longest = started(i32::MAX, u64::MAX..u64::MAX).to_bytes();
        assert_eq!((longest.len() as u64, longest.last()), (RECORD_BYTES, Some(&0)));
        assert_eq!(AttemptRecord::from_bytes(&longest), Some(started(i32::MAX, u64::MAX..u64::MAX)));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_parse_only_as_records_that_can_be_written(bytes: Vec<u8>) {
            let folder = tempfile::tempdir().expect("a folder");
            std::fs::write(path(folder.path(), "w"), &bytes).expect("written");
            for record in read(folder.path(), "w").expect("records") {
                prop_assert_eq!(AttemptRecord::from_bytes(&record.to_bytes()), Some(record));
            }
        }

        #[test]
        fn a_partially_written_record_names_no_process(
            pid in 1..=i32::MAX,
            ticks: Range<u64>,
            whole: prop::sample::Index,
        ) {
            let mut bytes = started(pid, ticks).to_bytes();
            let text = bytes.iter().position(|byte| *byte == b'\n').expect("its end");
            bytes[whole.index(text + 1)..].fill(0);
            prop_assert!(AttemptRecord::from_bytes(&bytes).is_none_or(|record| record.process.is_none()));
        }
    }
}
