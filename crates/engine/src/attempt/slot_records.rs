//! What a worker was running, for those who come after it: `workers/<id>.slots`.
//!
//! One small record for each attempt that was started and is not settled yet: job, attempt, pid, and when the process
//! was started. The record is locked through an open file description of its own, which the command inherits; held
//! means that something of the attempt lives. Nothing is made per attempt but that description.
//!
//! The lease is written *before* the command is started: whoever finds it must assume that the command ran. A record is
//! emptied and used again only when its settlement is committed, else a started attempt could look like one that never
//! was.

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

/// A job's id has 128 characters at most; the rest are numbers.
const RECORD_BYTES: u64 = 256;

/// How a record begins that holds nothing.
const EMPTY: &[u8] = b"\n";

/// The records of this worker.
#[derive(Debug)]
pub(crate) struct Slots {
    path: PathBuf,
    /// Without any lock: to empty records.
    file: File,
    free: Mutex<Free>,
}

#[derive(Debug, Default)]
struct Free {
    reusable: VecDeque<u64>,
    used: u64,
}

/// The record of one attempt. Dropping it gives up our part of the lock, the command keeps its own.
#[derive(Debug)]
pub(crate) struct Record {
    file: File,
    index: u64,
    lease: LeaseRef,
}

/// What a process of an attempt holds unless it has closed its descriptors.
#[derive(Clone, Debug)]
pub(crate) struct Mark<'a> {
    path: &'a Path,
    bytes: Range<u64>,
}

impl Mark<'_> {
    /// Whether this process holds this lock, or that of another attempt; `None`: it holds none.
    pub(crate) fn is_on(&self, pid: Pid) -> Option<bool> {
        let locks = process::locks_on(pid, self.path);
        (!locks.is_empty()).then(|| locks.contains(&self.bytes))
    }
}

/// An attempt as its record tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trace {
    pub(crate) lease: LeaseRef,
    /// Absent if the worker died before it could write it down.
    pub(crate) process: Option<Started>,
}

/// A process by its pid and the ticks since boot between which it was started: the pid alone may be a stranger's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Started {
    pub(crate) pid: Pid,
    pub(crate) ticks: Range<u64>,
}

impl Slots {
    pub(crate) fn create(folder: &Path, worker: &str) -> io::Result<Self> {
        let path = path(folder, worker);
        let file = owner_only::open_file(&path)?;
        Ok(Self { path, file, free: Mutex::default() })
    }

    /// Writes down that this attempt is about to be started.
    pub(crate) fn begin(&self, lease: &LeaseRef) -> io::Result<Record> {
        // Opened anew: a description that an earlier command inherited may still be held by what it left behind.
        let file = owner_only::open_file(&self.path)?;
        let mut index = self.oldest_free();
        while !range_lock::take(&file, bytes(index))? {
            // Most likely by a command of another slot that is just being started: until it runs, it has a copy of every
            // descriptor of ours. A record that nobody has used is free for certain.
            self.give_back(index);
            index = self.unused();
        }
        let record = Record { file, index, lease: lease.clone() };
        record.write(None).inspect_err(|_| self.give_back(index))?;
        Ok(record)
    }

    /// The settlement of this record's attempt is committed, so it says nothing any more: its pid may become that of a
    /// stranger's session, whose leader ends as ours did.
    pub(crate) fn give_back(&self, index: u64) {
        let _ = self.file.write_all_at(EMPTY, index * RECORD_BYTES);
        self.free().reusable.push_back(index);
    }

    /// The lock on a record, as processes are known by it.
    pub(crate) fn mark(&self, index: u64) -> Mark<'_> {
        Mark { path: &self.path, bytes: bytes(index) }
    }

    /// That of something that holds none of these locks: whoever holds one is another's.
    pub(crate) fn no_mark(&self) -> Mark<'_> {
        Mark { path: &self.path, bytes: 0..0 }
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

    fn free(&self) -> MutexGuard<'_, Free> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Record {
    pub(crate) fn index(&self) -> u64 {
        self.index
    }

    /// What the command inherits.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Starts the process, and writes down which it is.
    pub(crate) fn start(&self, spawn: impl FnOnce() -> io::Result<ChildProcess>) -> io::Result<ChildProcess> {
        let before = boot_ticks();
        let spawned = spawn()?;
        // The lease is there already, and the cookie too: a record without a pid costs the finder time, nothing else.
        let _ = self.write(Some(Started { pid: spawned.pid, ticks: before..boot_ticks() + 1 }));
        Ok(spawned)
    }

    fn write(&self, process: Option<Started>) -> io::Result<()> {
        let trace = Trace { lease: self.lease.clone(), process };
        self.file.write_all_at(&trace.to_bytes(), self.index * RECORD_BYTES)
    }
}

impl Trace {
    /// Whether this process is in the session of the attempt.
    pub(crate) fn is_leader_of(&self, pid: Pid) -> bool {
        let session = process::stat(pid).and_then(|stat| Pid::from_raw(stat.session));
        session.is_some() && session == self.process.as_ref().map(|started| started.pid)
    }

