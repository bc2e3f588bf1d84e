//! The group of a slot, in which its commands run one after another.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::Pid;

/// The period in which processor time is counted, in microseconds.
const CPU_PERIOD: u64 = 100_000;

/// The limits of all processes of a group together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    pub memory_bytes: Option<u64>,
    /// Thousandths of a processor.
    pub cpu_millis: Option<u32>,
    pub pids: Option<u32>,
}

/// A group, with all groups that its processes made in it. Dropping it removes them if no process is left.
#[derive(Debug)]
pub struct Group {
    folder: PathBuf,
    directory: OwnedFd,
    /// Says whether any process is left. It stays open, because finding it costs more than reading it.
    events: File,
    was_killed: AtomicBool,
    is_frozen: AtomicBool,
}

impl Group {
    /// Creates the group. The controllers that the limits need must be enabled in its parent.
    pub(super) fn make(folder: &Path, bounds: Bounds) -> io::Result<Self> {
        fs::create_dir(folder)?;
        let group = Self::open(folder.to_owned()).inspect_err(|_| _ = remove_tree(folder))?;
        group.limit(bounds)?;
        Ok(group)
    }

    pub(super) fn limit(&self, bounds: Bounds) -> io::Result<()> {
        if let Some(bytes) = bounds.memory_bytes {
            self.write("memory.max", &bytes.to_string())?;
            // Memory above the limit must not be swapped out instead. Without swap this file does not exist.
            let _ = self.write("memory.swap.max", "0");
            // Kill all processes or none: a job with some of its processes killed is useless.
            self.write("memory.oom.group", "1")?;
        }
        if let Some(millis) = bounds.cpu_millis {
            let quota = u64::from(millis) * CPU_PERIOD / 1_000;
            self.write("cpu.max", &format!("{quota} {CPU_PERIOD}"))?;
        }
        if let Some(pids) = bounds.pids {
            self.write("pids.max", &pids.to_string())?;
        }
        Ok(())
    }

    pub(super) fn open(folder: PathBuf) -> io::Result<Self> {
        let directory = File::open(&folder)?.into();
        let events = File::open(folder.join("cgroup.events"))?;
        Ok(Self {
            folder,
            directory,
            events,
            was_killed: AtomicBool::new(false),
            is_frozen: AtomicBool::new(false),
        })
    }

    /// Whether a process is left in it. A zombie does not count.
    pub fn is_populated(&self) -> bool {
        let mut text = [0; 64];
        match self.events.read_at(&mut text, 0) {
            Ok(length) => !text[..length].windows(11).any(|part| part == b"populated 0"),
            // It was removed, so it was empty.
            Err(error) => error.raw_os_error() != Some(libc::ENODEV),
        }
    }

    /// Whether no process is left in it at the end of this time, or before.
    pub fn empties_within(&self, timeout: Duration) -> bool {
        let until = Instant::now() + timeout;
        while self.is_populated() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            // Reports a change since the last read.
            let mut watched = [PollFd::new(&self.events, PollFlags::PRI)];
            let _ = poll(&mut watched, left.try_into().ok().as_ref());
        }
        true
    }

    /// Its processes, and those of the groups in it, as far as this process sees them.
    pub fn pids(&self) -> Vec<Pid> {
        pids_in(&self.folder)
    }

    /// Whether the kernel killed a process of the group because of its memory limit.
    pub fn ran_out_of_memory(&self) -> bool {
        self.count("memory.events", "oom_kill") > 0
    }

    /// Whether the kernel refused to create a process because of the limit.
    pub fn ran_out_of_pids(&self) -> bool {
        self.count("pids.events", "max") > 0
    }

    /// Kills all its processes at once, even if they fork rapidly, and even those that this user may not signal.
    pub fn kill(&self) {
        self.was_killed.store(true, Ordering::Relaxed);
        let _ = self.write("cgroup.kill", "1");
    }

    /// Whether it was killed. Linux 6.18 (and others since 6.14) kills every process that is started in such a group from
    /// another one, because it compares the numbers of kills of these two.
    pub fn was_killed(&self) -> bool {
        self.was_killed.load(Ordering::Relaxed)
    }

    /// Stops all its processes, and those that they start, until it thaws. They do not notice, and can still be killed. The
    /// kernel freezes them shortly after this returns.
    pub fn freeze(&self) -> io::Result<()> {
        self.is_frozen.store(true, Ordering::Relaxed);
        self.write("cgroup.freeze", "1")
    }

    /// Continues all its processes.
    pub fn thaw(&self) -> io::Result<()> {
        self.write("cgroup.freeze", "0")?;
        self.is_frozen.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Whether a process that is started in it may not run.
    pub fn is_frozen(&self) -> bool {
        self.is_frozen.load(Ordering::Relaxed)
    }

    fn write(&self, file: &str, text: &str) -> io::Result<()> {
        write(&self.folder, file, text)
    }

    /// A number in a file of lines such as `oom_kill 3`.
    fn count(&self, file: &str, name: &str) -> u64 {
        let text = fs::read_to_string(self.folder.join(file)).unwrap_or_default();
        let value = |line: &str| line.split_once(' ').filter(|(key, _)| *key == name)?.1.parse().ok();
        text.lines().find_map(value).unwrap_or(0)
    }
}

impl AsFd for Group {
    /// Its directory, in which a process is started.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = remove_tree(&self.folder);
    }
}

fn pids_in(folder: &Path) -> Vec<Pid> {
    let list = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
    let own = list.lines().filter_map(|pid| Pid::from_raw(pid.parse().ok()?));
    let inner = inner_folders(folder);
    own.chain(inner.iter().flat_map(|inner| pids_in(inner))).collect()
}

/// Removes a group and all groups in it; the kernel refuses that while they contain processes.
pub(super) fn remove_tree(folder: &Path) -> io::Result<()> {
    match fs::remove_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
            for inner in inner_folders(folder) {
                remove_tree(&inner)?;
            }
            fs::remove_dir(folder)
        }
        result => result,
    }
}

fn inner_folders(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.map(|entry| entry.path()).collect()
}

/// Writes in a single call, as the kernel requires.
pub(super) fn write(folder: &Path, file: &str, text: &str) -> io::Result<()> {
    fs::write(folder.join(file), text)
}
