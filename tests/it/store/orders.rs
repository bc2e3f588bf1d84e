//! What a worker is told to do.

use std::time::Duration;

use domain::job::outcome::Outcome;
use domain::settings::SettingKey;
use domain::values::timestamp::Timestamp;
use store::{NewWorker, Orders, ServedJobs, Stop, WorkerState};
use sys::host::{HostKey, Origin};

use super::fixture::{FAILURE, Fixture, SOMEBODY, every_store, new_worker, serving};
use super::new_job::{job, job_id};

every_store!(
    a_new_worker_is_told_to_go_on,
    a_changed_setting_is_told,
    a_draining_worker_reads_so,
    cancelled_jobs_are_told_to_their_worker,
    idle_means_that_nothing_is_left_to_do,
    idle_looks_only_at_what_is_served,
    a_due_job_is_to_be_done_before_anybody_promotes_it,
    dependents_that_were_not_told_yet_are_to_be_done,
    a_worker_for_one_job_is_idle_when_that_is_over,
    a_stop_concerns_those_who_are_there,
    a_stop_concerns_whoever_takes_the_place_of_one_that_crashed,
    a_stop_can_name_one_home_on_one_machine,
    the_earliest_moment_to_kill_counts,
    a_jump_of_the_clock_kills_nobody,
    old_stops_are_forgotten_but_none_that_came_since,
);

fn a_new_worker_is_told_to_go_on(fixture: &Fixture) {
    let worker = fixture.worker("w");
    let orders = fixture.orders(&worker);
    let expected = Orders {
        state: WorkerState::Running,
        drain: false,
        kill_at: None,
        cancelled: Vec::new(),
        settings: domain::settings::Settings::default(),
        next_fire: None,
        idle: true,
        next_delivery: None,
    };
    assert_eq!(orders, expected);
}

fn a_changed_setting_is_told(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.set(SettingKey::KillGrace, "3s");
    assert_eq!(fixture.orders(&worker).settings.kill_grace, Duration::from_secs(3));
}

fn a_draining_worker_reads_so(fixture: &Fixture) {
    let worker = fixture.worker("w");
    for state in [WorkerState::Draining, WorkerState::Draining, WorkerState::Stopped] {
        fixture.store.set_worker_state(&worker, state).expect("set_worker_state");
        assert_eq!(fixture.orders(&worker).state, state);
    }
    fixture.store.set_worker_state(&worker, WorkerState::Draining).expect("set_worker_state");
    assert_eq!(fixture.orders(&worker).state, WorkerState::Stopped, "there is no way back");
}

fn cancelled_jobs_are_told_to_their_worker(fixture: &Fixture) {
    let (worker, other) = (fixture.worker("w"), fixture.worker("other"));
    fixture.enqueue_all(["a", "b", "c", "d"].map(job));
    let leases = fixture.leases(&worker, 3);
    fixture.lease(&other);
    for id in ["c", "a", "d"] {
        fixture.cancel(id);
    }
    assert_eq!(fixture.orders(&worker).cancelled, [leases[0].clone(), leases[2].clone()]);
    fixture.settle(&worker, &leases[0], Outcome::Cancelled);
    assert_eq!(fixture.orders(&worker).cancelled, [leases[2].clone()]);
}

fn idle_means_that_nothing_is_left_to_do(fixture: &Fixture) {
    let (worker, other) = (fixture.worker("w"), fixture.worker("other"));
    let idle = || fixture.orders(&worker).idle;
    fixture.enqueue("a");
    assert!(!idle(), "it is ready");
    let lease = fixture.lease(&other);
    assert!(!idle(), "another worker runs it");
    fixture.settle(&other, &lease, FAILURE);
    assert!(!idle(), "it waits for its retry");
    fixture.pause("default");
    assert!(idle(), "a paused queue holds nobody");
    fixture.resume("default");
    assert!(!idle());
    fixture.pass_secs(2);
    fixture.run(&other, Outcome::Success);
    assert!(idle(), "it is done");

    fixture.enqueue_all([job("later").delay_secs(60), job("blocked").after(&["later"])]);
    assert!(idle(), "what has its time or waits for others holds nobody");
    fixture.enqueue(job("dead").max_retries(0));
    fixture.run(&other, FAILURE);
    assert!(idle(), "what is dead is over");
}

