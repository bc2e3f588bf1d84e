//! Recording how an attempt ended.

use std::time::{Duration, Instant};

use domain::job::Usage;
use domain::job::backoff::{BackoffChoice, Strategy};
use domain::job::life::{DeadReason, State, StateName};
use domain::job::outcome::Outcome;
use domain::settings::SettingKey;
use domain::values::signal::Signal;
use store::{LeaseRef, Settlement};

use crate::store::fixture::new_job::{job, job_id};
use crate::store::fixture::{FAILURE, Fixture, every_store, settlement};

every_store!(
    every_outcome_leads_to_its_state_and_its_attempt_row,
    the_times_of_an_attempt_are_those_of_the_worker_not_of_the_commits,
    an_attempt_does_not_end_earlier_because_the_store_is_slow,
    usage_and_output_of_an_attempt_are_stored,
    a_success_clears_the_error,
    the_running_attempt_is_in_the_history,
    retries_come_at_their_times_until_the_job_is_dead,
    lost_and_released_attempts_use_up_no_retries,
    a_job_without_retries_is_dead_after_its_first_failure,
    an_exit_code_that_is_not_retried_ends_the_job,
    the_backoff_settings_at_the_failure_count,
    a_job_can_have_its_own_backoff,
    a_far_retry_does_not_overflow,
    attempt_numbers_always_increase,
);

const KILLED: Outcome = Outcome::Signal { signal: Signal::KILL };

/// Every outcome, the state that follows, and the failures counted.
const OUTCOMES: [(Outcome, StateName, u32); 8] = [
    (Outcome::Success, StateName::Completed, 0),
    (Outcome::Failure { exit_code: 137 }, StateName::Failed, 1),
    (KILLED, StateName::Failed, 1),
    (Outcome::Timeout, StateName::Failed, 1),
    (Outcome::SpawnError, StateName::Failed, 1),
    (Outcome::Lost, StateName::Pending, 0),
    (Outcome::Cancelled, StateName::Cancelled, 0),
    (Outcome::Released, StateName::Pending, 0),
];

fn every_outcome_leads_to_its_state_and_its_attempt_row(fixture: &Fixture) {
    let worker = fixture.worker("w");
    for (outcome, state, failures) in OUTCOMES {
        fixture.enqueue("a");
        let started_at = fixture.now();
        let lease = fixture.lease(&worker);
        fixture.pass_millis(250);
        let error = format!("outcome {outcome}");
        let settled = Settlement {
            error: Some(error.clone()),
            duration: Duration::from_millis(240),
            ..settlement(&lease, outcome)
        };
        fixture.exchange(&worker, &[settled], 0);

        let record = fixture.record("a");
        let error = Some(error).filter(|_| outcome != Outcome::Success);
        assert_eq!(record.job.life.state.name(), state, "{outcome:?}");
        assert_eq!(record.job.life.failures, failures, "{outcome:?}");
        assert_eq!(record.job.latest.started_at, Some(started_at), "{outcome:?}");
        assert_eq!(record.job.latest.exit_code, outcome.exit_code(), "{outcome:?}");
        assert_eq!(record.job.latest.signal, outcome.signal(), "{outcome:?}");
        assert_eq!(record.job.latest.error, error, "{outcome:?}");
        assert_eq!(record.job.updated_at, fixture.now(), "{outcome:?}");

        let [attempt] = &record.history[..] else { panic!("{outcome:?} has one row: {:?}", record.history) };
        let ending = attempt.ending.as_ref().expect("the attempt ended");
        assert_eq!((attempt.number, &attempt.worker), (1, &worker), "{outcome:?}");
        assert_eq!(attempt.host, "here", "{outcome:?}");
        assert_eq!(attempt.started_at, started_at, "{outcome:?}");
        assert_eq!(ending.finished_at, fixture.now(), "{outcome:?}");
        assert_eq!(ending.duration, Duration::from_millis(240), "{outcome:?}");
        assert_eq!(ending.outcome, outcome);
        assert_eq!(ending.error, error, "{outcome:?}");

        fixture.recount();
        fixture.remove("a");
    }
}

fn the_times_of_an_attempt_are_those_of_the_worker_not_of_the_commits(fixture: &Fixture) {
    const AGO: Duration = Duration::from_secs(3);
    let worker = fixture.worker("w");
    fixture.enqueue("a");
    let claimed_at = fixture.now();
    let lease = fixture.lease(&worker);
    fixture.pass_secs(3_600);
    let ended = Instant::now().checked_sub(AGO);
    let took = Duration::from_secs(60);
    let settled = Settlement { duration: took, ended, ..settlement(&lease, Outcome::Success) };
    fixture.exchange(&worker, &[settled], 0);
    let record = fixture.record("a");
    let ending = record.history[0].ending.as_ref().expect("the attempt ended");
    assert!(fixture.now().since(ending.finished_at) >= AGO);
    assert_eq!(ending.finished_at.since(record.history[0].started_at), took);
    assert_eq!(record.job.latest.started_at, Some(record.history[0].started_at));
    let State::Completed { finished_at } = record.job.life.state else {
        panic!("not completed: {:?}", record.job)
    };
    assert_eq!(finished_at, ending.finished_at);
    assert!(record.history[0].started_at > claimed_at);

    // Impossible times are replaced by the time of the claim.
    fixture.enqueue("b");
    let claimed_at = fixture.now();
    let lease = fixture.lease(&worker);
    fixture.pass_secs(1);
    let settled = Settlement { duration: took, ended, ..settlement(&lease, Outcome::Success) };
    fixture.exchange(&worker, &[settled], 0);
    let record = fixture.record("b");
    let ending = record.history[0].ending.as_ref().expect("the attempt ended");
    assert_eq!((record.history[0].started_at, ending.finished_at), (claimed_at, claimed_at));
}

