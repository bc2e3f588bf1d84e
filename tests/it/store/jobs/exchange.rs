//! One exchange of a worker: settle, promote, claim.

use std::time::Duration;

use domain::job::life::{DeadReason, StateName};
use domain::job::outcome::Outcome;
use store::{Exchange, LeaseRef, SettledJob, StoreError};

use crate::store::fixture::new_job::{job, job_id};
use crate::store::fixture::{FAILURE, Fixture, every_store, settlement};

every_store!(
    one_exchange_settles_and_claims,
    jobs_made_ready_by_an_exchange_are_claimed_in_it,
    an_attempt_is_settled_once,
    an_exchange_reports_the_new_state_of_each_job,
    a_claim_carries_the_number_of_its_job,
    settlements_of_one_exchange_are_independent,
    an_exchange_reports_when_the_next_job_is_due,
    an_exchange_that_wants_no_jobs_claims_none,
    an_unknown_worker_changes_nothing,
    very_many_due_jobs_are_claimed_in_order,
);

fn one_exchange_settles_and_claims(fixture: &Fixture) {
    fixture.enqueue_all(["a", "b", "c"].map(job));
    let worker = fixture.worker("w");
    let leases = fixture.leases(&worker, 2);
    let settlements = [settlement(&leases[0], Outcome::Success), settlement(&leases[1], FAILURE)];
    let exchanged = fixture.exchange(&worker, &settlements, 2);
    let claimed: Vec<_> = exchanged.claimed.iter().map(|claim| &claim.lease.job).collect();
    assert_eq!(claimed, [&job_id("c")]);
    assert_eq!(exchanged.stale, []);
    assert_eq!(
        ["a", "b", "c"].map(|id| fixture.state(id)),
        [StateName::Completed, StateName::Failed, StateName::Processing]
    );
}

fn jobs_made_ready_by_an_exchange_are_claimed_in_it(fixture: &Fixture) {
    fixture.enqueue_all([job("parent"), job("child").after(&["parent"]).priority(1), job("back")]);
    let worker = fixture.worker("w");
    let leases = fixture.leases(&worker, 2);
    let settlements = [settlement(&leases[0], Outcome::Success), settlement(&leases[1], Outcome::Released)];
    let exchanged = fixture.exchange(&worker, &settlements, 9);
    let leases: Vec<_> = exchanged.claimed.into_iter().map(|claim| claim.lease).collect();
    let lease = |id, attempt| LeaseRef { job: job_id(id), attempt };
    assert_eq!(leases, [lease("child", 1), lease("back", 2)]);
}

fn an_attempt_is_settled_once(fixture: &Fixture) {
    fixture.enqueue("a");
    let worker = fixture.worker("w");
    let lease = fixture.lease(&worker);
    let settlements = [settlement(&lease, FAILURE), settlement(&lease, Outcome::Success)];
    let exchanged = fixture.exchange(&worker, &settlements, 0);
    assert_eq!(exchanged.stale, [lease], "the second settlement is stale");
    assert_eq!(fixture.outcomes("a"), [FAILURE]);
}

fn an_exchange_reports_the_new_state_of_each_job(fixture: &Fixture) {
    fixture.enqueue_all([job("failed"), job("dead").max_retries(0), job("cancelled"), job("stale")]);
    fixture.enqueue_all(["released", "completed"].map(job));
    let worker = fixture.worker("w");
    let leases = fixture.leases(&worker, 6);
    fixture.cancel("cancelled");
    fixture.settle(&worker, &leases[3], Outcome::Success);
    let outcomes = [FAILURE, FAILURE, FAILURE, FAILURE, Outcome::Released, Outcome::Success];
    let settlements: Vec<_> =
        leases.iter().zip(outcomes).map(|(lease, outcome)| settlement(lease, outcome)).collect();
    let exchanged = fixture.exchange(&worker, &settlements, 0);
    let retry = Some(fixture.now().saturating_add(Duration::from_secs(2)));
    let settled = |at: usize, state, next_retry_at, dead| SettledJob {
        lease: leases[at].clone(),
        state,
        next_retry_at,
        dead,
    };
    assert_eq!(
        exchanged.settled,
        [
            settled(0, StateName::Failed, retry, None),
            settled(1, StateName::Dead, None, Some(DeadReason::RetriesExhausted)),
            settled(2, StateName::Cancelled, None, None),
            settled(4, StateName::Pending, None, None),
            settled(5, StateName::Completed, None, None),
        ]
    );
    assert_eq!(exchanged.stale, [leases[3].clone()]);
}

