//! A group for one attempt.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The period in which processor time is counted, in microseconds.
const CPU_PERIOD: u64 = 100_000;
/// How long to wait for killed processes to leave a group, and how often to retry its removal.
const REMOVE_TIMEOUT: Duration = Duration::from_secs(2);
const REMOVE_RETRY_INTERVAL: Duration = Duration::from_millis(2);

/// The limits of all processes of a group together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    pub memory_bytes: Option<u64>,
    /// Thousandths of a processor.
    pub cpu_millis: Option<u32>,
    pub pids: Option<u32>,
}

/// A group for one attempt. Dropping it removes the group if it is empty.
#[derive(Debug)]
pub struct Group {
    folder: PathBuf,
}

impl Group {
    /// Creates the group. The controllers that the limits need must be enabled in its parent.
    pub(super) fn make(folder: PathBuf, bounds: Bounds) -> io::Result<Self> {
        fs::create_dir(&folder)?;
        let group = Self { folder };
        if let Some(bytes) = bounds.memory_bytes {
            group.write("memory.max", &bytes.to_string())?;
            // Memory above the limit must not be swapped out instead. Without swap this file does not exist.
            let _ = group.write("memory.swap.max", "0");
            // Kill all processes or none: a job with some of its processes killed is useless.
            group.write("memory.oom.group", "1")?;
        }
        if let Some(millis) = bounds.cpu_millis {
            let quota = u64::from(millis) * CPU_PERIOD / 1_000;
            group.write("cpu.max", &format!("{quota} {CPU_PERIOD}"))?;
        }
        if let Some(pids) = bounds.pids {
            group.write("pids.max", &pids.to_string())?;
        }
        Ok(group)
    }

    /// The file that adds the process that writes a `0` to it to the group.
    pub fn procs_file(&self) -> io::Result<File> {
        OpenOptions::new().write(true).open(self.folder.join("cgroup.procs"))
    }

    /// Whether the kernel killed a process of the group because of its memory limit.
    pub fn ran_out_of_memory(&self) -> bool {
        self.count("memory.events", "oom_kill") > 0
    }

    /// Whether the kernel refused to create a process because of the limit.
    pub fn ran_out_of_pids(&self) -> bool {
        self.count("pids.events", "max") > 0
    }

    /// Kills all processes of the group at once, even if they fork rapidly.
    pub fn kill(&self) {
        let _ = self.write("cgroup.kill", "1");
    }

    /// Kills the remaining processes and removes the group.
    pub fn end(self) {
        self.kill();
        let began = Instant::now();
        while fs::remove_dir(&self.folder).is_err_and(|error| error.kind() != io::ErrorKind::NotFound)
            && began.elapsed() < REMOVE_TIMEOUT
        {
            std::thread::sleep(REMOVE_RETRY_INTERVAL);
        }
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

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.folder);
    }
}

/// Writes in a single call, as the kernel requires.
pub(super) fn write(folder: &Path, file: &str, text: &str) -> io::Result<()> {
    fs::write(folder.join(file), text)
}
