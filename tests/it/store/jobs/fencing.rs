//! A worker that lost its lease can change nothing, no matter how it lost the lease.

use domain::job::life::{State, StateName};
use domain::job::outcome::Outcome;
use domain::values::name::WorkerId;
use domain::values::signal::Signal;
use store::{JobFilter, LeaseRef, LeaseStatus, Phase, Settlement};

use crate::store::fixture::new_job::{job, job_id};
use crate::store::fixture::{FAILURE, Fixture, every_store, settlement};

every_store!(
    fault_25_a_late_settlement_changes_nothing,
    another_worker_cannot_settle_or_extend_a_lease,
    an_attempt_that_was_never_claimed_cannot_be_settled,
    a_reaper_takes_back_only_leases_that_the_worker_still_holds,
    a_late_settlement_of_a_removed_job_is_stale,
    a_success_after_a_cancel_counts_and_a_failure_does_not,
);

const EVERY_OUTCOME: [Outcome; 8] = [
    Outcome::Success,
    FAILURE,
    Outcome::Signal { signal: Signal::KILL },
    Outcome::Timeout,
    Outcome::SpawnError,
    Outcome::Lost,
    Outcome::Cancelled,
    Outcome::Released,
];

/// The worker makes every possible call for a lease: none of them may change anything.
fn assert_lease_is_fenced(fixture: &Fixture, worker: &WorkerId, lease: &LeaseRef, how: &str) {
    let id = lease.job.as_str();
    let before = fixture.record(id);
    let output = || fixture.store.output(&lease.job, lease.attempt).expect("output");
    let output_before = output();
    for outcome in EVERY_OUTCOME {
        let late = Settlement {
            error: Some("too late".to_owned()),
            log_bytes: 3,
            output: Some(b"too late".to_vec()),
            ..settlement(lease, outcome)
        };
        let exchanged = fixture.exchange(worker, &[late], 0);
        assert_eq!(exchanged.stale, std::slice::from_ref(lease), "{how}: {outcome:?} is stale");
        assert_eq!(fixture.record(id), before, "{how}: {outcome:?} changes nothing");
    }
    // Together with the leases that it holds, so that only the lost one makes a difference.
    let held = held_by(fixture, worker);
    fixture.store.extend(worker, &held).expect("extend");
    let before = fixture.record(id);
    let named = [held, vec![lease.clone()]].concat();
    let statuses = fixture.store.extend(worker, &named).expect("extend");
    assert_eq!(statuses.last(), Some(&LeaseStatus::Lost), "{how}: extend");
    assert_eq!(fixture.record(id), before, "{how}: extend changes nothing");
    assert_eq!(output(), output_before, "{how}: the output is unchanged");
    fixture.recount();
}

/// The leases that a worker holds.
fn held_by(fixture: &Fixture, worker: &WorkerId) -> Vec<LeaseRef> {
    let processing = JobFilter::in_phase(Phase::State(StateName::Processing));
    let jobs = fixture.list_by(&processing, 100).into_iter().map(|id| fixture.job(&id));
    jobs.filter(|job| matches!(&job.life.state, State::Processing(lease) if lease.worker == *worker))
        .map(|job| LeaseRef { attempt: job.life.attempts, job: job.id })
        .collect()
}

/// Makes a worker lose its lease on the only job.
type Loss = fn(&Fixture, &WorkerId, &LeaseRef);

const LOSSES: [(&str, Loss); 9] = [
    ("completed", |fixture, worker, lease| {
        fixture.settle(worker, lease, Outcome::Success);
    }),
    ("failed", |fixture, worker, lease| {
        fixture.settle(worker, lease, FAILURE);
    }),
    ("released", |fixture, worker, lease| {
        fixture.settle(worker, lease, Outcome::Released);
    }),
    ("cancelled", |fixture, worker, lease| {
        fixture.cancel("a");
        fixture.settle(worker, lease, Outcome::Cancelled);
    }),
    ("reaped", |fixture, worker, _| {
        fixture.reap(worker);
    }),
    ("claimed again by the same worker", |fixture, worker, lease| {
        fixture.settle(worker, lease, Outcome::Released);
        fixture.lease(worker);
    }),
    ("claimed by another worker", |fixture, worker, _| {
        fixture.reap(worker);
        let other = fixture.worker("other");
        fixture.lease(&other);
    }),
    ("claimed again and completed", |fixture, worker, lease| {
        fixture.settle(worker, lease, Outcome::Released);
        fixture.run(worker, Outcome::Success);
    }),
    ("retried after its end", |fixture, worker, lease| {
        fixture.settle(worker, lease, Outcome::Success);
        fixture.retry("a");
    }),
];

