//! The records of a worker's attempts, from which others recover when it dies: `workers/<id>.slots`.
//!
//! One small record for each attempt that was started and is not settled yet: job, attempt, pid, and when the process
//! started. The record is locked through its own open file description, which the command inherits; while the lock is
//! held, some process of the attempt is alive. An attempt needs no file of its own, only that description.
//!
//! The worker writes the lease *before* the command is started, so a reader of the record must assume that the command
//! ran. The new process adds its pid before it executes the command, so no command runs whose pid is not on record. A
//! record is cleared and reused only when its settlement is committed; otherwise a started attempt could look as if it
//! had never been started.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::Pid;

use store::LeaseRef;
use sys::clock::boot_ticks;
use sys::fs::{owner_only, range_lock};
use sys::process;
use sys::process::spawn::PidRecord;

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
    /// How many bytes the lease takes.
    lease_bytes: u64,
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
    /// Absent if the command was not started.
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
        let text = format!("{} {}", lease.job, lease.attempt);
        let record = Record { file, index, lease_bytes: text.len() as u64 };
        record.write(text).inspect_err(|_| self.clear_record(index))?;
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

    /// Where the command, which is about to be started, writes its pid.
    pub(crate) fn pid_record(&self) -> PidRecord<'_> {
        let offset = self.index * RECORD_BYTES + self.lease_bytes;
        PidRecord { file: self.file.as_fd(), offset, since_ticks: boot_ticks() }
    }

    /// Writes the lease, and with it the whole length of the record.
    fn write(&self, lease: String) -> io::Result<()> {
        let mut bytes = lease.into_bytes();
        bytes.push(b'\n');
        bytes.resize(usize::try_from(RECORD_BYTES).unwrap_or(usize::MAX), 0);
        self.file.write_all_at(&bytes, self.index * RECORD_BYTES)
    }
}

impl AttemptRecord {
    /// Whether this process is in the session of the attempt.
    pub(crate) fn has_in_session(&self, pid: Pid) -> bool {
        let session = process::stat(pid).and_then(|stat| Pid::from_raw(stat.session));
        session.is_some() && session == self.process.as_ref().map(|started| started.pid)
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
    range_lock::is_held_at(&path(folder, worker), 0..i64::MAX.cast_unsigned())
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
    use sys::process::spawn::{Limits, ProcessScope, Spawn, own_environment, spawn};

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

        let before = boot_ticks();
        let child = start(&record);
        let records = read(folder.path(), "w").expect("records");
        let started = records[0].process.as_ref().expect("it has written its pid");
        assert_eq!((started.pid, &records[0].lease), (child, &lease(u32::MAX)));
        let start_time = process::stat(child).expect("it is not reaped").start_time;
        assert!(started.ticks.contains(&start_time), "{start_time} in {:?}", started.ticks);
        assert!(started.ticks.start >= before && started.ticks.end <= boot_ticks() + 1);
        while process::reap(child).expect("a child").is_none() {
            std::thread::yield_now();
        }
        let inherited = record.file().try_clone().expect("clone");
        drop(record);
        assert!(are_held(folder.path(), "w").expect("look"));
        drop(inherited);
        assert!(!are_held(folder.path(), "w").expect("look"));
    }

    /// Starts a process that writes its pid to the record.
    fn start(record: &Record) -> Pid {
        let spawned = spawn(&Spawn {
            program: c"/bin/true",
            argv: &[c"true".to_owned()],
            envp: &own_environment().expect("an environment"),
            cwd: None,
            scope: ProcessScope::Session,
            descriptors: &[],
            limits: Limits::default(),
            group: None,
            pid_record: Some(record.pid_record()),
        });
        spawned.expect("it starts").pid
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

    /// The text of a record.
    fn text(pid: i32, ticks: &Range<u64>) -> String {
        let LeaseRef { job, attempt } = lease(u32::MAX);
        format!("{job} {attempt} {pid} {} {}\n", ticks.start, ticks.end)
    }

    #[test]
    fn the_longest_record_fits() {
        let longest = text(i32::MAX, &(u64::MAX..u64::MAX));
        assert!(longest.len() as u64 <= RECORD_BYTES, "{longest}");
        let record = AttemptRecord::from_bytes(longest.as_bytes()).expect("a record");
        let process =
            ProcessRecord { pid: Pid::from_raw(i32::MAX).expect("a pid"), ticks: u64::MAX..u64::MAX };
        assert_eq!(record, AttemptRecord { lease: lease(u32::MAX), process: Some(process) });
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_are_read_without_a_panic(bytes: Vec<u8>) {
            let folder = tempfile::tempdir().expect("a folder");
            std::fs::write(path(folder.path(), "w"), &bytes).expect("written");
            read(folder.path(), "w").expect("records");
        }

        #[test]
        fn a_partially_written_record_names_no_process(
            pid in 1..=i32::MAX,
            ticks: Range<u64>,
            whole: prop::sample::Index,
        ) {
            let mut bytes = text(pid, &ticks).into_bytes();
            let length = bytes.len();
            bytes.resize(usize::try_from(RECORD_BYTES).expect("a small number"), 0);
            bytes[whole.index(length)..].fill(0);
            prop_assert!(AttemptRecord::from_bytes(&bytes).is_none_or(|record| record.process.is_none()));
        }
    }
}