fn idle_looks_only_at_what_is_served(fixture: &Fixture) {
    let worker = fixture.worker_serving("w", serving(&["a", "not-yet"]));
    let idle = || fixture.orders(&worker).idle;
    fixture.enqueue(job("elsewhere").queue("b"));
    assert!(idle());
    fixture.enqueue(job("late").queue("not-yet").delay_secs(1));
    assert!(idle());
    fixture.pass_secs(1);
    assert!(!idle());
    fixture.cancel("late");
    fixture.enqueue(job("here").queue("a"));
    assert!(!idle());
}

fn a_due_job_is_to_be_done_before_anybody_promotes_it(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue(job("a").delay_secs(10));
    fixture.pass_millis(9_999);
    assert!(fixture.orders(&worker).idle);
    fixture.pass_millis(1);
    assert!(!fixture.orders(&worker).idle);
    fixture.pause("default");
    assert!(fixture.orders(&worker).idle);
}

/// More than any store should tell in one transaction.
const CROWD: usize = 1_500;

fn dependents_that_were_not_told_yet_are_to_be_done(fixture: &Fixture) {
    let worker = fixture.worker_serving("w", serving(&["last"]));
    let other = fixture.worker_serving("other", serving(&["first"]));
    fixture.enqueue(job("parent").queue("first"));
    // Those that are told first are none of its own.
    fixture.enqueue_all((0..CROWD).map(|n| {
        let queue = if n + 1 < CROWD { "first" } else { "last" };
        job(&format!("child{n}")).queue(queue).after(&["parent"])
    }));
    assert!(fixture.orders(&worker).idle, "it is blocked");
    fixture.run(&other, Outcome::Success);
    assert!(!fixture.orders(&worker).idle, "told or not");
    fixture.run(&worker, Outcome::Success);
    assert!(fixture.orders(&worker).idle);
}

fn a_worker_for_one_job_is_idle_when_that_is_over(fixture: &Fixture) {
    let worker = fixture.worker_serving("w", ServedJobs::Job(job_id("a")));
    let idle = || fixture.orders(&worker).idle;
    assert!(idle(), "there is no such job");
    fixture.enqueue_all([job("a").delay_secs(1), job("b")]);
    assert!(!idle(), "its time will come");
    fixture.pass_secs(1);
    fixture.pause("default");
    assert!(!idle(), "nor is a paused queue the end of it");
    fixture.resume("default");
    fixture.run(&worker, Outcome::Success);
    assert!(idle(), "whatever else is ready");
    fixture.remove("a");
    assert!(idle());
}

fn stop(fixture: &Fixture, home: Option<&str>, kill_at: Option<Timestamp>) {
    let stop = Stop { home: home.map(|home| on("machine", home)), kill_at };
    fixture.store.stop(&stop, SOMEBODY).expect("stop");
}

fn a_stop_concerns_those_who_are_there(fixture: &Fixture) {
    let first = fixture.worker("first");
    stop(fixture, None, None);
    let second = fixture.worker("second");
    let drain = |worker| fixture.orders(worker).drain;
    assert_eq!([&first, &second].map(drain), [true, false], "who comes later does not stop");
    stop(fixture, None, None);
    assert_eq!([&first, &second].map(drain), [true, true]);
    assert_eq!(fixture.orders(&first).state, WorkerState::Running, "until it says otherwise");
}

