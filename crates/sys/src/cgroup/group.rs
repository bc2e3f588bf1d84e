//! A group for one attempt.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The period that shares of a processor are counted in, in microseconds.
const CPU_PERIOD: u64 = 100_000;
/// How long to wait for killed processes to leave a group, and how often to look.
const PATIENCE: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(2);

/// What the processes of a group may use together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    pub memory_bytes: Option<u64>,
    /// Thousandths of a processor.
    pub cpu_millis: Option<u32>,
    pub pids: Option<u32>,
}

/// Gone when it is dropped, if nobody is in it.
#[derive(Debug)]
pub struct Group {
    folder: PathBuf,
}

impl Group {
    /// Makes it. The controllers that the bounds need must be enabled above it.
    pub(super) fn make(folder: PathBuf, bounds: Bounds) -> io::Result<Self> {
        fs::create_dir(&folder)?;
        let group = Self { folder };
        if let Some(bytes) = bounds.memory_bytes {
            group.write("memory.max", &bytes.to_string())?;
            // What does not fit is not to go to the disk instead. Without swap there is no such file.
            let _ = group.write("memory.swap.max", "0");
            // All of it or nothing: half a job is no use to anybody.
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

    /// Whoever writes a `0` there is in the group.
    pub fn entrance(&self) -> io::Result<File> {
        OpenOptions::new().write(true).open(self.folder.join("cgroup.procs"))
    }

    /// Whether the kernel has killed it for want of memory.
    pub fn ran_out_of_memory(&self) -> bool {
        self.count("memory.events", "oom_kill") > 0
    }

    /// Whether a process was refused.
    pub fn ran_out_of_pids(&self) -> bool {
        self.count("pids.events", "max") > 0
    }

    /// Kills everybody in it at once, however quickly they multiply.
    pub fn kill(&self) {
        let _ = self.write("cgroup.kill", "1");
    }

    /// Kills whoever is left in it, and removes it.
    pub fn end(self) {
        self.kill();
        let began = Instant::now();
        while fs::remove_dir(&self.folder).is_err_and(|error| error.kind() != io::ErrorKind::NotFound)
            && began.elapsed() < PATIENCE
        {
            std::thread::sleep(LOOK);
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

/// The kernel takes what is written in one call.
pub(super) fn write(folder: &Path, file: &str, text: &str) -> io::Result<()> {
    fs::write(folder.join(file), text)
}
