//! Taking back the leases of a dead worker.

use std::time::Duration;

use domain::job::life::{DeadReason, State, StateName};
use domain::job::outcome::Outcome;
use domain::settings::SettingKey;
use domain::values::name::WorkerId;
use store::{LeaseRef, LeaseStatus, NewWorker, StoreError, UnkillableProcess};

use crate::store::fixture::new_job::{job, job_id};
use crate::store::fixture::{FAILURE, Fixture, every_store, new_worker, under_boot};

every_store!(
    a_started_job_is_lost_and_an_unstarted_job_is_released,
    all_jobs_are_lost_when_the_started_ones_are_unknown,
    no_job_is_lost_when_none_was_started,
    fault_31_a_second_reaper_changes_nothing,
    a_reaped_worker_is_not_listed,
    an_idle_worker_is_reaped_too,
    an_unknown_worker_cannot_be_reaped,
    a_lost_job_runs_again_immediately,
    a_job_that_kills_its_workers_becomes_dead,
    fault_41_a_job_lost_together_with_others_dies_only_after_a_loss_of_its_own,
    losses_count_only_in_a_row_and_within_one_boot,
    a_cancelled_job_does_not_come_back,
    fault_42_an_unkillable_process_is_listed_while_its_attempt_runs,
    fault_42_the_other_jobs_of_a_dead_worker_are_taken_back,
    each_lease_expires_by_itself,
    a_heartbeat_extends_a_lease,
    a_wall_clock_jump_expires_no_lease,
    fault_25_a_laptop_that_sleeps_for_an_hour_loses_no_lease,
);

fn a_started_job_is_lost_and_an_unstarted_job_is_released(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue_all(["a", "b", "c"].map(job));
    let leases = fixture.leases(&worker, 3);
    fixture.pass_secs(2);
    let started = [leases[0].clone(), leases[2].clone()];
    assert_eq!(fixture.reap_started(&worker, &started), leases);
    assert_eq!(fixture.outcomes("a"), [Outcome::Lost]);
    assert_eq!(fixture.outcomes("b"), [Outcome::Released]);
    assert_eq!(fixture.outcomes("c"), [Outcome::Lost]);
    for (id, losses, error, secs) in [("a", 1, Some("worker w died"), 2), ("b", 0, None, 0)] {
        let record = fixture.record(id);
        assert_eq!(record.job.life.state, State::Pending { blocked_by: 0 }, "{id}");
        assert_eq!(record.job.life.losses.count, losses, "{id}");
        assert_eq!(record.job.latest.error.as_deref(), error, "{id}");
        let ending = record.history[0].ending.as_ref().expect("the attempt ended");
        assert_eq!(ending.duration, Duration::from_secs(secs), "{id}");
    }
}

fn all_jobs_are_lost_when_the_started_ones_are_unknown(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue_all(["a", "b"].map(job));
    let leases = fixture.leases(&worker, 2);
    assert_eq!(fixture.reap(&worker), leases);
    assert_eq!(["a", "b"].map(|id| fixture.outcomes(id)), [[Outcome::Lost], [Outcome::Lost]]);
}

fn no_job_is_lost_when_none_was_started(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue_all(["a", "b"].map(job));
    let leases = fixture.leases(&worker, 2);
    assert_eq!(fixture.reap_started(&worker, &[]), leases);
    assert_eq!(["a", "b"].map(|id| fixture.outcomes(id)), [[Outcome::Released], [Outcome::Released]]);
}

fn fault_31_a_second_reaper_changes_nothing(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue("a");
    let lease = fixture.lease(&worker);
    assert_eq!(fixture.reap(&worker), std::slice::from_ref(&lease));
    let next = fixture.worker("next");
    fixture.lease(&next);
    let before = fixture.record("a");
    fixture.pass_secs(1);
    assert_eq!(fixture.reap(&worker), []);
    assert_eq!(fixture.reap_started(&worker, &[lease]), []);
    assert_eq!(fixture.record("a"), before);
    assert_eq!(fixture.workers().len(), 1);
}