fn a_claim_carries_the_number_of_its_job(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue("gone");
    fixture.cancel("gone");
    fixture.remove("gone");
    fixture.enqueue_all([job("a"), job("b").priority(1)]);
    let numbers = ["a", "b"].map(|id| fixture.job(id).number);
    assert_eq!(numbers, [2, 3], "numbers follow the order of enqueuing and are not reused");
    let claimed = fixture.exchange(&worker, &[], 2).claimed;
    let claimed: Vec<_> = claimed.iter().map(|claim| (claim.lease.job.as_str(), claim.number)).collect();
    assert_eq!(claimed, [("b", 3), ("a", 2)]);
}

fn settlements_of_one_exchange_are_independent(fixture: &Fixture) {
    fixture.enqueue_all(["a", "b", "gone"].map(job));
    let worker = fixture.worker("w");
    let leases = fixture.leases(&worker, 3);
    fixture.settle(&worker, &leases[2], Outcome::Success);
    fixture.remove("gone");
    let settlements = [&leases[0], &leases[2], &leases[1]].map(|lease| settlement(lease, Outcome::Success));
    let exchanged = fixture.exchange(&worker, &settlements, 0);
    assert_eq!(exchanged.stale, [leases[2].clone()]);
    assert_eq!(
        ["a", "b"].map(|id| fixture.state(id)),
        [StateName::Completed; 2],
        "a stale settlement does not affect the others"
    );
}

fn an_exchange_reports_when_the_next_job_is_due(fixture: &Fixture) {
    let worker = fixture.worker("w");
    let next_due = || fixture.exchange(&worker, &[], 1).next_due;
    let in_secs = |secs| fixture.now().saturating_add(Duration::from_secs(secs));
    assert_eq!(next_due(), None, "an empty store");
    fixture.enqueue("plain");
    fixture.enqueue(job("late").delay_secs(60));
    let late = in_secs(60);
    fixture.enqueue(job("soon").delay_secs(10));
    assert_eq!(next_due(), Some(in_secs(10)));

    let running = LeaseRef { job: job_id("plain"), attempt: 1 };
    let exchanged = fixture.exchange(&worker, &[settlement(&running, FAILURE)], 0);
    assert_eq!(exchanged.next_due, Some(in_secs(2)), "the retry is due first");
    fixture.cancel("plain");
    assert_eq!(next_due(), Some(in_secs(10)));
    fixture.pass_secs(10);
    assert_eq!(next_due(), Some(late), "the due job was claimed");
}

fn an_exchange_that_wants_no_jobs_claims_none(fixture: &Fixture) {
    fixture.enqueue("a");
    let worker = fixture.worker("w");
    assert_eq!(fixture.claim(&worker, 0), [""; 0]);
    assert_eq!(fixture.state("a"), StateName::Pending);
}

fn an_unknown_worker_changes_nothing(fixture: &Fixture) {
    fixture.enqueue("a");
    let worker = fixture.worker("w");
    let lease = fixture.lease(&worker);
    let before = fixture.record("a");
    let stranger = "stranger".parse().expect("a worker id");
    let exchanged = fixture.store.exchange(&Exchange {
        worker: &stranger,
        settlements: &[settlement(&lease, Outcome::Success)],
        want: 1,
        want_limited: 1,
    });
    assert!(matches!(exchanged, Err(StoreError::NoSuchWorker(_))), "{exchanged:?}");
    assert_eq!(fixture.record("a"), before);
}

/// More jobs than any store should promote in one transaction.
const VERY_MANY: u64 = 10_500;

fn very_many_due_jobs_are_claimed_in_order(fixture: &Fixture) {
    // The first job in claim order becomes due last and was enqueued last.
    let plain = (0..VERY_MANY).map(|n| job(&format!("j{n}")).delay_secs(n % 7 + 1));
    fixture.enqueue_all(plain.chain([job("first").priority(1).delay_secs(7)]));
    fixture.pass_secs(7);
    let worker = fixture.worker("w");
    assert_eq!(fixture.claim(&worker, 4), ["first", "j0", "j7", "j14"]);
    assert_eq!(fixture.exchange(&worker, &[], 0).next_due, None, "all of them were promoted");
    let next = fixture.claim(&worker, 2_000);
    let expected: Vec<String> = (0..7)
        .flat_map(|secs| (0..VERY_MANY).filter(move |n| n % 7 == secs))
        .skip(3)
        .take(2_000)
        .map(|n| format!("j{n}"))
        .collect();
    assert!(next == expected, "by due time, then by enqueue order");
}
