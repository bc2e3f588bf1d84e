//! FAULTS 32 and 33: pids that now belong to unrelated processes, and workers of another boot.

use std::fs;
use std::process::{Child, Command, Stdio};

use domain::values::name::WorkerId;
use rusqlite::Connection;
use store::{Exchange, NewWorker, ServedJobs, Store};
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
    let ground = CrashHome::with_short_leases();
    set_up(&ground, unrelated, "1 2", change);
    ground
}

/// The record says that the session was started between these ticks.
fn set_up(ground: &CrashHome, unrelated: &UnrelatedProcess, ticks: &str, change: impl FnOnce(&mut Origin)) {
    ground.job("a", "true");
    let folder = ground.home.path().join("workers");
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
    ground.store.register(&new).expect("it registers");
    let claimed = ground
        .store
        .exchange(&Exchange { worker: &id, settlements: &[], want: 1, want_limited: 1 })
        .expect("a claim");
    assert_eq!(claimed.claimed.len(), 1, "it has the job");
    let mut record = format!("a 1 {} {ticks}\n", unrelated.0.id()).into_bytes();
    record.resize(256, 0);
    fs::write(folder.join("gone.slots"), record).expect("its slots are written");
}

/// The record matches the unrelated process in every detail, but the worker is in another pid namespace.
fn with_worker_of_another_namespace(unrelated: &UnrelatedProcess, ground: CrashHome) -> CrashHome {
    set_up(&ground, unrelated, "0 99999999999", |origin| origin.pid_namespace += 1);
    ground
}

#[test]
fn fault_38_an_unrelated_process_is_not_killed_for_a_session_id_of_another_pid_namespace() {
    let unrelated = UnrelatedProcess::new();
    let ground = with_worker_of_another_namespace(&unrelated, CrashHome::with_short_leases());
    ground.pool();
    ground.loses("a", 1);
    ground.finish();
    assert_eq!(ground.story("a"), "completed: lost success");
    assert!(unrelated.is_alive());
}

/// The control: without the guard the unrelated process is killed.
#[cfg(debug_assertions)]
#[test]
fn fault_38_without_the_check_of_namespaces_the_unrelated_process_is_killed() {
    let unrelated = UnrelatedProcess::new();
    let ground = CrashHome::with_short_leases().under(vec![("QUEUECTL_WITHOUT".into(), "namespaces".into())]);
    let ground = with_worker_of_another_namespace(&unrelated, ground);
    ground.pool();
    wait("the unrelated process is killed", || !unrelated.is_alive());
    ground.finish();
}

#[test]
fn fault_32_an_unrelated_process_with_the_pids_of_a_dead_worker_is_not_killed() {
    let unrelated = UnrelatedProcess::new();
    let ground = with_worker_of(&unrelated, |_| {});
    ground.recovers("a", || _ = ground.pool());
    ground.finish();
    assert_eq!(ground.story("a"), "completed: lost success");
    assert!(unrelated.is_alive());
}

#[test]
fn fault_32_an_unrelated_process_with_the_pid_of_a_hung_worker_is_not_killed() {
    let unrelated = UnrelatedProcess::new();
    let ground = with_worker_of(&unrelated, |_| {});
    let folder = ground.home.path().join("workers");
    let liveness_lock = LivenessLock::hold(&folder, "gone", Role::Worker).expect("its lock is free");
    ground.pool();
    wait("the reaper logs the problem", || ground.journal().contains("cannot be released"));
    ground.job("b", "sleep 1.5");
    wait("time passes", || ground.story("b") == "completed: success");
    assert!(unrelated.is_alive());
    assert_eq!(ground.story("a"), "processing: running", "it may still run");
    assert_eq!(ground.journal().matches("cannot be released").count(), 1, "it is logged once");
    drop(liveness_lock);
    ground.finish();
    assert!(unrelated.is_alive());
}

#[test]
fn fault_32_neither_a_stop_nor_a_cancel_signals_an_unrelated_process() {
    let unrelated = UnrelatedProcess::new();
    let ground = with_worker_of(&unrelated, |_| {});
    ground.run(&["-q", "cancel", "a"]).ok();
    ground.run(&["-q", "worker", "stop", "--now"]).ok();
    assert!(unrelated.is_alive(), "before the dead worker is reaped");
    let pool = ground.pool();
    wait("the job is over", || ground.story("a") == "cancelled: lost");
    ground.run(&["-q", "worker", "stop", "--now"]).ok();
    assert!(ground.ending_of(pool).success());
    assert!(unrelated.is_alive(), "and afterwards");
    ground.finish();
}

#[test]
fn fault_33_jobs_of_an_earlier_boot_are_reaped_at_once() {
    let unrelated = UnrelatedProcess::new();
    let ground = with_worker_of(&unrelated, |origin| origin.key.boot_id.push('x'));
    ground.recovers("a", || _ = ground.pool());
    ground.finish();
    assert_eq!(ground.story("a"), "completed: lost success");
    assert!(unrelated.is_alive());
}

#[test]
fn fault_33_a_worker_with_an_old_heartbeat_is_alive_while_its_lock_is_held() {
    let ground = CrashHome::new();
    ground.job("a", "until_there go");
    ground.pool();
    ground.runs("a", 1, &[]);
    let database = Connection::open(ground.home.database()).expect("the database opens");
    database.execute("update workers set last_heartbeat = 0", []).expect("the statement is right");
    ground.pool();
    ground.put("go");
    ground.finish();
    assert_eq!(ground.story("a"), "completed: success");
}