/// The store may date a transaction and record the end a while later. A retry counts from the end.
fn an_attempt_does_not_end_earlier_because_the_store_is_slow(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue("a");
    let lease = fixture.lease(&worker);
    fixture.pass_millis(60_000);
    fixture.clock.stall(Duration::from_secs(2));
    // The worker saw the end when the transaction had begun at the latest.
    let ended = Some(Instant::now() + Duration::from_secs(1));
    fixture.exchange(&worker, &[Settlement { ended, ..settlement(&lease, FAILURE) }], 0);
    fixture.clock.stall(Duration::ZERO);
    let ending = fixture.record("a").history[0].ending.clone().expect("it has ended");
    assert_eq!(ending.finished_at, fixture.now());
}

fn usage_and_output_of_an_attempt_are_stored(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue("a");
    let lease = fixture.lease(&worker);
    let usage = Usage { cpu: Some(Duration::from_millis(12)), max_rss_bytes: Some(1 << 40) };
    let output: Vec<u8> = (0..=255).collect();
    let settled =
        Settlement { usage, log_bytes: 256, output: Some(output.clone()), ..settlement(&lease, FAILURE) };
    fixture.exchange(&worker, &[settled], 0);
    fixture.pass_secs(2);
    fixture.run(&worker, Outcome::Success);

    let history = fixture.record("a").history;
    let kept: Vec<_> = history
        .iter()
        .map(|attempt| attempt.ending.as_ref().expect("the attempt ended"))
        .map(|ending| (ending.usage, ending.log_bytes))
        .collect();
    assert_eq!(kept, [(usage, 256), (Usage::default(), 0)]);
    let output_of = |attempt| fixture.store.output(&job_id("a"), attempt).expect("output");
    assert_eq!(output_of(1), Some(output), "byte for byte");
    assert_eq!(output_of(2), None, "the attempt has no output");
    assert_eq!(output_of(3), None, "the attempt does not exist");
    let missing = fixture.store.output(&job_id("unknown"), 1).expect("output");
    assert_eq!(missing, None);
}

fn a_success_clears_the_error(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue("a");
    let lease = fixture.lease(&worker);
    let failed =
        Settlement { error: Some("exit code 1: no such host".to_owned()), ..settlement(&lease, FAILURE) };
    fixture.exchange(&worker, &[failed], 0);
    let error = || fixture.job("a").latest.error;
    assert_eq!(error().as_deref(), Some("exit code 1: no such host"));
    fixture.pass_secs(2);
    let lease = fixture.lease(&worker);
    assert_eq!(error().as_deref(), Some("exit code 1: no such host"), "while the next attempt runs");
    fixture.settle(&worker, &lease, Outcome::Success);
    assert_eq!((error(), fixture.job("a").latest.exit_code), (None, Some(0)));
}

fn the_running_attempt_is_in_the_history(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue("a");
    fixture.run(&worker, Outcome::Released);
    fixture.pass_secs(1);
    fixture.lease(&worker);
    let history = fixture.record("a").history;
    let running = history.last().expect("an attempt");
    assert_eq!(history.len(), 2);
    assert_eq!((running.number, &running.worker), (2, &worker));
    assert_eq!((running.started_at, &running.ending), (fixture.now(), &None));
}

fn retries_come_at_their_times_until_the_job_is_dead(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue("a");
    let enqueued_at = fixture.now();
    let mut started_after_secs = Vec::new();
    // Second by second, until long after the last retry.
    for _ in 0..60 {
        if let Some(lease) = fixture.leases(&worker, 1).pop() {
            started_after_secs.push(fixture.now().since(enqueued_at).as_secs());
            assert_eq!(lease.attempt as usize, started_after_secs.len());
            fixture.settle(&worker, &lease, FAILURE);
        }
        fixture.pass_secs(1);
    }
    assert_eq!(started_after_secs, [0, 2, 6, 14]);
    let life = fixture.job("a").life;
    let died_at = enqueued_at.saturating_add(Duration::from_secs(14));
    assert_eq!(life.state, State::Dead { finished_at: died_at, reason: DeadReason::RetriesExhausted });
    assert_eq!((life.attempts, life.failures), (4, 4));
    assert_eq!(fixture.outcomes("a"), [FAILURE; 4]);
}

