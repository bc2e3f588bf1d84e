//! What is left of a test: processes that belong to its home.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Instant;

use rustix::process::{Pid, Signal, getpid};
use sys::process;

use super::harness::Ground;
use super::processes::{LOOK, PATIENCE, is_alive, kill_all};

impl Ground {
    /// Every living process of this home.
    pub(crate) fn leftovers(&self) -> Vec<Pid> {
        processes_around(self.home.folder())
    }

    pub(super) fn kill_leftovers(&self) {
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            let left = self.leftovers();
            if left.is_empty() {
                return;
            }
            kill_all(&left, Signal::KILL);
            std::thread::sleep(LOOK);
        }
    }
}

/// Every living process that was started with this folder in its environment or among its arguments, or works in it. Only
/// for folders that nobody but a test knows of.
pub(crate) fn processes_around(folder: &Path) -> Vec<Pid> {
    let mut found = process::all().expect("a list of processes");
    found.retain(|pid| *pid != getpid() && is_around(*pid, folder));
    found
}

fn is_around(pid: Pid, folder: &Path) -> bool {
    let file = |name: &str| format!("/proc/{}/{name}", pid.as_raw_pid());
    let name = folder.as_os_str().as_bytes();
    let names = |bytes: &[u8]| bytes.windows(name.len()).any(|part| part == name);
    is_alive(pid)
        && (names(&process::environment(pid))
            || fs::read(file("cmdline")).is_ok_and(|bytes| names(&bytes))
            || fs::read_link(file("cwd")).is_ok_and(|cwd| cwd.starts_with(folder)))
}
