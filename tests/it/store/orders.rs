//! The orders that a worker polls for.

use std::time::Duration;

use domain::job::outcome::Outcome;
use domain::settings::SettingKey;
use domain::values::timestamp::Timestamp;
use store::{NewWorker, Orders, ServedJobs, Stop, StopScope, WorkerState};
use sys::host::{HostKey, Origin};

use super::fixture::new_job::{job, job_id};
use super::fixture::{ACTOR, FAILURE, Fixture, every_store, new_worker, serving};

every_store!(
    a_new_worker_has_no_orders,
    orders_contain_changed_settings,
    orders_contain_the_state_of_the_worker,
    orders_list_the_cancelled_jobs_of_the_worker,
    a_worker_is_idle_when_no_work_is_left,
    idle_considers_only_served_queues,
    a_worker_is_not_idle_when_an_unpromoted_job_is_due,
    a_worker_is_not_idle_when_dependents_are_about_to_be_unblocked,
    a_worker_for_one_job_is_idle_when_the_job_is_finished,
    a_stop_applies_to_registered_workers,
    a_stop_applies_to_the_replacement_of_a_crashed_worker,
    a_stop_can_apply_to_one_home_on_one_machine,
    a_stop_can_apply_to_one_worker,
    the_earliest_kill_time_counts,
    a_clock_jump_does_not_change_the_time_until_the_kill,
    old_stops_are_deleted_but_none_that_a_worker_has_not_seen,
);

fn a_new_worker_has_no_orders(fixture: &Fixture) {
    let worker = fixture.worker("w");
    let orders = fixture.orders(&worker);
    let expected = Orders {
        state: WorkerState::Running,
        drain: false,
        kill_at: None,
        cancelled: Vec::new(),
        paused: Vec::new(),
        settings: fixture.store.default_settings(),
        next_fire: None,
        next_delivery: None,
    };
    assert_eq!(orders, expected);
}

fn orders_contain_changed_settings(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.set(SettingKey::KillGrace, "3s");
    assert_eq!(fixture.orders(&worker).settings.kill_grace, Duration::from_secs(3));
}

fn orders_contain_the_state_of_the_worker(fixture: &Fixture) {
    let worker = fixture.worker("w");
    for state in [WorkerState::Draining, WorkerState::Draining, WorkerState::Stopped] {
        fixture.store.set_worker_state(&worker, state).expect("set_worker_state");
        assert_eq!(fixture.orders(&worker).state, state);
    }
    fixture.store.set_worker_state(&worker, WorkerState::Draining).expect("set_worker_state");
    assert_eq!(fixture.orders(&worker).state, WorkerState::Stopped, "a stopped worker cannot drain again");
}

fn orders_list_the_cancelled_jobs_of_the_worker(fixture: &Fixture) {
    let (worker, other) = (fixture.worker("w"), fixture.worker("other"));
    fixture.enqueue_all(["a", "b", "c", "d"].map(job));
    let leases = fixture.leases(&worker, 3);
    fixture.lease(&other);
    for id in ["c", "a", "d"] {
        fixture.cancel(id);
    }
    assert_eq!(fixture.cancelled(&worker), [leases[0].clone(), leases[2].clone()]);
    fixture.settle(&worker, &leases[0], Outcome::Cancelled);
    assert_eq!(fixture.cancelled(&worker), [leases[2].clone()]);
}

fn a_worker_is_idle_when_no_work_is_left(fixture: &Fixture) {
    let (worker, other) = (fixture.worker("w"), fixture.worker("other"));
    let idle = || fixture.is_idle(&worker);
    fixture.enqueue("a");
    assert!(!idle(), "the job is ready");
    let lease = fixture.lease(&other);
    assert!(!idle(), "another worker runs the job");
    fixture.settle(&other, &lease, FAILURE);
    assert!(!idle(), "the job waits for its retry");
    fixture.pause("default");
    assert!(idle(), "a paused queue does not count");
    fixture.resume("default");
    assert!(!idle());
    fixture.pass_secs(2);
    fixture.run(&other, Outcome::Success);
    assert!(idle(), "the job is completed");

    fixture.enqueue_all([job("later").delay_secs(60), job("blocked").after(&["later"])]);
    assert!(idle(), "scheduled and blocked jobs do not count");
    fixture.enqueue(job("dead").max_retries(0));
    fixture.run(&other, FAILURE);
    assert!(idle(), "a dead job does not count");
}

