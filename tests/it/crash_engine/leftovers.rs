//! What is left of a test: processes that belong to its home.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Instant;

use queuectl::sys::process;
use rustix::process::{Pid, Signal};

use super::harness::Ground;
use super::processes::{LOOK, PATIENCE, kill_all};

impl Ground {
    /// Every living process of this home: started on it, in its folder, or with its name among its arguments.
    pub(crate) fn leftovers(&self) -> Vec<Pid> {
        let mut found = process::all().expect("a list of processes");
        found.retain(|pid| *pid != rustix::process::getpid() && self.belongs(*pid));
        found
    }

    fn belongs(&self, pid: Pid) -> bool {
        let is_alive = process::stat(pid).is_some_and(|stat| !stat.is_zombie);
        let file = |name: &str| PathBuf::from(format!("/proc/{}/{name}", pid.as_raw_pid()));
        let folder = self.home.folder();
        let name = folder.as_os_str().as_bytes();
        let names = |bytes: &[u8]| bytes.windows(name.len()).any(|part| part == name);
        is_alive
            && (names(&process::environment(pid))
                || fs::read(file("cmdline")).is_ok_and(|bytes| names(&bytes))
                || fs::read_link(file("cwd")).is_ok_and(|cwd| cwd.starts_with(folder)))
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
