//! Commands that run as another user, as with sudo and setuid programs: the worker may not signal them.

use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use rustix::process::Signal;

use crate::cli::harness::{RunResult, UNPRIVILEGED, allow, is_root};
use crate::engine::harness::{Home, Pool, is_alive, send, wait_until};

/// The program that becomes root, in the folder of a home.
pub(crate) const BECOME_ROOT: &str = "become-root";
/// Becomes root permanently. It runs the command in its arguments; without arguments it writes its pid to `deaf` and
/// runs until the test creates `release`.
const SOURCE: &str = r#"
#define _GNU_SOURCE
#include <stdio.h>
#include <unistd.h>
int main(int argc, char **argv) {
    if (setresuid(0, 0, 0)) return 77;
    if (argc > 1) return execv(argv[1], argv + 1);
    FILE *file = fopen("deaf", "a");
    if (file) { fprintf(file, "%d\n", (int)getpid()); fclose(file); }
    while (access("release", F_OK)) usleep(20000);
    return 0;
}
"#;

/// A home of an unprivileged user, with a setuid-root program in its folder.
struct OtherUser {
    home: Home,
}

impl OtherUser {
    fn new() -> Option<Self> {
        let other = Self { home: home_of_unprivileged_user()? };
        other.run(&["config", "set", "kill_grace", "100ms"]).ok();
        Some(other)
    }

    fn run(&self, args: &[&str]) -> RunResult {
        self.home.call(args).unprivileged().run()
    }

    fn enqueue(&self, id: &str, command: &str, flags: &[&str]) {
        let call = ["enqueue", "-q", "--id", id, "--command", command, "--max-retries", "0"];
        self.run(&[&call, flags].concat()).ok();
    }

    fn pool(&self) -> Pool<'_> {
        self.pool_of("1")
    }

    fn pool_of(&self, slots: &str) -> Pool<'_> {
        let call = self.home.call(["worker", "run", "--concurrency", slots]);
        Pool::spawn(&self.home, call.unprivileged().into_command())
    }

    /// The pid of the latest process that became root.
    fn deaf(&self) -> Option<u32> {
        let pids = self.home.read("deaf");
        pids.lines().last().filter(|_| pids.ends_with('\n')).and_then(|pid| pid.parse().ok())
    }

    fn story(&self, id: &str) -> String {
        let job = self.run(&["show", id, "--json"]).ok().json();
        let history = job["history"].as_array().expect("a list").iter();
        let outcomes: Vec<&str> = history.map(|row| row["outcome"].as_str().unwrap_or("running")).collect();
        format!("{}: {}", job["state"].as_str().expect("text"), outcomes.join(" "))
    }

    fn becomes(&self, id: &str, story: &str) {
        wait_until(&format!("{id} is {story}"), || self.story(id) == story);
    }

    fn kill_worker(&self) {
        let workers = self.run(&["worker", "list", "--json"]).ok().json();
        let living = workers.as_array().expect("a list").iter().filter_map(|worker| worker["pid"].as_u64());
        let pid = living.filter_map(|pid| u32::try_from(pid).ok()).rfind(|pid| is_alive(*pid));
        send(pid.expect("a worker is alive"), Signal::KILL);
    }

    fn release(&self) {
        self.home.file("release", "");
    }

    /// Waits until `status` reports the process of this job as unkillable.
    fn wait_until_reported(&self, id: &str) {
        let deaf = self.deaf().expect("it runs");
        let line = format!("process {deaf} of job {id} cannot be killed (this user may not signal it)");
        wait_until("status reports it", || self.run(&["status"]).ok().stdout.contains(&line));
    }
}

/// A home in a folder of an unprivileged user, with [`BECOME_ROOT`] in that folder. `None` if the test cannot run: it
/// needs root, and a filesystem that allows setuid programs.
pub(crate) fn home_of_unprivileged_user() -> Option<Home> {
    if !is_root() {
        println!("skipped: only root can make a setuid program");
        return None;
    }
    let home = Home::new();
    // The program runs any command as root: only that user may execute it.
    allow(home.folder(), 0o700);
    let source = home.file("become-root.c", SOURCE);
    let program = home.folder().join(BECOME_ROOT);
    let built = Command::new("cc").arg("-o").arg(&program).arg(&source).status().expect("cc runs");
    assert!(built.success(), "the program is built");
    allow(&program, 0o4755);
    chown(home.folder(), Some(UNPRIVILEGED), Some(UNPRIVILEGED)).expect("the owner is changed");
    if !becomes_root(&program, &home) {
        println!("skipped: {} is mounted nosuid", home.folder().display());
        return None;
    }
    Some(home)
}

/// Whether the program may become root when another user starts it.
fn becomes_root(program: &Path, home: &Home) -> bool {
    let release = home.file("release", "");
    let status =
        Command::new(program).current_dir(home.folder()).uid(UNPRIVILEGED).gid(UNPRIVILEGED).status();
    std::fs::remove_file(release).expect("it was there");
    let is_root = status.expect("it runs").success();
    if is_root {
        std::fs::remove_file(home.folder().join("deaf")).expect("it has written its pid");
    }
    is_root
}

