//! Workers: who is there, and what they hold.

use queuectl::store::{LeaseRef, LeaseStatus, NewWorker, Served, StoreError, Worker, WorkerState};

use super::fixture::{Fixture, every_store, new_worker, serving};
use super::new_job::{job, job_id};

every_store!(
    a_registered_worker_reads_back,
    workers_are_listed_as_they_came,
    a_worker_id_is_used_once,
    running_counts_the_leases,
    a_heartbeat_is_remembered,
    leases_are_answered_in_their_order,
    a_retired_worker_is_gone,
    strangers_are_told_apart,
);

fn a_registered_worker_reads_back(fixture: &Fixture) {
    for (id, served, guardian_pid) in
        [("all", Served::All, None), ("some", serving(&["b", "a", "not-yet"]), Some(u32::MAX))]
    {
        let new = NewWorker {
            id: id.parse().expect("a worker id"),
            host: "büro-7".to_owned(),
            boot_id: "boot".to_owned(),
            pid: 1,
            guardian_pid,
            served,
            concurrency: 1_024,
            folder: "/srv/büro/workers".into(),
            stop_seen: None,
        };
        fixture.register(new.clone());
        let expected = Worker {
            id: new.id,
            host: new.host,
            boot_id: new.boot_id,
            pid: new.pid,
            guardian_pid: new.guardian_pid,
            served: new.served,
            concurrency: new.concurrency,
            running: 0,
            state: WorkerState::Running,
            started_at: fixture.now(),
            last_heartbeat: fixture.now(),
            folder: new.folder,
            lease_until: None,
            overdue: false,
        };
        assert_eq!(fixture.workers().last(), Some(&expected));
        fixture.pass_secs(1);
    }
}

fn workers_are_listed_as_they_came(fixture: &Fixture) {
    for id in ["b", "c", "a"] {
        fixture.worker(id);
    }
    let listed = fixture.workers();
    let ids: Vec<&str> = listed.iter().map(|worker| worker.id.as_str()).collect();
    assert_eq!(ids, ["b", "c", "a"]);
}

fn a_worker_id_is_used_once(fixture: &Fixture) {
    let worker = fixture.worker("w");
    assert!(fixture.store.register(&new_worker("w")).is_err());
    fixture.retire(&worker);
    assert!(fixture.store.register(&new_worker("w")).is_err(), "nor after it stopped");
}

fn running_counts_the_leases(fixture: &Fixture) {
    let (busy, idle) = (fixture.worker("busy"), fixture.worker("idle"));
    fixture.enqueue_all(["a", "b", "c"].map(job));
    let leases = fixture.leases(&busy, 3);
    let running = |at: usize| fixture.workers()[at].running;
    assert_eq!((running(0), running(1)), (3, 0));
    fixture.settle(&busy, &leases[0], queuectl::domain::outcome::Outcome::Success);
    assert_eq!(running(0), 2);
    fixture.claim(&idle, 9);
    assert_eq!((running(0), running(1)), (2, 0));
}

fn a_heartbeat_is_remembered(fixture: &Fixture) {
    let (beating, silent) = (fixture.worker("beating"), fixture.worker("silent"));
    let started = fixture.now();
    fixture.pass_secs(5);
    assert_eq!(fixture.store.extend(&beating, &[]).expect("extend"), []);
    let beats: Vec<_> =
        fixture.workers().into_iter().map(|worker| (worker.id, worker.last_heartbeat)).collect();
    assert_eq!(beats, [(beating, fixture.now()), (silent, started)]);
}

fn leases_are_answered_in_their_order(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue_all(["a", "b", "c"].map(job));
    let [a, b, c] = &fixture.leases(&worker, 3)[..] else { panic!("three leases") };
    fixture.cancel("b");
    fixture.settle(&worker, c, queuectl::domain::outcome::Outcome::Success);
    let nobody = LeaseRef { job: job_id("nobody"), attempt: 1 };
    let asked = [c.clone(), b.clone(), nobody, a.clone()];
    assert_eq!(
        fixture.store.extend(&worker, &asked).expect("extend"),
        [LeaseStatus::Lost, LeaseStatus::CancelRequested, LeaseStatus::Lost, LeaseStatus::Held]
    );
}

fn a_retired_worker_is_gone(fixture: &Fixture) {
    let (stopped, running) = (fixture.worker("stopped"), fixture.worker("running"));
    fixture.retire(&stopped);
    let ids: Vec<_> = fixture.workers().into_iter().map(|worker| worker.id).collect();
    assert_eq!(ids, [running]);
    // Once more does no harm.
    fixture.retire(&stopped);
    fixture.enqueue("a");
    let exchanged = fixture.exchange(&stopped, &[], 1);
    assert!(exchanged.retired && exchanged.claimed.is_empty(), "it gets nothing: {exchanged:?}");
}

fn strangers_are_told_apart(fixture: &Fixture) {
    let stranger = "stranger".parse().expect("a worker id");
    let drained = fixture.store.set_worker_state(&stranger, WorkerState::Draining);
    assert!(matches!(drained, Err(StoreError::NoSuchWorker(_))), "{drained:?}");
    let orders = fixture.store.orders(&stranger);
    assert!(matches!(orders, Err(StoreError::NoSuchWorker(_))), "{orders:?}");
    let extended = fixture.store.extend(&stranger, &[]);
    assert!(matches!(extended, Err(StoreError::NoSuchWorker(_))), "{extended:?}");
}