fn a_reaped_worker_is_not_listed(fixture: &Fixture) {
    let (dead, alive) = (fixture.worker("dead"), fixture.worker("alive"));
    fixture.enqueue("a");
    fixture.lease(&dead);
    fixture.reap(&dead);
    let workers = fixture.store.workers().expect("workers");
    let ids: Vec<&WorkerId> = workers.iter().map(|worker| &worker.id).collect();
    assert_eq!(ids, [&alive]);
    let history = fixture.record("a").history;
    assert_eq!(history[0].worker, dead, "the history still names the worker");
}

fn an_idle_worker_is_reaped_too(fixture: &Fixture) {
    let worker = fixture.worker("w");
    assert_eq!(fixture.reap(&worker), []);
    assert_eq!(fixture.store.workers().expect("workers"), []);
}

fn an_unknown_worker_cannot_be_reaped(fixture: &Fixture) {
    let stranger = "stranger".parse().expect("a worker id");
    let reaped = fixture.store.reap(&stranger, None, &[]);
    assert!(matches!(reaped, Err(StoreError::NoSuchWorker(_))), "{reaped:?}");
}

fn a_lost_job_runs_again_immediately(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue("a");
    fixture.lease(&worker);
    fixture.reap(&worker);
    let next = fixture.worker("next");
    let again = fixture.lease(&next);
    assert_eq!(again, LeaseRef { job: job_id("a"), attempt: 2 }, "without a backoff");
}

/// A worker of this boot claims the next job and dies.
fn lose(fixture: &Fixture, boot: &str) {
    let worker = fixture.register(NewWorker {
        origin: under_boot(boot),
        ..new_worker(&format!("w{}", fixture.now().as_millis()))
    });
    fixture.lease(&worker);
    fixture.reap(&worker);
    fixture.pass_millis(1);
}

fn a_job_that_kills_its_workers_becomes_dead(fixture: &Fixture) {
    fixture.enqueue("a");
    for losses in 1..5 {
        lose(fixture, "boot-1");
        assert_eq!(fixture.state("a"), StateName::Pending, "after {losses} losses");
    }
    let died_at = fixture.now();
    lose(fixture, "boot-1");
    let life = fixture.job("a").life;
    assert_eq!(life.state, State::Dead { finished_at: died_at, reason: DeadReason::CrashLimit });
    assert_eq!((life.failures, life.losses.count), (0, 5), "a loss is not a failure");

    fixture.retry("a");
    fixture.set(SettingKey::CrashLimit, "1");
    lose(fixture, "boot-1");
    assert_eq!(fixture.state("a"), StateName::Dead, "the limit in force at the loss counts");
}

fn fault_41_a_job_lost_together_with_others_dies_only_after_a_loss_of_its_own(fixture: &Fixture) {
    fixture.set(SettingKey::CrashLimit, "2");
    fixture.enqueue_all(["a", "b", "c"].map(job));
    for (at, runs_alone) in [false, true, true].into_iter().enumerate() {
        let worker = fixture.worker(&format!("w{at}"));
        let claims = fixture.claims(&worker, 2);
        assert_eq!(claims.iter().map(|claim| claim.runs_alone).collect::<Vec<_>>(), [runs_alone; 2], "{at}");
        fixture.reap(&worker);
    }
    assert_eq!([fixture.state("a"), fixture.state("b")], [StateName::Pending; 2]);
    let worker = fixture.worker("last");
    let leases = fixture.leases(&worker, 3);
    fixture.reap_started(&worker, &leases[..1]);
    let states = ["a", "b", "c"].map(|id| fixture.state(id));
    assert_eq!(
        states,
        [StateName::Dead, StateName::Pending, StateName::Pending],
        "only the started job is blamed"
    );
}

