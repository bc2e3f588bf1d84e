//! The processes that belong to the home of a test.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Instant;

use rustix::process::{Pid, Signal, getpid};
use sys::process;

use super::harness::CrashHome;
use super::processes::{POLL_INTERVAL, WAIT_TIMEOUT, is_alive, kill_all};

impl CrashHome {
    /// Every living process of this home.
    pub(crate) fn living_processes(&self) -> Vec<Pid> {
        processes_around(self.home.folder())
    }

    pub(super) fn kill_living_processes(&self) {
        let began = Instant::now();
        while began.elapsed() < WAIT_TIMEOUT {
            let left = self.living_processes();
            if left.is_empty() {
                return;
            }
            kill_all(&left, Signal::KILL);
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}

/// Every living process that was started with this folder in its environment or among its arguments, or that has it as
/// its working directory. Only for folders that belong to one test.
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
