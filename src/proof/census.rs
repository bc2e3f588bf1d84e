//! The processes of a trial, found by the folder that all of them have to do with.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::process::{Pid, getpid};

use crate::sys::process;

/// Every living process of this folder but this one.
pub fn processes_of(folder: &Path) -> Vec<Pid> {
    let mut found = process::all().unwrap_or_default();
    found.retain(|pid| *pid != getpid() && is_of(*pid, folder));
    found
}

/// Whether it was started with this folder in its environment or among its arguments, or works in it.
pub fn is_of(pid: Pid, folder: &Path) -> bool {
    let number = pid.as_raw_pid();
    let name = folder.as_os_str().as_bytes();
    let names = |bytes: &[u8]| bytes.windows(name.len()).any(|part| part == name);
    let is_alive = process::stat(pid).is_some_and(|stat| !stat.is_zombie);
    is_alive
        && (names(&process::environment(pid))
            || fs::read(format!("/proc/{number}/cmdline")).is_ok_and(|bytes| names(&bytes))
            || fs::read_link(format!("/proc/{number}/cwd")).is_ok_and(|cwd| cwd.starts_with(folder)))
}

/// What a process was started as, for people.
pub fn command_line(pid: Pid) -> String {
    let bytes = fs::read(format!("/proc/{}/cmdline", pid.as_raw_pid())).unwrap_or_default();
    String::from_utf8_lossy(&bytes).replace('\0', " ").trim().to_owned()
}