fn unkillable(lease: &LeaseRef, pid: u32) -> UnkillableProcess {
    UnkillableProcess { lease: lease.clone(), pid, start_time: u64::MAX, why: "not permitted".to_owned() }
}

fn fault_42_an_unkillable_process_is_listed_while_its_attempt_runs(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue_all(["a", "b"].map(job));
    let leases = fixture.leases(&worker, 2);
    let stale = LeaseRef { attempt: 9, ..leases[0].clone() };
    let found = [unkillable(&leases[0], 7), unkillable(&leases[0], 8), unkillable(&leases[1], 7)];
    fixture.store.record_unkillable(&found).expect("recorded");
    fixture.store.record_unkillable(&[unkillable(&stale, 9), found[0].clone()]).expect("recorded again");
    assert_eq!(fixture.store.unkillable().expect("a list"), found);
    assert!(fixture.settle(&worker, &leases[0], Outcome::Success));
    assert_eq!(fixture.store.unkillable().expect("a list"), found[2..]);
    fixture.store.record_unkillable(&[]).expect("an empty list is accepted");
    fixture.reap(&worker);
    assert_eq!(fixture.store.unkillable().expect("a list"), []);
}

fn fault_42_the_other_jobs_of_a_dead_worker_are_taken_back(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue_all(["a", "b", "c"].map(job));
    let leases = fixture.leases(&worker, 3);
    let reaped = fixture.store.reap(&worker, Some(&leases[..2]), &leases[..1]).expect("reaped");
    assert_eq!(reaped, leases[1..]);
    assert_eq!(
        (fixture.outcomes("b"), fixture.outcomes("c")),
        (vec![Outcome::Lost], vec![Outcome::Released])
    );
    assert_eq!(fixture.state("a"), StateName::Processing, "its command is still running");
    assert_eq!(fixture.workers().len(), 1, "the worker stays listed until then");
    assert_eq!(fixture.reap_started(&worker, &leases[..1]), leases[..1]);
    assert_eq!(fixture.workers().len(), 0);
}

fn losses_count_only_in_a_row_and_within_one_boot(fixture: &Fixture) {
    fixture.set(SettingKey::CrashLimit, "2");
    fixture.set(SettingKey::RetryDelay, "0s");
    fixture.enqueue(job("a").max_retries(100));
    let worker = fixture.worker("w");
    let losses = || fixture.job("a").life.losses.count;
    for boot in ["boot-1", "boot-2", "boot-3", "boot-1"] {
        lose(fixture, boot);
        assert_eq!(losses(), 1, "losses of another boot do not count");
    }
    fixture.run(&worker, FAILURE);
    assert_eq!(losses(), 0, "an attempt that ends by itself resets the count");
    lose(fixture, "boot-1");
    fixture.run(&worker, Outcome::Released);
    assert_eq!(losses(), 1, "a released attempt does not change the count");
    lose(fixture, "boot-1");
    assert_eq!(fixture.state("a"), StateName::Dead);
    fixture.retry("a");
    assert_eq!(losses(), 0, "a retry resets the count");
}

fn a_cancelled_job_does_not_come_back(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue_all(["lost", "released"].map(job));
    let leases = fixture.leases(&worker, 2);
    fixture.cancel("lost");
    fixture.cancel("released");
    fixture.reap_started(&worker, &leases[..1]);
    assert_eq!(["lost", "released"].map(|id| fixture.state(id)), [StateName::Cancelled; 2]);
    let next = fixture.worker("next");
    assert_eq!(fixture.claim(&next, 9), [""; 0]);
}

fn overdue(fixture: &Fixture) -> Vec<String> {
    fixture.overdue().iter().map(WorkerId::to_string).collect()
}