fn lost_and_released_attempts_use_up_no_retries(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue(job("a").max_retries(1));
    for outcome in [Outcome::Lost, Outcome::Released, KILLED, Outcome::Lost, Outcome::Released] {
        fixture.run(&worker, outcome);
        fixture.pass_secs(300);
    }
    let life = fixture.job("a").life;
    assert_eq!((life.attempts, life.failures), (5, 1));
    fixture.run(&worker, Outcome::SpawnError);
    assert_eq!(fixture.state("a"), StateName::Dead);
}

fn a_job_without_retries_is_dead_after_its_first_failure(fixture: &Fixture) {
    let worker = fixture.worker("w");
    for outcome in [FAILURE, KILLED, Outcome::Timeout, Outcome::SpawnError] {
        fixture.enqueue(job("a").max_retries(0));
        fixture.run(&worker, outcome);
        assert_eq!(fixture.state("a"), StateName::Dead, "{outcome:?}");
        fixture.remove("a");
    }
}

fn an_exit_code_that_is_not_retried_ends_the_job(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue_all([job("a").no_retry_on("137"), job("b").no_retry_on("2"), job("c")]);
    for _ in 0..3 {
        fixture.run(&worker, Outcome::Failure { exit_code: 137 });
    }
    let died = State::Dead { finished_at: fixture.now(), reason: DeadReason::NotRetried };
    assert_eq!(fixture.job("a").life.state, died);
    assert_eq!((fixture.state("b"), fixture.state("c")), (StateName::Failed, StateName::Failed));
    let worker = fixture.worker("other");
    fixture.retry("a");
    fixture.run(&worker, KILLED);
    assert_eq!(fixture.state("a"), StateName::Failed, "a signal is not an exit code");
}

/// The backoff of a job that fails now.
fn wait_after_failure(fixture: &Fixture, id: &str) -> Duration {
    let worker = fixture.worker(&format!("for-{id}-{}", fixture.now().as_millis()));
    assert_eq!(fixture.run(&worker, FAILURE), id, "no other job is due");
    fixture.job(id).life.due_at.since(fixture.now())
}

fn the_backoff_settings_at_the_failure_count(fixture: &Fixture) {
    fixture.enqueue("a");
    for (key, value, wait_millis) in [
        (SettingKey::RetryDelay, "3s", 6_000),
        (SettingKey::BackoffBase, "1.5", 6_750),
        (SettingKey::BackoffStrategy, "linear", 9_000),
    ] {
        fixture.set(key, value);
        let wait = wait_after_failure(fixture, "a");
        assert_eq!(wait, Duration::from_millis(wait_millis), "{key} = {value}");
        fixture.pass_secs(300);
    }
    fixture.enqueue("b");
    fixture.cancel("a");
    fixture.set(SettingKey::MaxBackoff, "1s");
    assert_eq!(wait_after_failure(fixture, "b"), Duration::from_secs(1), "capped");
}

fn a_job_can_have_its_own_backoff(fixture: &Fixture) {
    fixture.enqueue(job("a").backoff(BackoffChoice {
        strategy: Some(Strategy::Fixed),
        delay: Some(Duration::from_secs(7)),
        ..BackoffChoice::default()
    }));
    fixture.set(SettingKey::RetryDelay, "50s");
    assert_eq!(wait_after_failure(fixture, "a"), Duration::from_secs(7));
    fixture.pass_secs(7);
    // Omitted fields come from the settings.
    fixture.set(SettingKey::MaxBackoff, "2s");
    assert_eq!(wait_after_failure(fixture, "a"), Duration::from_secs(2));
}

fn a_far_retry_does_not_overflow(fixture: &Fixture) {
    fixture.enqueue(job("a").max_retries(1_000_000).backoff(BackoffChoice {
        base: Some(1e300),
        max: Some(Duration::MAX),
        ..BackoffChoice::default()
    }));
    let worker = fixture.worker("w");
    fixture.run(&worker, FAILURE);
    assert_eq!(fixture.state("a"), StateName::Failed);
    assert_eq!(fixture.claim(&worker, 1), [""; 0]);
}

fn attempt_numbers_always_increase(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue(job("a").max_retries(0));
    let mut expected = Vec::new();
    for attempt in 1..=6 {
        let lease = fixture.lease(&worker);
        assert_eq!(lease, LeaseRef { job: job_id("a"), attempt });
        let outcome = [FAILURE, Outcome::Success, Outcome::Cancelled][attempt as usize % 3];
        fixture.settle(&worker, &lease, outcome);
        expected.push(outcome);
        fixture.retry("a");
    }
    assert_eq!(fixture.outcomes("a"), expected, "every attempt has its row");
    let numbers: Vec<u32> = fixture.record("a").history.iter().map(|attempt| attempt.number).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6]);
}