fn a_stop_concerns_whoever_takes_the_place_of_one_that_crashed(fixture: &Fixture) {
    let register = |id, stop_seen| {
        let registered = fixture.store.register(&NewWorker { stop_seen, ..new_worker(id) });
        registered.expect("register").stop_seen
    };
    stop(fixture, None, None);
    let seen = register("w1", None);
    fixture.reap(&"w1".parse().expect("a worker id"));
    // Nobody is there to hear it.
    stop(fixture, None, None);
    assert_eq!(register("w2", Some(seen)), seen, "for the next one, too");
    assert!(fixture.orders(&"w2".parse().expect("a worker id")).drain);
    assert!(register("new", None) > seen);
    assert!(!fixture.orders(&"new".parse().expect("a worker id")).drain, "a new pool is not meant");
}

fn on(machine: &str, home: &str) -> HostKey {
    HostKey { machine_id: machine.to_owned(), boot_id: "any".to_owned(), home_id: home.to_owned() }
}

/// Neither the name of a machine nor its boot says whose workers are to stop.
fn a_stop_can_name_one_home_on_one_machine(fixture: &Fixture) {
    let worker = |id, key| {
        let origin = Origin { key, ..Origin::default() };
        fixture.register(NewWorker { origin, ..new_worker(id) })
    };
    let here = worker("here", on("machine", "here"));
    let there = worker("there", HostKey { boot_id: "other".to_owned(), ..on("machine", "there") });
    let copy = worker("copy", on("another", "there"));
    let drain = |worker| fixture.orders(worker).drain;
    stop(fixture, Some("there"), None);
    assert_eq!([&here, &there, &copy].map(drain), [false, true, false]);
    stop(fixture, Some("nowhere"), None);
    assert_eq!([&here, &there, &copy].map(drain), [false, true, false]);
    stop(fixture, None, None);
    assert_eq!([&here, &there, &copy].map(drain), [true, true, true]);
}

fn the_earliest_moment_to_kill_counts(fixture: &Fixture) {
    let worker = fixture.worker("w");
    let in_secs = |secs| fixture.now().saturating_add(Duration::from_secs(secs));
    let (soon, later) = (in_secs(10), in_secs(60));
    for (order, expected) in
        [(None, None), (Some(later), Some(later)), (Some(soon), Some(soon)), (Some(later), Some(soon))]
    {
        stop(fixture, None, order);
        assert_eq!(fixture.orders(&worker).kill_at, expected);
    }
    stop(fixture, Some("elsewhere"), Some(fixture.now()));
    stop(fixture, None, None);
    assert_eq!(fixture.orders(&worker).kill_at, Some(soon), "one that would wait changes nothing");
}

fn a_jump_of_the_clock_kills_nobody(fixture: &Fixture) {
    const DAY_MILLIS: i64 = 24 * 3_600 * 1_000;
    let worker = fixture.worker("w");
    stop(fixture, None, Some(fixture.now().saturating_add(Duration::from_secs(60))));
    for jump in [DAY_MILLIS, -3 * DAY_MILLIS] {
        fixture.clock.jump(jump);
        let left = fixture.orders(&worker).kill_at.map(|at| at.since(fixture.now()));
        assert_eq!(left, Some(Duration::from_secs(60)), "a jump by {jump} ms");
    }
    fixture.pass_secs(20);
    let left = fixture.orders(&worker).kill_at.map(|at| at.since(fixture.now()));
    assert_eq!(left, Some(Duration::from_secs(40)));
}

fn old_stops_are_forgotten_but_none_that_came_since(fixture: &Fixture) {
    fixture.set(SettingKey::Durability, "normal");
    let first = fixture.store.register(&new_worker("first")).expect("register").stop_seen;
    for _ in 0..1_200 {
        stop(fixture, None, None);
    }
    let last = fixture.store.register(&new_worker("last")).expect("register").stop_seen;
    assert_eq!(last - first, 1_200, "no number was used twice");
    let orders = |id: &str| fixture.orders(&id.parse().expect("a worker id"));
    assert!(orders("first").drain);
    assert!(!orders("last").drain);
}