    fn to_bytes(&self) -> Vec<u8> {
        let LeaseRef { job, attempt } = &self.lease;
        let text = match &self.process {
            Some(Started { pid, ticks }) => {
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
        Some(Self { lease, process: Started::from_words(words.get(2..)?) })
    }
}

impl Started {
    fn from_words(words: &[&str]) -> Option<Self> {
        let [pid, from, to] = words else {
            return None;
        };
        Some(Self { pid: Pid::from_raw(pid.parse().ok()?)?, ticks: from.parse().ok()?..to.parse().ok()? })
    }
}

/// What a worker that is gone was running.
pub(crate) fn read(folder: &Path, worker: &str) -> io::Result<Vec<Trace>> {
    let bytes = std::fs::read(path(folder, worker))?;
    let size = usize::try_from(RECORD_BYTES).unwrap_or(usize::MAX);
    Ok(bytes.chunks(size).filter_map(Trace::from_bytes).collect())
}

/// Whether this worker has ever started anything.
pub(crate) fn were_used(folder: &Path, worker: &str) -> bool {
    path(folder, worker).metadata().is_ok_and(|meta| meta.len() > 0)
}

/// Whether anything that inherited a lock of this worker's attempts still lives.
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
    fn a_record_says_what_was_started_and_is_held_as_long_as_anybody_has_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let slots = Slots::create(folder.path(), "w").expect("slots");
        assert!(!were_used(folder.path(), "w"));
        let record = slots.begin(&lease(u32::MAX)).expect("a record");
        let expected = Trace { lease: lease(u32::MAX), process: None };
        assert_eq!(read(folder.path(), "w").expect("traces"), [expected], "before it is started");
        assert!(were_used(folder.path(), "w"));

        let me = rustix::process::getpid();
        record.start(|| Ok(ChildProcess { pid: me, handle: ProcessHandle::open(me)? })).expect("started");
        let traces = read(folder.path(), "w").expect("traces");
        assert_eq!(traces[0].process.as_ref().map(|started| started.pid), Some(me));
        let inherited = record.file().try_clone().expect("clone");
        drop(record);
        assert!(are_held(folder.path(), "w").expect("look"));
        drop(inherited);
        assert!(!are_held(folder.path(), "w").expect("look"));
    }

    #[test]
    fn a_record_is_used_again_only_when_it_was_given_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let slots = Slots::create(folder.path(), "w").expect("slots");
        let first = slots.begin(&lease(1)).expect("a record").index();
        let second = slots.begin(&lease(2)).expect("a record").index();
        assert_ne!(first, second, "the first attempt is not settled yet");
        slots.give_back(first);
        let kept: Vec<u32> =
            read(folder.path(), "w").expect("traces").iter().map(|trace| trace.lease.attempt).collect();
        assert_eq!(kept, [2], "by the time anybody reads it, its pid may be a stranger's");
        assert_eq!(slots.begin(&lease(3)).expect("a record").index(), first);
        let held = slots.begin(&lease(4)).expect("a record");
        slots.give_back(held.index());
        assert_ne!(slots.begin(&lease(5)).expect("a record").index(), held.index(), "somebody still has it");
        let kept: Vec<u32> =
            read(folder.path(), "w").expect("traces").iter().map(|trace| trace.lease.attempt).collect();
        assert_eq!(kept, [3, 2, 5]);
    }

    fn started(pid: i32, ticks: Range<u64>) -> Trace {
        let pid = Pid::from_raw(pid).expect("a pid");
        Trace { lease: lease(u32::MAX), process: Some(Started { pid, ticks }) }
    }

    #[test]
    fn the_longest_record_fits() {
        let longest = started(i32::MAX, u64::MAX..u64::MAX).to_bytes();
        assert_eq!((longest.len() as u64, longest.last()), (RECORD_BYTES, Some(&0)));
        assert_eq!(Trace::from_bytes(&longest), Some(started(i32::MAX, u64::MAX..u64::MAX)));
    }

    proptest! {
        #[test]
        fn a_file_of_any_bytes_holds_only_records_that_could_be_written(bytes: Vec<u8>) {
            let folder = tempfile::tempdir().expect("a folder");
            std::fs::write(path(folder.path(), "w"), &bytes).expect("written");
            for trace in read(folder.path(), "w").expect("traces") {
                prop_assert_eq!(Trace::from_bytes(&trace.to_bytes()), Some(trace));
            }
        }

        #[test]
        fn a_record_that_was_not_written_whole_names_no_process(
            pid in 1..=i32::MAX,
            ticks: Range<u64>,
            whole: prop::sample::Index,
        ) {
            let mut bytes = started(pid, ticks).to_bytes();
            let text = bytes.iter().position(|byte| *byte == b'\n').expect("its end");
            bytes[whole.index(text + 1)..].fill(0);
            prop_assert!(Trace::from_bytes(&bytes).is_none_or(|trace| trace.process.is_none()));
        }
    }
}
