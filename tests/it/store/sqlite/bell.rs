//! The bell file of the database: which operations ring it.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use domain::job::outcome::Outcome;
use domain::values::name::WorkerId;
use store::{LeaseRef, NewWorker, ServedJobs, StoreError, Wake};
use sys::bell::MAX_HOPS;
use sys::fs::owner_only;

use super::Home;
use crate::store::fixture::new_job::{job, job_id};
use crate::store::fixture::{FAILURE, Fixture, new_worker, settlement};

/// A queue with a worker that listens to the bell.
struct Listener {
    home: Home,
    fixture: Fixture,
    worker: WorkerId,
    bell: Box<dyn Wake>,
}

impl Listener {
    fn new() -> Self {
        let home = Home::new();
        let fixture = home.fixture();
        let new = NewWorker {
            folder: owner_only::folder_of(&home.database()).to_owned(),
            ..new_worker("listener")
        };
        let bell = fixture.store.listen(&new).expect("it listens");
        fixture.store.register(&new).expect("register");
        Self { home, fixture, worker: new.id, bell }
    }

    fn lease(&self) -> LeaseRef {
        let lease = self.fixture.lease(&self.worker);
        self.bell.take_work();
        lease
    }

    fn rang(&self) -> bool {
        let rings = self.bell.take_work();
        assert!(rings.is_none_or(|hops| hops == MAX_HOPS), "every worker may pass it on: {rings:?}");
        rings.is_some()
    }
}

#[test]
fn registering_creates_the_bell() {
    let listener = Listener::new();
    let path = listener.home.folder.path().join("queue.db-bell");
    let mode = fs::metadata(&path).expect("the bell").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(!listener.rang(), "registering a worker makes no job ready");
}

#[test]
fn operations_that_make_a_job_ready_ring() {
    let listener = Listener::new();
    let fixture = &listener.fixture;
    let rings = |what: &str, expected: bool| assert_eq!(listener.rang(), expected, "{what}");

    fixture.enqueue("a");
    rings("a plain job", true);
    fixture.enqueue_all([job("later").delay_secs(60), job("blocked").after(&["a"])]);
    rings("jobs that cannot run yet", false);
    fixture.enqueue_all([job("a").if_absent()]);
    rings("an existing job", false);

    fixture.pause("default");
    rings("a pause", false);
    fixture.resume("default");
    rings("the end of a pause", true);

    let lease = listener.lease();
    fixture.extend(&listener.worker, &lease);
    rings("a heartbeat", false);
    fixture.store.extend(&listener.worker, &[]).expect("extend");
    rings("a lease unknown to the worker", true);

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
    rings("a dependent that runs despite the cancel", true);
}

#[test]
fn an_exchange_that_leaves_ready_jobs_rings() {
    let listener = Listener::new();
    let fixture = &listener.fixture;
    fixture.enqueue_all([job("a"), job("after").after(&["a"]), job("later").delay_secs(9)]);
    for (outcome, leaves_work) in [(Outcome::Released, true), (FAILURE, false), (Outcome::Success, true)] {
        let lease = listener.lease();
        assert!(fixture.settle(&listener.worker, &lease, outcome));
        assert_eq!(listener.rang(), leaves_work, "{outcome:?}");
        fixture.pass_secs(3);
    }
    fixture.enqueue_all([job("b").delay_secs(60), job("c").delay_secs(60)]);
    fixture.pass_secs(60);
    assert_eq!(fixture.claim(&listener.worker, 2).len(), 2);
    assert!(listener.rang(), "more jobs may be ready");
    assert_eq!(fixture.claim(&listener.worker, 9).len(), 2);
    assert!(!listener.rang(), "the worker claimed all ready jobs");
}

#[test]
fn a_job_made_ready_in_a_queue_that_the_worker_does_not_serve_rings() {
    let listener = Listener::new();
    let fixture = &listener.fixture;
    let worker = fixture.worker_serving("mine", ServedJobs::InOrder(vec!["mine".parse().expect("a name")]));
    fixture.enqueue_all([job("a").queue("mine"), job("after").after(&["a"])]);
    let lease = fixture.lease(&worker);
    listener.bell.take_work();
    assert!(fixture.settle(&worker, &lease, Outcome::Success));
    assert!(listener.rang());
}

#[test]
fn freed_capacity_rings_unless_the_exchange_uses_it() {
    let listener = Listener::new();
    let fixture = &listener.fixture;
    fixture.enqueue_all(["a", "b", "c"].map(job));
    fixture.limit("default", Some(1), None);
    let lease = listener.lease();
    let exchanged = fixture.exchange(&listener.worker, &[settlement(&lease, Outcome::Success)], 1);
    assert!(!listener.rang(), "the queue is full again");
    let lease = &exchanged.claimed[0].lease;
    fixture.settle(&listener.worker, lease, Outcome::Success);
    assert!(listener.rang(), "the next job can be claimed");
    let lease = listener.lease();
    fixture.settle(&listener.worker, &lease, Outcome::Success);
    assert!(!listener.rang(), "no job is waiting");

    fixture.limit("default", None, Some("1/h"));
    fixture.enqueue_all(["d", "e"].map(job));
    let lease = listener.lease();
    fixture.settle(&listener.worker, &lease, Outcome::Success);
    assert!(!listener.rang(), "the end of a job returns no token");
}

#[test]
fn without_a_worker_the_bell_is_not_rung() {
    let listener = Listener::new();
    let fixture = &listener.fixture;
    fixture.enqueue("a");
    listener.lease();
    fixture.retire(&listener.worker);
    fixture.enqueue("b");
    fixture.cancel("b");
    fixture.retry("b");
    assert!(!listener.rang());
    fixture.worker("next");
    fixture.enqueue("c");
    assert!(listener.rang());
}

#[test]
fn a_missing_bell_fails_no_enqueue() {
    let listener = Listener::new();
    let path = listener.home.folder.path().join("queue.db-bell");
    fs::remove_file(&path).expect("remove");
    listener.fixture.enqueue("a");
    assert!(!path.exists());
    fs::create_dir(&path).expect("create_dir");
    listener.fixture.enqueue("b");

    let refused = listener.fixture.store.listen(&new_worker("next")).expect_err("the bell cannot be opened");
    assert!(
        matches!(&refused, StoreError::CannotOpen { path: reported, .. } if *reported == path),
        "{refused:?}"
    );
}