fn each_lease_expires_by_itself(fixture: &Fixture) {
    fixture.set(SettingKey::Lease, "30s");
    let (first, second) = (fixture.worker("w1"), fixture.worker("w2"));
    fixture.worker("idle");
    fixture.enqueue_all(["a", "b", "c"].map(job));
    fixture.leases(&first, 2);
    fixture.pass_secs(10);
    fixture.lease(&second);
    fixture.pass_secs(20);
    assert_eq!(overdue(fixture), [""; 0], "the lease is valid up to its last millisecond");
    fixture.pass_millis(1);
    assert_eq!(overdue(fixture), ["w1"], "a worker is listed once");
    fixture.pass_secs(10);
    assert_eq!(overdue(fixture), ["w1", "w2"]);
    fixture.reap(&first);
    assert_eq!(overdue(fixture), ["w2"]);
}

fn a_heartbeat_extends_a_lease(fixture: &Fixture) {
    fixture.set(SettingKey::Lease, "30s");
    let worker = fixture.worker("w");
    fixture.enqueue("a");
    let lease = fixture.lease(&worker);
    for _ in 0..10 {
        fixture.pass_secs(29);
        assert_eq!(fixture.extend(&worker, &lease), LeaseStatus::Held);
        assert_eq!(overdue(fixture), [""; 0]);
    }
    let State::Processing(held) = fixture.job("a").life.state else { panic!("the job is not running") };
    assert_eq!(held.until, fixture.now().saturating_add(Duration::from_secs(30)));
    // A changed lease setting applies from the next heartbeat.
    fixture.set(SettingKey::Lease, "60s");
    fixture.extend(&worker, &lease);
    fixture.pass_secs(60);
    assert_eq!(overdue(fixture), [""; 0]);
    fixture.pass_millis(1);
    assert_eq!(overdue(fixture), ["w"]);
}

fn a_wall_clock_jump_expires_no_lease(fixture: &Fixture) {
    const DAY_MILLIS: i64 = 24 * 3_600 * 1_000;
    fixture.set(SettingKey::Lease, "30s");
    let worker = fixture.worker("w");
    fixture.enqueue("a");
    let lease = fixture.lease(&worker);
    for jump in [DAY_MILLIS, -3 * DAY_MILLIS, 2 * DAY_MILLIS] {
        fixture.pass_secs(15);
        fixture.clock.jump(jump);
        assert_eq!(overdue(fixture), [""; 0], "a jump by {jump} ms");
        fixture.pass_secs(15);
        assert_eq!(overdue(fixture), [""; 0], "a jump by {jump} ms");
        fixture.pass_millis(1);
        assert_eq!(overdue(fixture), ["w"], "a jump does not extend a lease either");
        assert_eq!(fixture.extend(&worker, &lease), LeaseStatus::Held);
    }
    assert!(fixture.settle(&worker, &lease, Outcome::Success));
}

/// While a machine sleeps, the wall clock advances and the clock of leases does not.
fn fault_25_a_laptop_that_sleeps_for_an_hour_loses_no_lease(fixture: &Fixture) {
    const HOUR_MILLIS: i64 = 3_600 * 1_000;
    fixture.set(SettingKey::Lease, "30s");
    let (worker, other) = (fixture.worker("w"), fixture.worker("other"));
    fixture.enqueue("a");
    let lease = fixture.lease(&worker);
    fixture.pass_secs(29);
    fixture.clock.jump(HOUR_MILLIS);
    assert_eq!(overdue(fixture), [""; 0], "the lease has not expired");
    let State::Processing(held) = fixture.job("a").life.state else { panic!("the job is not running") };
    assert_eq!(
        held.until,
        fixture.now().saturating_add(Duration::from_secs(1)),
        "the remaining time is unchanged"
    );
    assert_eq!(fixture.claim(&other, 9), [""; 0], "no other worker claims the job");
    assert_eq!(fixture.extend(&worker, &lease), LeaseStatus::Held);
    fixture.clock.jump(HOUR_MILLIS);
    assert!(fixture.settle(&worker, &lease, Outcome::Success), "its result is recorded");
    assert_eq!(fixture.outcomes("a"), [Outcome::Success]);
}
