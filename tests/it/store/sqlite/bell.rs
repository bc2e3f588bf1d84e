//! The bell beside the database: who rings it, and when.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use domain::job::outcome::Outcome;
use domain::values::name::WorkerId;
use store::{LeaseRef, ServedJobs, StoreError};
use sys::bell::{Bell, MAX_HOPS};

use super::Home;
use crate::store::fixture::{FAILURE, Fixture, new_worker, settlement};
use crate::store::new_job::{job, job_id};

/// A queue with a worker that listens.
struct Listening {
    home: Home,
    fixture: Fixture,
    worker: WorkerId,
    bell: Bell,
}

impl Listening {
    fn new() -> Self {
        let home = Home::new();
        let fixture = home.fixture();
        let new = new_worker("listener");
        let bell = fixture.store.register(&new).expect("register").bell;
        Self { home, fixture, worker: new.id, bell }
    }

    fn lease(&self) -> LeaseRef {
        let lease = self.fixture.lease(&self.worker);
        self.bell.take();
        lease
    }

    fn rang(&self) -> bool {
        let rings = self.bell.take();
        assert!(rings.is_none_or(|hops| hops == MAX_HOPS), "it may be passed on to everybody: {rings:?}");
        rings.is_some()
    }
}

#[test]
fn registering_makes_the_bell() {
    let listening = Listening::new();
    let path = listening.home.folder.path().join("queue.db-bell");
    let mode = fs::metadata(&path).expect("the bell").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(!listening.rang(), "a worker that comes brings no work");
}

#[test]
fn what_becomes_ready_rings() {
    let listening = Listening::new();
    let fixture = &listening.fixture;
    let rings = |what: &str, expected: bool| assert_eq!(listening.rang(), expected, "{what}");

    fixture.enqueue("a");
    rings("a plain job", true);
    fixture.enqueue_all([job("later").delay_secs(60), job("blocked").after(&["a"])]);
    rings("jobs that cannot run yet", false);
    fixture.enqueue_all([job("a").if_absent()]);
    rings("a job that was there", false);

    fixture.pause("default");
    rings("a pause", false);
    fixture.resume("default");
    rings("the end of a pause", true);

    let lease = listening.lease();
    fixture.extend(&listening.worker, &lease);
    rings("a heartbeat", false);
    fixture.store.extend(&listening.worker, &[]).expect("extend");
    rings("a lease that the worker did not know of", true);

    fixture.cancel("a");
    rings("a cancel", false);
    fixture.retry("a");
    rings("a retry", true);

    let other = fixture.worker_serving("other", ServedJobs::Job(job_id("a")));
    fixture.lease(&other);
    fixture.reap(&other);
    rings("a reap", true);
    fixture.reap(&other);
    rings("a reap that finds nothing", false);

    fixture.enqueue(job("anyway").after(&["a"]).run_on_dependency_failure());
    fixture.cancel("a");
    rings("a dependent that runs anyway", true);
}

#[test]
fn what_a_worker_makes_ready_and_does_not_take_rings() {
    let listening = Listening::new();
    let fixture = &listening.fixture;
    fixture.enqueue_all([job("a"), job("after").after(&["a"]), job("later").delay_secs(9)]);
    for (outcome, leaves_work) in [(Outcome::Released, true), (FAILURE, false), (Outcome::Success, true)] {
        let lease = listening.lease();
        assert!(fixture.settle(&listening.worker, &lease, outcome));
        assert_eq!(listening.rang(), leaves_work, "{outcome:?}");
        fixture.pass_secs(3);
    }
    fixture.enqueue_all([job("b").delay_secs(60), job("c").delay_secs(60)]);
    fixture.pass_secs(60);
    assert_eq!(fixture.claim(&listening.worker, 2).len(), 2);
    assert!(listening.rang(), "there may be more");
    assert_eq!(fixture.claim(&listening.worker, 9).len(), 2);
    assert!(!listening.rang(), "it took all that there was");
}

#[test]
fn what_a_worker_makes_ready_in_a_queue_that_it_does_not_serve_rings() {
    let listening = Listening::new();
    let fixture = &listening.fixture;
    let worker = fixture.worker_serving("mine", ServedJobs::InOrder(vec!["mine".parse().expect("a name")]));
    fixture.enqueue_all([job("a").queue("mine"), job("after").after(&["a"])]);
    let lease = fixture.lease(&worker);
    listening.bell.take();
    assert!(fixture.settle(&worker, &lease, Outcome::Success));
    assert!(listening.rang());
}

#[test]
fn room_in_a_full_queue_rings_unless_it_was_taken() {
    let listening = Listening::new();
    let fixture = &listening.fixture;
    fixture.enqueue_all(["a", "b", "c"].map(job));
    fixture.limit("default", Some(1), None);
    let lease = listening.lease();
    let exchanged = fixture.exchange(&listening.worker, &[settlement(&lease, Outcome::Success)], 1);
    assert!(!listening.rang(), "it is full again");
    let lease = &exchanged.claimed[0].lease;
    fixture.settle(&listening.worker, lease, Outcome::Success);
    assert!(listening.rang(), "somebody has to take the next");
    let lease = listening.lease();
    fixture.settle(&listening.worker, &lease, Outcome::Success);
    assert!(!listening.rang(), "nobody waits");

    fixture.limit("default", None, Some("1/h"));
    fixture.enqueue_all(["d", "e"].map(job));
    let lease = listening.lease();
    fixture.settle(&listening.worker, &lease, Outcome::Success);
    assert!(!listening.rang(), "its end gives no token");
}

#[test]
fn without_a_worker_nothing_rings() {
    let listening = Listening::new();
    let fixture = &listening.fixture;
    fixture.enqueue("a");
    listening.lease();
    fixture.retire(&listening.worker);
    fixture.enqueue("b");
    fixture.cancel("b");
    fixture.retry("b");
    assert!(!listening.rang());
    fixture.worker("next");
    fixture.enqueue("c");
    assert!(listening.rang());
}

#[test]
fn nothing_fails_for_want_of_a_bell() {
    let listening = Listening::new();
    let path = listening.home.folder.path().join("queue.db-bell");
    fs::remove_file(&path).expect("remove");
    listening.fixture.enqueue("a");
    assert!(!path.exists());
    fs::create_dir(&path).expect("create_dir");
    listening.fixture.enqueue("b");

    let refused = listening.fixture.store.register(&new_worker("next")).expect_err("it could not listen");
    assert!(matches!(&refused, StoreError::CannotOpen { path: told, .. } if *told == path), "{refused:?}");
    let ids: Vec<_> = listening.fixture.workers().into_iter().map(|worker| worker.id).collect();
    assert_eq!(ids, [listening.worker], "nor was it registered");
}