fn idle_considers_only_served_queues(fixture: &Fixture) {
    let worker = fixture.worker_serving("w", serving(&["a", "not-yet"]));
    let idle = || fixture.is_idle(&worker);
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

fn a_worker_is_not_idle_when_an_unpromoted_job_is_due(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue(job("a").delay_secs(10));
    fixture.pass_millis(9_999);
    assert!(fixture.is_idle(&worker));
    fixture.pass_millis(1);
    assert!(!fixture.is_idle(&worker));
    fixture.pause("default");
    assert!(fixture.is_idle(&worker));
}

/// More dependents than any store should unblock in one transaction.
const MANY_DEPENDENTS: usize = 1_500;

fn a_worker_is_not_idle_when_dependents_are_about_to_be_unblocked(fixture: &Fixture) {
    let worker = fixture.worker_serving("w", serving(&["last"]));
    let other = fixture.worker_serving("other", serving(&["first"]));
    fixture.enqueue(job("parent").queue("first"));
    // The dependents that are unblocked first are in a queue that the worker does not serve.
    fixture.enqueue_all((0..MANY_DEPENDENTS).map(|n| {
        let queue = if n + 1 < MANY_DEPENDENTS { "first" } else { "last" };
        job(&format!("child{n}")).queue(queue).after(&["parent"])
    }));
    assert!(fixture.is_idle(&worker), "the job is blocked");
    fixture.run(&other, Outcome::Success);
    assert!(!fixture.is_idle(&worker), "the dependent will be unblocked");
    fixture.run(&worker, Outcome::Success);
    assert!(fixture.is_idle(&worker));
}

fn a_worker_for_one_job_is_idle_when_the_job_is_finished(fixture: &Fixture) {
    let worker = fixture.worker_serving("w", ServedJobs::Job(job_id("a")));
    let idle = || fixture.is_idle(&worker);
    assert!(idle(), "the job does not exist");
    fixture.enqueue_all([job("a").delay_secs(1), job("b")]);
    assert!(!idle(), "the job is scheduled");
    fixture.pass_secs(1);
    fixture.pause("default");
    assert!(!idle(), "its queue may be resumed");
    fixture.resume("default");
    fixture.run(&worker, Outcome::Success);
    assert!(idle(), "other ready jobs do not count");
    fixture.remove("a");
    assert!(idle());
}

fn stop(fixture: &Fixture, home: Option<&str>, kill_at: Option<Timestamp>) {
    let scope = home.map_or(StopScope::Everywhere, |home| StopScope::Home(on("machine", home)));
    let stop = Stop { scope, kill_at };
    fixture.store.stop(&stop, ACTOR).expect("stop");
}

fn a_stop_applies_to_registered_workers(fixture: &Fixture) {
    let first = fixture.worker("first");
    stop(fixture, None, None);
    let second = fixture.worker("second");
    let drain = |worker| fixture.orders(worker).drain;
    assert_eq!([&first, &second].map(drain), [true, false], "a worker that registers later does not stop");
    stop(fixture, None, None);
    assert_eq!([&first, &second].map(drain), [true, true]);
    assert_eq!(
        fixture.orders(&first).state,
        WorkerState::Running,
        "the state changes only when the worker reports it"
    );
}

fn a_stop_applies_to_the_replacement_of_a_crashed_worker(fixture: &Fixture) {
    let register = |id, stop_seen| {
        let registered = fixture.store.register(&NewWorker { stop_seen, ..new_worker(id) });
        registered.expect("register")
    };
    stop(fixture, None, None);
    let stop_seen = register("w1", None);
    fixture.reap(&"w1".parse().expect("a worker id"));
    // No worker is registered at this time.
    stop(fixture, None, None);
    assert_eq!(register("w2", Some(stop_seen)), stop_seen, "the replacement inherits the number");
    assert!(fixture.orders(&"w2".parse().expect("a worker id")).drain);
    assert!(register("new", None) > stop_seen);
    assert!(
        !fixture.orders(&"new".parse().expect("a worker id")).drain,
        "the stop does not apply to a new pool"
    );
}

fn on(machine: &str, home: &str) -> HostKey {
    HostKey { machine_id: machine.to_owned(), boot_id: "any".to_owned(), home_id: home.to_owned() }
}

/// Only the pair of machine id and home id selects the workers, not the boot id.
fn a_stop_can_apply_to_one_home_on_one_machine(fixture: &Fixture) {
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

fn a_stop_can_apply_to_one_worker(fixture: &Fixture) {
    let one = fixture.worker("one");
    let other = fixture.worker("other");
    let homeless = NewWorker { origin: Origin::default(), ..new_worker("homeless") };
    let homeless = fixture.register(homeless);
    let kill_at = fixture.now().saturating_add(Duration::from_secs(60));
    let stop = Stop { scope: StopScope::Worker(one.clone()), kill_at: Some(kill_at) };
    fixture.store.stop(&stop, ACTOR).expect("stop");
    let orders = fixture.orders(&one);
    assert_eq!((orders.drain, orders.kill_at), (true, Some(kill_at)));
    for worker in [&other, &homeless] {
        let orders = fixture.orders(worker);
        assert_eq!((orders.drain, orders.kill_at), (false, None), "{worker}");
    }
    let last = fixture.store.last_stop().expect("last_stop").expect("an order");
    assert_eq!(last.home_id.as_deref(), Some("one"), "it names the worker");
}

fn the_earliest_kill_time_counts(fixture: &Fixture) {
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
    assert_eq!(fixture.orders(&worker).kill_at, Some(soon), "a stop without a kill time changes nothing");
}

fn a_clock_jump_does_not_change_the_time_until_the_kill(fixture: &Fixture) {
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

fn old_stops_are_deleted_but_none_that_a_worker_has_not_seen(fixture: &Fixture) {
    fixture.set(SettingKey::Durability, "normal");
    let first = fixture.store.register(&new_worker("first")).expect("register");
    for _ in 0..1_200 {
        stop(fixture, None, None);
    }
    let last = fixture.store.register(&new_worker("last")).expect("register");
    assert_eq!(last - first, 1_200, "no number is reused");
    let orders = |id: &str| fixture.orders(&id.parse().expect("a worker id"));
    assert!(orders("first").drain);
    assert!(!orders("last").drain);
}
