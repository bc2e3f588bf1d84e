//! Clocks, limits and filesystems.

use std::path::Path;

use sys::cgroup::can_contain;
use sys::fs::disk::Filesystem;

use super::{Diagnosis, tamper};
use crate::cli::harness::Home;

#[test]
fn a_clock_that_was_set_back_is_reported() {
    let home = Home::with_jobs(&["a"]);
    Diagnosis::of(&home).finds("clock", "ok", "not behind");
    tamper(&home, "update jobs set updated_at = updated_at + 7200000");
    Diagnosis::of(&home).code(0).finds("clock", "warning", "behind the newest time in the queue");
}

#[test]
fn the_containment_of_commands_is_reported() {
    let home = Home::with_jobs(&["a"]);
    let expected =
        if can_contain().is_ok() { "each command runs in a cgroup" } else { "no cgroups for commands (" };
    Diagnosis::of(&home).code(0).finds("containment", "ok", expected);
    // In released builds no guard can be switched off.
    if cfg!(debug_assertions) {
        let ran = home.call(["doctor", "--json"]).env("QUEUECTL_WITHOUT", "containment").run();
        Diagnosis { ran }.code(0).finds("containment", "ok", "(switched off by a test)");
    }
}

#[test]
fn process_limits_that_are_too_low_are_reported() {
    let home = Home::with_jobs(&["a"]);
    let diagnosis = |limit: &str| Diagnosis { ran: home.call(["doctor", "--json"]).with_limit(limit).run() };
    diagnosis("-n 64").code(0).finds("open_files", "ok", "64 open files are allowed");
    diagnosis("-n 41").code(0).finds("open_files", "warning", "a worker may need 42").advises("ulimit -n");
    diagnosis("-f 2048").code(0).finds("file_size", "warning", "are limited to 1 MiB");
    home.run(["config", "set", "concurrency", "100"]).ok();
    diagnosis("-n 64").code(0).finds("open_files", "warning", "a worker may need 1032");
    diagnosis("-n 1100; ulimit -Sn 64").code(0).finds("open_files", "ok", "1100 open files are allowed");
}

#[test]
fn a_home_on_tmpfs_is_reported() {
    let memory = Path::new("/dev/shm");
    if !matches!(Filesystem::of(memory), Ok(Filesystem::Memory(_))) {
        return; // This machine has none.
    }
    let folder = tempfile::tempdir_in(memory).expect("a folder");
    let home = Home::new();
    let ran = home.call_without_home(["doctor", "--json"]).env("QUEUECTL_HOME", folder.path()).run();
    Diagnosis { ran }.code(0).finds("filesystem", "warning", "lost at reboot");
}

#[test]
fn enforceable_job_limits_are_reported() {
    let home = Home::with_jobs(&["a"]);
    // The process that runs the tests is in the cgroup, too, so it cannot be divided.
    Diagnosis::of(&home).code(0).finds("limits", "ok", "memory by polling");
    home.run(["config", "set", "limits", "cpu=1"]).ok();
    Diagnosis::of(&home).code(0).finds("limits", "warning", "no job will start");
}
