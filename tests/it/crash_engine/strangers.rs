//! FAULTS 32 and 33: pids that belong to somebody else by now, and workers of another boot.

use std::fs;
use std::process::{Child, Command, Stdio};

use domain::values::name::WorkerId;
use rusqlite::Connection;
use store::{Exchange, NewWorker, ServedJobs, Store};
use sys::fs::liveness_lock::{LivenessLock, Role};
use sys::host;
use sys::host::Origin;

use super::harness::Ground;
use super::processes::{is_alive, pid, wait};

/// An innocent process in a session of its own.
struct Stranger(Child);

impl Stranger {
    fn new() -> Self {
        // It is not the leader of a group, so it becomes the command in its own place.
        let mut command = Command::new("setsid");
        command.args(["sleep", "600"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.spawn().expect("it starts"))
    }

    fn lives(&self) -> bool {
        is_alive(pid(self.0.id()))
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A worker that runs job `a`, as the store and its files tell it; all its pids are the stranger's.
fn with_worker_of(stranger: &Stranger, change: impl FnOnce(&mut Origin)) -> Ground {
    let ground = Ground::with_short_leases();
    set_up(&ground, stranger, "1 2", change);
    ground
}

/// The record says that the session was begun between these ticks.
fn set_up(ground: &Ground, stranger: &Stranger, ticks: &str, change: impl FnOnce(&mut Origin)) {
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
        pid: stranger.0.id(),
        supervisor_pid: Some(stranger.0.id()),
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
    let mut record = format!("a 1 {} {ticks}\n", stranger.0.id()).into_bytes();
    record.resize(256, 0);
    fs::write(folder.join("gone.slots"), record).expect("its slots are written");
}

/// All that its record says is true of the stranger, but in another pid namespace.
fn with_worker_of_another_namespace(stranger: &Stranger, ground: Ground) -> Ground {
    set_up(&ground, stranger, "0 99999999999", |origin| origin.pid_namespace += 1);
    ground
}

#[test]
fn fault_38_a_stranger_with_the_session_of_another_pid_namespace_is_left_alone() {
    let stranger = Stranger::new();
    let ground = with_worker_of_another_namespace(&stranger, Ground::with_short_leases());
    ground.pool();
    ground.loses("a", 1);
    ground.finish();
    assert_eq!(ground.story("a"), "completed: lost success");
    assert!(stranger.lives());
}

/// The control: without the guard the stranger dies.
#[cfg(debug_assertions)]
#[test]
fn fault_38_without_the_check_of_namespaces_the_stranger_is_killed() {
    let stranger = Stranger::new();
    let ground = Ground::with_short_leases().under(vec![("QUEUECTL_WITHOUT".into(), "namespaces".into())]);
    let ground = with_worker_of_another_namespace(&stranger, ground);
    ground.pool();
    wait("the stranger is killed", || !stranger.lives());
    ground.finish();
}

#[test]
fn fault_32_a_stranger_with_the_pids_of_a_dead_worker_is_left_alone() {
    let stranger = Stranger::new();
    let ground = with_worker_of(&stranger, |_| {});
    ground.recovers("a", || _ = ground.pool());
    ground.finish();
    assert_eq!(ground.story("a"), "completed: lost success");
    assert!(stranger.lives());
}

#[test]
fn fault_32_a_stranger_with_the_pid_of_a_hung_worker_is_left_alone() {
    let stranger = Stranger::new();
    let ground = with_worker_of(&stranger, |_| {});
    let folder = ground.home.path().join("workers");
    let liveness_lock = LivenessLock::hold(&folder, "gone", Role::Worker).expect("its lock is free");
    ground.pool();
    wait("somebody complains", || ground.journal().contains("cannot be given back"));
    ground.job("b", "sleep 1.5");
    wait("time passes", || ground.story("b") == "completed: success");
    assert!(stranger.lives());
    assert_eq!(ground.story("a"), "processing: running", "it may still run");
    assert_eq!(ground.journal().matches("cannot be given back").count(), 1, "once is enough");
    drop(liveness_lock);
    ground.finish();
    assert!(stranger.lives());
}

#[test]
fn fault_32_neither_a_stop_nor_a_cancel_signals_a_stranger() {
    let stranger = Stranger::new();
    let ground = with_worker_of(&stranger, |_| {});
    ground.run(&["-q", "cancel", "a"]).ok();
    ground.run(&["-q", "worker", "stop", "--now"]).ok();
    assert!(stranger.lives(), "before anybody has looked after the dead worker");
    let pool = ground.pool();
    wait("the job is over", || ground.story("a") == "cancelled: lost");
    ground.run(&["-q", "worker", "stop", "--now"]).ok();
    assert!(ground.ending_of(pool).success());
    assert!(stranger.lives(), "nor afterwards");
    ground.finish();
}

#[test]
fn fault_33_what_ran_under_another_boot_is_given_back_at_once() {
    let stranger = Stranger::new();
    let ground = with_worker_of(&stranger, |origin| origin.key.boot_id.push('x'));
    ground.recovers("a", || _ = ground.pool());
    ground.finish();
    assert_eq!(ground.story("a"), "completed: lost success");
    assert!(stranger.lives());
}

#[test]
fn fault_33_a_worker_that_was_never_heard_from_in_years_is_no_more_dead_than_its_lock() {
    let ground = Ground::new();
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