#[test]
fn fault_42_a_slot_whose_command_cannot_be_killed_is_replaced() {
    let Some(other) = OtherUser::new() else { return };
    other.enqueue("deaf", "./become-root", &["--timeout", "300ms"]);
    other.enqueue("next", "true", &[]);
    let pool = other.pool();
    other.becomes("next", "completed: success");
    assert_eq!(other.story("deaf"), "processing: running", "its second attempt must not start yet");
    other.wait_until_reported("deaf");
    other.run(&["explain", "deaf"]).ok().shows("cannot be killed");
    let journal = other.home.journal();
    assert!(journal.contains("of deaf attempt 1 cannot be killed: this user may not signal it"), "{journal}");
    other.enqueue("another", "true", &[]);
    other.becomes("another", "completed: success");
    other.release();
    other.becomes("deaf", "dead: timeout");
    other.run(&["status"]).ok().shows_no("cannot be killed");
    pool.signal(Signal::TERM);
    pool.ends_well();
}

#[test]
fn fault_42_an_unkillable_orphan_keeps_only_its_own_job_open() {
    let Some(other) = OtherUser::new() else { return };
    other.enqueue("deaf", "./become-root & until [ -e deaf ]; do sleep 0.02; done", &[]);
    other.enqueue("next", "true", &[]);
    let pool = other.pool();
    other.becomes("next", "completed: success");
    other.wait_until_reported("deaf");
    other.enqueue("another", "true", &[]);
    other.becomes("another", "completed: success");
    assert_eq!(other.story("deaf"), "processing: running");
    other.release();
    other.becomes("deaf", "completed: success");
    pool.signal(Signal::TERM);
    pool.ends_well();
}

#[test]
fn fault_42_an_unkillable_orphan_can_print_until_it_ends() {
    let Some(other) = OtherUser::new() else { return };
    // More than a pipe holds.
    let loud =
        "echo $$ >> deaf; until [ -e release ]; do sleep 0.02; done; yes 0123456789abcde | head -n 65536";
    let line = format!("./become-root /bin/sh -c '{loud}' & until [ -e deaf ]; do sleep 0.02; done");
    other.enqueue("loud", &line, &[]);
    let pool = other.pool();
    wait_until("it runs", || other.deaf().is_some());
    other.wait_until_reported("loud");
    other.release();
    other.becomes("loud", "completed: success");
    let printed = other.run(&["logs", "loud"]).ok().stdout;
    assert_eq!(printed.lines().filter(|line| *line == "0123456789abcde").count(), 65_536);
    pool.signal(Signal::TERM);
    pool.ends_well();
}

#[test]
fn fault_42_a_pool_stops_despite_an_unkillable_command_and_the_next_pool_waits_for_it() {
    let Some(other) = OtherUser::new() else { return };
    other.enqueue("deaf", "./become-root", &[]);
    let pool = other.pool();
    wait_until("it runs", || other.deaf().is_some());
    let worker = || other.run(&["worker", "list", "--json"]).ok().json()[0].clone();
    let id = worker()["id"].as_str().expect("a worker").to_owned();
    pool.signal(Signal::TERM);
    wait_until("it drains", || worker()["state"] == "draining");
    pool.signal(Signal::TERM);
    pool.ends_well();
    assert!(is_alive(other.deaf().expect("it runs")));
    assert_eq!(other.story("deaf"), "processing: running");
    other.wait_until_reported("deaf");
    other.run(&["worker", "forget", &id]).fails(4).says("it left processes that cannot be killed: ");
    let pool = other.pool();
    other.enqueue("next", "true", &[]);
    other.becomes("next", "completed: success");
    wait_until("another worker reports it", || {
        other.home.journal().contains("cannot be released yet: it left processes")
    });
    assert_eq!(other.story("deaf"), "processing: running", "the first attempt is still running");
    other.release();
    other.becomes("deaf", "completed: lost success");
    pool.signal(Signal::TERM);
    pool.ends_well();
}

#[test]
fn fault_42_a_dead_worker_is_replaced_despite_its_unkillable_command() {
    let Some(other) = OtherUser::new() else { return };
    other.enqueue("deaf", "./become-root", &[]);
    other.enqueue("neighbour", "touch started; until [ -e go ]; do sleep 0.02; done", &[]);
    let pool = other.pool_of("2");
    wait_until("they run", || other.deaf().is_some() && other.home.folder().join("started").exists());
    other.kill_worker();
    other.home.file("go", "");
    other.becomes("neighbour", "completed: lost success");
    other.wait_until_reported("deaf");
    assert_eq!(other.story("deaf"), "processing: running", "the first attempt is still running");
    other.release();
    other.becomes("deaf", "completed: lost success");
    pool.signal(Signal::TERM);
    pool.ends_well();
}

#[test]
fn fault_42_an_unkillable_process_is_not_assigned_to_the_next_worker() {
    let Some(other) = OtherUser::new() else { return };
    other.enqueue("deaf", "./become-root", &[]);
    let pool = other.pool();
    wait_until("it runs", || other.deaf().is_some());
    other.kill_worker();
    other.wait_until_reported("deaf");
    other.enqueue("next", "touch started; until [ -e go ]; do sleep 0.02; done", &[]);
    wait_until("it runs", || other.home.folder().join("started").exists());
    other.kill_worker();
    other.home.file("go", "");
    other.becomes("next", "completed: lost success");
    assert_eq!(other.story("deaf"), "processing: running", "the first attempt is still running");
    other.release();
    other.becomes("deaf", "completed: lost success");
    pool.signal(Signal::TERM);
    pool.ends_well();
}
