//! Clocks, limits and filesystems.

use std::path::Path;

use sys::fs::disk::Filesystem;
use sys::process::brand::Brand;

use super::super::harness::Home;
use super::{Visit, tamper};

#[test]
fn a_clock_that_was_set_back_is_told() {
    let home = Home::with_jobs(&["a"]);
    Visit::pay(&home).finds("clock", "ok", "not behind");
    tamper(&home, "update jobs set updated_at = updated_at + 7200000");
    Visit::pay(&home).code(0).finds("clock", "warning", "behind the newest time in the queue");
}

#[test]
fn whether_leftovers_can_be_told_apart_is_told() {
    let level = if Brand::is_allowed() { "ok" } else { "warning" };
    Visit::pay(&Home::with_jobs(&["a"])).code(0).finds("brand", level, "");
}

#[test]
fn limits_that_are_too_tight_are_told() {
    let home = Home::with_jobs(&["a"]);
    let visit = |limit: &str| Visit { ran: home.call(["doctor", "--json"]).with_limit(limit).run() };
    visit("-n 64").code(0).finds("open_files", "ok", "64 open files are allowed");
    visit("-n 39").code(0).finds("open_files", "warning", "a worker may need 40").advises("ulimit -n");
    visit("-f 2048").code(0).finds("file_size", "warning", "are limited to 1 MiB");
    home.run(["config", "set", "concurrency", "100"]).ok();
    visit("-n 64").code(0).finds("open_files", "warning", "a worker may need 832");
    visit("-n 900; ulimit -Sn 64").code(0).finds("open_files", "ok", "900 open files are allowed");
}

#[test]
fn a_home_in_memory_is_told() {
    let memory = Path::new("/dev/shm");
    if !matches!(Filesystem::of(memory), Ok(Filesystem::Memory(_))) {
        return; // This machine has none.
    }
    let folder = tempfile::tempdir_in(memory).expect("a folder");
    let home = Home::new();
    let ran = home.call_without_home(["doctor", "--json"]).env("QUEUECTL_HOME", folder.path()).run();
    Visit { ran }.code(0).finds("filesystem", "warning", "lost at reboot");
}

#[test]
fn the_report_says_which_limits_of_jobs_are_enforced() {
    let home = Home::with_jobs(&["a"]);
    // Whoever runs the tests is in the cgroup too, so that it cannot be divided.
    Visit::pay(&home).code(0).finds("limits", "ok", "memory by polling");
    home.run(["config", "set", "limits", "cpu=1"]).ok();
    Visit::pay(&home).code(0).finds("limits", "warning", "no job will start");
}
