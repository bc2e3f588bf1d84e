//! FAULTS 32 and 33: pids that now belong to unrelated processes, and workers of another boot.

use std::fs;
use std::process::{Child, Command, Stdio};

use domain::values::name::WorkerId;
use rusqlite::Connection;
use store::{Exchange, NewWorker, ServedJobs};
use sys::fs::liveness_lock::{LivenessLock, Role};
use sys::host;
use sys::host::Origin;

use super::harness::CrashHome;
use super::processes::{is_alive, pid, wait};

/// A process in its own session that belongs to no job.
struct UnrelatedProcess(Child);

impl UnrelatedProcess {
    fn new() -> Self {
        // `setsid` does not lead a group, so it executes the command without forking.
        let mut command = Command::new("setsid");
        command.args(["sleep", "600"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.spawn().expect("it starts"))
    }

    fn is_alive(&self) -> bool {
        is_alive(pid(self.0.id()))
    }
}

impl Drop for UnrelatedProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A worker that runs job `a` according to the store and its files; all its pids are those of the unrelated process.
fn with_worker_of(unrelated: &UnrelatedProcess, change: impl FnOnce(&mut Origin)) -> CrashHome {
    let crash_home = CrashHome::with_short_leases();
    set_up(&crash_home, unrelated, "1 2", change);
    crash_home
}

/// The record says that the session was started between these ticks.
fn set_up(
    crash_home: &CrashHome,
    unrelated: &UnrelatedProcess,
    ticks: &str,
    change: impl FnOnce(&mut Origin),
) {
    crash_home.job("a", "true");
    let folder = crash_home.home.path().join("workers");
    fs::create_dir_all(&folder).expect("the folder of workers");
    let id: WorkerId = "gone".parse().expect("a worker id");
    drop(LivenessLock::hold(&folder, "gone", Role::Worker).expect("its lock is free"));
    let mut origin = Origin::of_worker(&folder, "gone").expect("its origin");
    change(&mut origin);
    let new = NewWorker {
        id: id.clone(),
        host: host::name(),
        origin,
        pid: unrelated.0.id(),
        supervisor_pid: Some(unrelated.0.id()),
        served: ServedJobs::All,
        concurrency: 1,
        folder: folder.clone(),
        stop_seen: None,
    };
    crash_home.store.register(&new).expect("it registers");
    let claimed = crash_home
        .store
        .exchange(&Exchange { worker: &id, settlements: &[], want: 1, want_limited: 1 })
        .expect("a claim");
    assert_eq!(claimed.claimed.len(), 1, "it has the job");
    let mut record = format!("a 1 {} {ticks}\n", unrelated.0.id()).into_bytes();
    record.resize(256, 0);
    fs::write(folder.join("gone.slots"), record).expect("its slots are written");
}

/// The record matches the unrelated process in every detail, but the worker is in another pid namespace.
fn with_worker_of_another_namespace(unrelated: &UnrelatedProcess, crash_home: CrashHome) -> CrashHome {
    set_up(&crash_home, unrelated, "0 99999999999", |origin| origin.pid_namespace += 1);
    crash_home
}

#[test]
fn fault_38_an_unrelated_process_is_not_killed_for_a_session_id_of_another_pid_namespace() {
    let unrelated = UnrelatedProcess::new();
    let crash_home = with_worker_of_another_namespace(&unrelated, CrashHome::with_short_leases());
    crash_home.pool();
    crash_home.loses("a", 1);
    crash_home.finish();
    assert_eq!(crash_home.story("a"), "completed: lost success");
    assert!(unrelated.is_alive());
}

/// The control: without the guard the unrelated process is killed.
#[cfg(debug_assertions)]
#[test]
fn fault_38_without_the_check_of_namespaces_the_unrelated_process_is_killed() {
    let unrelated = UnrelatedProcess::new();
    let crash_home =
        CrashHome::with_short_leases().under(vec![("QUEUECTL_WITHOUT".into(), "namespaces".into())]);
    let crash_home = with_worker_of_another_namespace(&unrelated, crash_home);
    crash_home.pool();
    wait("the unrelated process is killed", || !unrelated.is_alive());
    crash_home.finish();
}

#[test]
fn fault_32_an_unrelated_process_with_the_pids_of_a_dead_worker_is_not_killed() {
    let unrelated = UnrelatedProcess::new();
    let crash_home = with_worker_of(&unrelated, |_| {});
    crash_home.recovers("a", || _ = crash_home.pool());
    crash_home.finish();
    assert_eq!(crash_home.story("a"), "completed: lost success");
    assert!(unrelated.is_alive());
}

#[test]
fn fault_32_an_unrelated_process_with_the_pid_of_a_hung_worker_is_not_killed() {
    let unrelated = UnrelatedProcess::new();
    let crash_home = with_worker_of(&unrelated, |_| {});
    let folder = crash_home.home.path().join("workers");
    let liveness_lock = LivenessLock::hold(&folder, "gone", Role::Worker).expect("its lock is free");
    crash_home.pool();
    wait("the reaper logs the problem", || crash_home.journal().contains("cannot be released"));
    crash_home.job("b", "sleep 1.5");
    wait("time passes", || crash_home.story("b") == "completed: success");
    assert!(unrelated.is_alive());
    assert_eq!(crash_home.story("a"), "processing: running", "it may still run");
    assert_eq!(crash_home.journal().matches("cannot be released").count(), 1, "it is logged once");
    drop(liveness_lock);
    crash_home.finish();
    assert!(unrelated.is_alive());
}

#[test]
fn fault_32_neither_a_stop_nor_a_cancel_signals_an_unrelated_process() {
    let unrelated = UnrelatedProcess::new();
    let crash_home = with_worker_of(&unrelated, |_| {});
    crash_home.run(&["-q", "cancel", "a"]).ok();
    crash_home.run(&["-q", "worker", "stop", "--now"]).ok();
    assert!(unrelated.is_alive(), "before the dead worker is reaped");
    let pool = crash_home.pool();
    wait("the job is over", || crash_home.story("a") == "cancelled: lost");
    crash_home.run(&["-q", "worker", "stop", "--now"]).ok();
    assert!(crash_home.ending_of(pool).success());
    assert!(unrelated.is_alive(), "and afterwards");
    crash_home.finish();
}

#[test]
fn fault_33_jobs_of_an_earlier_boot_are_reaped_at_once() {
    let unrelated = UnrelatedProcess::new();
    let crash_home = with_worker_of(&unrelated, |origin| origin.key.boot_id.push('x'));
    crash_home.recovers("a", || _ = crash_home.pool());
    crash_home.finish();
    assert_eq!(crash_home.story("a"), "completed: lost success");
    assert!(unrelated.is_alive());
}

#[test]
fn fault_33_a_worker_with_an_old_heartbeat_is_alive_while_its_lock_is_held() {
    let crash_home = CrashHome::new();
    crash_home.job("a", "until_there go");
    crash_home.pool();
    crash_home.runs("a", 1, &[]);
    let database = Connection::open(crash_home.home.database()).expect("the database opens");
    database.execute("update workers set last_heartbeat = 0", []).expect("the statement is right");
    crash_home.pool();
    crash_home.put("go");
    crash_home.finish();
    assert_eq!(crash_home.story("a"), "completed: success");
}
