//! Registered workers and their leases.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

use domain::job::life::StateName;
use domain::job::outcome::Outcome;
use domain::settings::SettingKey;
use domain::values::name::WorkerId;
use domain::values::signal::Signal;
use store::{
    Beat, LeaseRef, LeaseStatus, NewWorker, ServedJobs, StoreError, Worker, WorkerSlots, WorkerState,
};
use sys::host::{FileId, HostKey, Origin};

use super::fixture::new_job::{batch_name, job, job_id};
use super::fixture::{Fixture, every_store, new_worker, serving};

every_store!(
    every_field_of_a_worker_is_stored,
    workers_are_listed_in_order_of_registration,
    a_worker_id_is_not_reused,
    held_counts_the_leases,
    prefetched_claims_do_not_count_as_running,
    a_heartbeat_is_recorded,
    lease_statuses_follow_the_order_of_the_leases,
    a_heartbeat_releases_leases_unknown_to_the_worker,
    a_heartbeat_with_a_duplicate_lease_keeps_it,
    a_stopped_worker_is_not_listed,
    stopping_a_worker_releases_its_unknown_leases,
    the_earliest_lease_end_of_a_worker_is_listed,
    a_folder_need_not_be_utf8,
    an_unknown_worker_is_an_error,
    starts_of_workers_are_listed_since_a_time,
    each_heartbeat_raises_the_beat,
    neighbours_are_the_workers_of_a_machine,
);

