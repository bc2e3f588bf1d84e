//! Retrying jobs.

use std::time::Duration;

use domain::job::life::{State, StateName};
use domain::job::outcome::Outcome;
use store::{Change, Conflict, JobVerb, Settlement};

use crate::store::fixture::new_job::{job, job_id};
use crate::store::fixture::{FAILURE, Fixture, every_store, settlement};

every_store!(
    a_finished_job_runs_again_with_all_its_retries,
    a_retried_failed_job_is_due_immediately,
    retrying_a_pending_or_running_job_is_a_conflict,
    each_of_several_ids_has_its_own_result,
    a_retry_clears_the_error_and_keeps_the_history,
    a_retried_job_still_waits_for_its_start_time,
    a_retried_job_needs_its_unique_key,
);

fn a_finished_job_runs_again_with_all_its_retries(fixture: &Fixture) {
    let worker = fixture.worker("w");
    for (id, outcome, state) in [
        ("completed", Outcome::Success, StateName::Completed),
        ("dead", FAILURE, StateName::Dead),
        ("cancelled", Outcome::Cancelled, StateName::Cancelled),
    ] {
        fixture.enqueue(job(id).max_retries(0));
        fixture.run(&worker, outcome);
        assert_eq!(fixture.state(id), state);
        fixture.pass_secs(1);
        assert_eq!(fixture.retry(id), Change::Done(StateName::Pending), "{id}");
        let life = fixture.job(id).life;
        assert_eq!(life.state, State::Pending { blocked_by: 0 }, "{id}");
        assert_eq!((life.attempts, life.failures), (1, 0), "{id}");
        assert_eq!(life.due_at, fixture.now(), "{id}");
        assert_eq!(fixture.run(&worker, Outcome::Success), id);
    }
}

fn a_retried_failed_job_is_due_immediately(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue("a");
    fixture.run(&worker, FAILURE);
    assert_eq!(fixture.claim(&worker, 1), [""; 0]);
    assert_eq!(fixture.retry("a"), Change::Done(StateName::Pending));
    assert_eq!(fixture.claim(&worker, 9), ["a"], "the job is claimed once");
    assert_eq!(fixture.job("a").life.failures, 0);

    // Also a job that is due, promoted or not.
    for promote in [false, true] {
        let id = format!("b{promote}");
        fixture.enqueue(id.as_str());
        fixture.run(&worker, FAILURE);
        fixture.pass_secs(2);
        if promote {
            fixture.exchange(&worker, &[], 0);
        }
        assert_eq!(fixture.retry(&id), Change::Done(StateName::Pending));
        assert_eq!(fixture.claim(&worker, 9), [id.as_str()], "promoted: {promote}");
    }
}

fn retrying_a_pending_or_running_job_is_a_conflict(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue("running");
    fixture.lease(&worker);
    fixture.enqueue_all([job("ready"), job("scheduled").delay_secs(9), job("blocked").after(&["ready"])]);
    for (id, state) in [
        ("running", StateName::Processing),
        ("ready", StateName::Pending),
        ("scheduled", StateName::Pending),
        ("blocked", StateName::Pending),
    ] {
        let before = fixture.record(id);
        fixture.pass_millis(1);
        assert_eq!(fixture.retry(id), Change::Conflict(Conflict::State(state)), "{id}");
        assert_eq!(fixture.record(id), before, "{id} is unchanged");
    }
}

fn each_of_several_ids_has_its_own_result(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue_all([job("done"), job("waits")]);
    fixture.run(&worker, Outcome::Success);
    let ids = ["unknown", "waits", "done", "done"].map(job_id);
    let pending = Change::Conflict(Conflict::State(StateName::Pending));
    assert_eq!(
        fixture.change_all(JobVerb::Retry, &ids),
        [Change::NotFound, pending.clone(), Change::Done(StateName::Pending), pending]
    );
}

fn a_retry_clears_the_error_and_keeps_the_history(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue(job("a").max_retries(0));
    let lease = fixture.lease(&worker);
    let failed = Settlement {
        error: Some("no".to_owned()),
        output: Some(b"no\n".to_vec()),
        ..settlement(&lease, FAILURE)
    };
    fixture.exchange(&worker, &[failed], 0);
    let history = fixture.record("a").history;
    fixture.retry("a");
    let record = fixture.record("a");
    assert_eq!(record.job.latest.error, None);
    assert_eq!(record.history, history);
    let output = fixture.store.output(&job_id("a"), 1).expect("output");
    assert_eq!(output.as_deref(), Some(&b"no\n"[..]));
}

fn a_retried_job_still_waits_for_its_start_time(fixture: &Fixture) {
    let worker = fixture.worker("w");
    let run_at = fixture.now().saturating_add(Duration::from_secs(60));
    fixture.enqueue(job("a").at(run_at));
    fixture.cancel("a");
    fixture.retry("a");
    assert_eq!(fixture.job("a").life.due_at, run_at);
    assert_eq!(fixture.claim(&worker, 1), [""; 0]);
    fixture.pass_secs(60);
    assert_eq!(fixture.claim(&worker, 1), ["a"]);
}

fn a_retried_job_needs_its_unique_key(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue(job("a").unique_key("k"));
    fixture.run(&worker, FAILURE);
    assert_eq!(fixture.retry("a"), Change::Done(StateName::Pending), "a failed job keeps its key");
    fixture.run(&worker, Outcome::Success);
    fixture.enqueue(job("b").unique_key("k"));
    let before = fixture.record("a");
    let taken = Conflict::KeyTaken { holder: job_id("b") };
    assert_eq!(fixture.retry("a"), Change::Conflict(taken));
    assert_eq!(fixture.record("a"), before, "a conflict changes nothing");

    fixture.cancel("b");
    assert_eq!(fixture.retry("a"), Change::Done(StateName::Pending));
    let held = fixture.enqueue_all([job("c").unique_key("k")]).remove(0);
    assert_eq!(held.id(), &job_id("a"));
}