fn fault_25_a_late_settlement_changes_nothing(fixture: &Fixture) {
    for (at, (how, lose)) in LOSSES.into_iter().enumerate() {
        let worker = fixture.worker(&format!("w{at}"));
        fixture.enqueue("a");
        let lease = fixture.lease(&worker);
        fixture.pass_secs(1);
        lose(fixture, &worker, &lease);
        fixture.pass_secs(1);
        assert_lease_is_fenced(fixture, &worker, &lease, how);

        fixture.pass_secs(1);
        for holder in fixture.store.workers().expect("workers") {
            fixture.reap(&holder.id);
        }
        fixture.cancel("a");
        fixture.remove("a");
    }
}

fn another_worker_cannot_settle_or_extend_a_lease(fixture: &Fixture) {
    let (holder, other) = (fixture.worker("holder"), fixture.worker("other"));
    fixture.enqueue("a");
    let lease = fixture.lease(&holder);
    assert_lease_is_fenced(fixture, &other, &lease, "held by another");
    assert_eq!(fixture.reap_started(&other, std::slice::from_ref(&lease)), []);
    assert!(fixture.settle(&holder, &lease, Outcome::Success), "the holder still has the lease");
}

fn an_attempt_that_was_never_claimed_cannot_be_settled(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue("a");
    let lease = |attempt| LeaseRef { job: job_id("a"), attempt };
    for attempt in [0, 1, u32::MAX] {
        assert_lease_is_fenced(fixture, &worker, &lease(attempt), "pending");
    }
    fixture.lease(&worker);
    for attempt in [0, 2, u32::MAX] {
        assert_lease_is_fenced(fixture, &worker, &lease(attempt), "processing");
    }
}

fn a_reaper_takes_back_only_leases_that_the_worker_still_holds(fixture: &Fixture) {
    let (worker, other) = (fixture.worker("w"), fixture.worker("other"));
    fixture.enqueue_all(["a", "b"].map(job));
    let old = fixture.lease(&worker);
    fixture.settle(&worker, &old, Outcome::Released);
    let again = fixture.lease(&worker);
    let elsewhere = fixture.lease(&other);
    let before = fixture.record("b");

    // The list of started attempts names one that is over: the current attempt was never started.
    assert_eq!(fixture.reap_started(&worker, &[old]), [again]);
    assert_eq!(fixture.outcomes("a"), [Outcome::Released, Outcome::Released]);
    assert_eq!(fixture.reap_started(&worker, &[elsewhere]), [], "a second reaper finds nothing");
    assert_eq!(fixture.record("b"), before, "another worker's job is unchanged");
}

fn a_late_settlement_of_a_removed_job_is_stale(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue("a");
    let lease = fixture.lease(&worker);
    fixture.settle(&worker, &lease, Outcome::Success);
    fixture.remove("a");
    assert!(!fixture.settle(&worker, &lease, FAILURE));
    assert_eq!(fixture.extend(&worker, &lease), LeaseStatus::Lost);

    // A new job with the same id has its own lease.
    fixture.enqueue("a");
    let new = fixture.lease(&worker);
    assert_eq!(new, lease, "the same id and attempt for another job");
    assert!(fixture.settle(&worker, &new, Outcome::Success));
}

fn a_success_after_a_cancel_counts_and_a_failure_does_not(fixture: &Fixture) {
    let worker = fixture.worker("w");
    for outcome in EVERY_OUTCOME {
        fixture.enqueue(job("a").max_retries(0));
        let lease = fixture.lease(&worker);
        fixture.cancel("a");
        assert!(fixture.settle(&worker, &lease, outcome), "{outcome:?} is recorded");
        let expected = if outcome == Outcome::Success { StateName::Completed } else { StateName::Cancelled };
        assert_eq!(fixture.state("a"), expected, "{outcome:?}");
        assert_eq!(fixture.outcomes("a"), [outcome]);
        fixture.remove("a");
    }
}