fn every_field_of_a_worker_is_stored(fixture: &Fixture) {
    for (id, served, supervisor_pid) in [
        ("all", ServedJobs::All, None),
        ("some", serving(&["b", "a", "not-yet"]), Some(u32::MAX)),
        ("one", ServedJobs::Job(job_id("not-yet")), Some(1)),
        ("batch", ServedJobs::Batch(batch_name("not-yet")), Some(1)),
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
            beat: 0,
            health: None,
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

fn workers_are_listed_in_order_of_registration(fixture: &Fixture) {
    for id in ["b", "c", "a"] {
        fixture.worker(id);
    }
    let listed = fixture.workers();
    let ids: Vec<&str> = listed.iter().map(|worker| worker.id.as_str()).collect();
    assert_eq!(ids, ["b", "c", "a"]);
}

fn a_worker_id_is_not_reused(fixture: &Fixture) {
    let worker = fixture.worker("w");
    assert!(fixture.store.register(&new_worker("w")).is_err());
    fixture.retire(&worker);
    assert!(fixture.store.register(&new_worker("w")).is_err(), "the id is not reused after a stop");
}

fn held_counts_the_leases(fixture: &Fixture) {
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

fn prefetched_claims_do_not_count_as_running(fixture: &Fixture) {
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
    assert_eq!(slots(1, 3), (1, 3, 5), "three slots were started before");
    assert_eq!(slots(9, 9), (9, 5, 5));
    fixture.settle(&worker, &leases[0], Outcome::Success);
    assert_eq!(slots(1, 1), (1, 1, 4));
}

fn a_heartbeat_is_recorded(fixture: &Fixture) {
    let (beating, silent) = (fixture.worker("beating"), fixture.worker("silent"));
    let started = fixture.now();
    fixture.pass_secs(5);
    assert_eq!(fixture.store.extend(&beating, &[]).expect("extend"), []);
    let beats: Vec<_> =
        fixture.workers().into_iter().map(|worker| (worker.id, worker.last_heartbeat)).collect();
    assert_eq!(beats, [(beating, fixture.now()), (silent, started)]);
}

fn each_heartbeat_raises_the_beat(fixture: &Fixture) {
    let (beating, silent) = (fixture.worker("beating"), fixture.worker("silent"));
    let stopped = fixture.worker("stopped");
    fixture.retire(&stopped);
    let beats = || {
        let (_, mut beats) = fixture.store.neighbours_and_beats("m1").expect("beats");
        beats.sort_by(|one, other| one.worker.cmp(&other.worker));
        beats
    };
    let beat = |worker: &WorkerId, number| Beat { worker: worker.clone(), number };
    assert_eq!(beats(), [beat(&beating, 0), beat(&silent, 0)], "a stopped worker has none");
    for number in 1..=3 {
        fixture.clock.jump(-60_000);
        fixture.store.extend(&beating, &[]).expect("extend");
        assert_eq!(beats(), [beat(&beating, number), beat(&silent, 0)], "whatever the wall clock says");
    }
    assert_eq!(fixture.workers()[0].beat, 3);
}

fn neighbours_are_the_workers_of_a_machine(fixture: &Fixture) {
    for (id, machine, home) in [("a", "m1", "h1"), ("b", "m1", "h2"), ("c", "m2", "h1"), ("d", "", "h1")] {
        let mut new = new_worker(id);
        machine.clone_into(&mut new.origin.key.machine_id);
        home.clone_into(&mut new.origin.key.home_id);
        fixture.register(new);
    }
    let neighbours = |machine| {
        let found = fixture.store.neighbours(machine).expect("neighbours");
        let (again, _) = fixture.store.neighbours_and_beats(machine).expect("neighbours");
        assert_eq!(again, found);
        found.iter().map(|worker| worker.id.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(neighbours("m1"), ["a", "b"], "in any home");
    assert_eq!((neighbours("m2"), neighbours("")), (vec!["c".to_owned()], vec!["d".to_owned()]));
    assert_eq!(neighbours("m3"), Vec::<String>::new());
}

fn lease_statuses_follow_the_order_of_the_leases(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue_all(["a", "b", "c"].map(job));
    let [a, b, c] = &fixture.leases(&worker, 3)[..] else { panic!("three leases") };
    fixture.cancel("b");
    fixture.settle(&worker, c, Outcome::Success);
    let unknown = LeaseRef { job: job_id("unknown"), attempt: 1 };
    let leases = [c.clone(), b.clone(), unknown, a.clone()];
    assert_eq!(
        fixture.store.extend(&worker, &leases).expect("extend"),
        [LeaseStatus::Lost, LeaseStatus::CancelRequested(Signal::TERM), LeaseStatus::Lost, LeaseStatus::Held]
    );
}

fn a_heartbeat_releases_leases_unknown_to_the_worker(fixture: &Fixture) {
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
    let ending = record.history[0].ending.as_ref().expect("the attempt ended");
    assert_eq!((ending.outcome, ending.duration), (Outcome::Released, Duration::ZERO));
    assert_eq!((&ending.error, &record.job.latest.error), (&None, &None));
    assert!(!fixture.settle(&worker, &leases[1], Outcome::Success), "the lease is lost");
    assert_eq!(fixture.claim(&other, 9), ["lost"], "other workers can claim the job");
}

fn a_heartbeat_with_a_duplicate_lease_keeps_it(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue("a");
    let lease = fixture.lease(&worker);
    let statuses = fixture.store.extend(&worker, &[lease.clone(), lease.clone()]).expect("extend");
    assert_eq!(statuses, [LeaseStatus::Held; 2]);
    assert!(fixture.settle(&worker, &lease, Outcome::Success));
}

fn stopping_a_worker_releases_its_unknown_leases(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue("a");
    fixture.lease(&worker);
    fixture.store.set_worker_state(&worker, WorkerState::Draining).expect("drain");
    assert_eq!(fixture.state("a"), StateName::Processing, "a draining worker keeps its leases");
    fixture.retire(&worker);
    assert_eq!(fixture.state("a"), StateName::Pending);
    assert_eq!(fixture.outcomes("a"), [Outcome::Released]);
}

fn the_earliest_lease_end_of_a_worker_is_listed(fixture: &Fixture) {
    fixture.set(SettingKey::Lease, "30s");
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

fn a_folder_need_not_be_utf8(fixture: &Fixture) {
    let folder = PathBuf::from(OsStr::from_bytes(b"/srv/\xff\xfe/workers"));
    fixture.register(NewWorker { folder: folder.clone(), ..new_worker("w") });
    assert_eq!(fixture.workers()[0].folder, folder);
}

fn a_stopped_worker_is_not_listed(fixture: &Fixture) {
    let (stopped, running) = (fixture.worker("stopped"), fixture.worker("running"));
    fixture.retire(&stopped);
    let ids: Vec<_> = fixture.workers().into_iter().map(|worker| worker.id).collect();
    assert_eq!(ids, [running]);
    // Stopping it again has no effect.
    fixture.retire(&stopped);
    fixture.enqueue("a");
    let exchanged = fixture.exchange(&stopped, &[], 1);
    assert!(
        exchanged.retired && exchanged.claimed.is_empty(),
        "a stopped worker claims nothing: {exchanged:?}"
    );
}

fn an_unknown_worker_is_an_error(fixture: &Fixture) {
    let stranger = "stranger".parse().expect("a worker id");
    let drained = fixture.store.set_worker_state(&stranger, WorkerState::Draining);
    assert!(matches!(drained, Err(StoreError::NoSuchWorker(_))), "{drained:?}");
    let orders = fixture.store.orders(&stranger);
    assert!(matches!(orders, Err(StoreError::NoSuchWorker(_))), "{orders:?}");
    let extended = fixture.store.extend(&stranger, &[]);
    assert!(matches!(extended, Err(StoreError::NoSuchWorker(_))), "{extended:?}");
}

fn starts_of_workers_are_listed_since_a_time(fixture: &Fixture) {
    let began = fixture.now();
    let first = fixture.worker("first");
    fixture.pass_secs(60);
    fixture.worker_serving("in-order", serving(&["default"]));
    fixture.worker_serving("one-job", ServedJobs::Job(job_id("a")));
    fixture.retire(&first);
    let starts = |since| fixture.store.worker_starts(since).expect("worker_starts");
    assert_eq!(
        starts(began),
        [began, fixture.now()],
        "one that has stopped counts, one for a single job does not"
    );
    assert_eq!(starts(fixture.now()), [fixture.now()]);
}
