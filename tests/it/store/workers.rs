//! Workers: who is there, and what they hold.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

use domain::job::life::StateName;
use domain::job::outcome::Outcome;
use store::{LeaseRef, LeaseStatus, NewWorker, ServedJobs, StoreError, Worker, WorkerSlots, WorkerState};
use sys::host::{FileId, HostKey, Origin};

use super::fixture::{Fixture, every_store, new_worker, serving};
use super::new_job::{job, job_id};

every_store!(
    a_registered_worker_reads_back,
    workers_are_listed_as_they_came,
    a_worker_id_is_used_once,
    running_counts_the_leases,
    claims_that_no_slot_has_taken_do_not_run,
    a_heartbeat_is_remembered,
    leases_are_answered_in_their_order,
    a_heartbeat_gives_back_what_the_worker_does_not_know_of,
    a_heartbeat_that_names_a_lease_twice_keeps_it,
    a_retired_worker_is_gone,
    a_worker_that_stops_gives_back_what_it_never_learned_of,
    the_earliest_end_of_its_leases_is_shown,
    a_folder_need_not_be_text,
    strangers_are_told_apart,
);

fn a_registered_worker_reads_back(fixture: &Fixture) {
    for (id, served, supervisor_pid) in [
        ("all", ServedJobs::All, None),
        ("some", serving(&["b", "a", "not-yet"]), Some(u32::MAX)),
        ("one", ServedJobs::Job(job_id("not-yet")), Some(1)),
    ] {
        let new = NewWorker {
            id: id.parse().expect("a worker id"),
            host: "büro-7".to_owned(),
            origin: origin(),
            pid: 1,
            supervisor_pid,
            served,
            concurrency: 1_024,
            folder: "/srv/büro/workers".into(),
            stop_seen: None,
        };
        fixture.register(new.clone());
        let expected = Worker {
            id: new.id,
            host: new.host,
            origin: new.origin,
            pid: new.pid,
            supervisor_pid: new.supervisor_pid,
            served: new.served,
            concurrency: new.concurrency,
            held: 0,
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

fn origin() -> Origin {
    Origin {
        key: HostKey { machine_id: "m".to_owned(), boot_id: "b".to_owned(), home_id: "h".to_owned() },
        pid_namespace: 4_026_531_836,
        lock: FileId { device: u64::MAX, inode: 1 },
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
    let running = |at: usize| fixture.workers()[at].held;
    assert_eq!((running(0), running(1)), (3, 0));
    fixture.settle(&busy, &leases[0], Outcome::Success);
    assert_eq!(running(0), 2);
    fixture.claim(&idle, 9);
    assert_eq!((running(0), running(1)), (2, 0));
}

fn claims_that_no_slot_has_taken_do_not_run(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue_all(["a", "b", "c", "d", "e"].map(job));
    let leases = fixture.leases(&worker, 5);
    let slots = |concurrency, most| {
        let slots = WorkerSlots { concurrency, most };
        fixture.store.set_worker_slots(&worker, slots).expect("set_worker_slots");
        let shown = fixture.workers().remove(0);
        (shown.concurrency, shown.running, shown.held)
    };
    assert_eq!(slots(1, 1), (1, 1, 5));
    assert_eq!(slots(3, 3), (3, 3, 5));
    assert_eq!(slots(1, 3), (1, 3, 5), "three were started before");
    assert_eq!(slots(9, 9), (9, 5, 5));
    fixture.settle(&worker, &leases[0], Outcome::Success);
    assert_eq!(slots(1, 1), (1, 1, 4));
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
    fixture.settle(&worker, c, Outcome::Success);
    let nobody = LeaseRef { job: job_id("nobody"), attempt: 1 };
    let asked = [c.clone(), b.clone(), nobody, a.clone()];
    assert_eq!(
        fixture.store.extend(&worker, &asked).expect("extend"),
        [LeaseStatus::Lost, LeaseStatus::CancelRequested, LeaseStatus::Lost, LeaseStatus::Held]
    );
}

fn a_heartbeat_gives_back_what_the_worker_does_not_know_of(fixture: &Fixture) {
    let (worker, other) = (fixture.worker("w"), fixture.worker("other"));
    fixture.enqueue_all(["known", "lost", "cancelled", "elsewhere"].map(job));
    let leases = fixture.leases(&worker, 3);
    fixture.lease(&other);
    fixture.cancel("cancelled");
    fixture.pass_secs(1);
    assert_eq!(fixture.extend(&worker, &leases[0]), LeaseStatus::Held);
    assert_eq!(
        ["known", "lost", "cancelled", "elsewhere"].map(|id| fixture.state(id)),
        [StateName::Processing, StateName::Pending, StateName::Cancelled, StateName::Processing]
    );
    let record = fixture.record("lost");
    let ending = record.history[0].ending.as_ref().expect("it ended");
    assert_eq!((ending.outcome, ending.duration), (Outcome::Released, Duration::ZERO));
    assert_eq!((&ending.error, &record.job.latest.error), (&None, &None));
    assert!(!fixture.settle(&worker, &leases[1], Outcome::Success), "the lease is gone");
    assert_eq!(fixture.claim(&other, 9), ["lost"], "and the job free for others");
}

fn a_heartbeat_that_names_a_lease_twice_keeps_it(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue("a");
    let lease = fixture.lease(&worker);
    let statuses = fixture.store.extend(&worker, &[lease.clone(), lease.clone()]).expect("extend");
    assert_eq!(statuses, [LeaseStatus::Held; 2]);
    assert!(fixture.settle(&worker, &lease, Outcome::Success));
}

fn a_worker_that_stops_gives_back_what_it_never_learned_of(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue("a");
    fixture.lease(&worker);
    fixture.store.set_worker_state(&worker, WorkerState::Draining).expect("drain");
    assert_eq!(fixture.state("a"), StateName::Processing, "one that drains still works");
    fixture.retire(&worker);
    assert_eq!(fixture.state("a"), StateName::Pending);
    assert_eq!(fixture.outcomes("a"), [Outcome::Released]);
}

fn the_earliest_end_of_its_leases_is_shown(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue_all(["a", "b"].map(job));
    let a = fixture.lease(&worker);
    let ends = |secs| Some(fixture.now().saturating_add(Duration::from_secs(secs)));
    let shown = || {
        let worker = fixture.workers().remove(0);
        (worker.lease_until, worker.overdue)
    };
    assert_eq!(shown(), (ends(30), false));
    fixture.pass_secs(10);
    let b = fixture.lease(&worker);
    assert_eq!(shown(), (ends(20), false));
    fixture.pass_secs(20);
    assert_eq!(shown(), (ends(0), false));
    fixture.pass_millis(1);
    assert!(shown().1);
    fixture.store.extend(&worker, &[a, b]).expect("extend");
    assert_eq!(shown(), (ends(30), false));
}

fn a_folder_need_not_be_text(fixture: &Fixture) {
    let folder = PathBuf::from(OsStr::from_bytes(b"/srv/\xff\xfe/workers"));
    fixture.register(NewWorker { folder: folder.clone(), ..new_worker("w") });
    assert_eq!(fixture.workers()[0].folder, folder);
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
