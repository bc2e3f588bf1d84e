//! Retrying jobs.

use std::time::Duration;

use domain::job::life::{State, StateName};
use domain::job::outcome::Outcome;
use ops::jobs::bulk::change_selected;
use store::{Change, Conflict, JobFilter, JobRef, JobVerb, Phase, Settlement, Targets};

use crate::store::fixture::new_job::{job, job_id};
use crate::store::fixture::{ACTOR, FAILURE, Fixture, every_store, settlement};

every_store!(
    a_finished_job_runs_again_with_all_its_retries,
    a_retried_failed_job_is_due_immediately,
    retrying_a_pending_or_running_job_is_a_conflict,
    each_of_several_ids_has_its_own_result,
    a_retry_clears_the_error_and_keeps_the_history,
    a_retried_job_still_waits_for_its_start_time,
    a_retried_job_needs_its_unique_key,
    a_selected_job_whose_dependency_failed_again_is_not_retried,
    a_selected_job_that_runs_after_a_failure_is_retried,
    a_selection_is_retried_dependencies_first_whatever_their_numbers_are,
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

/// The jobs that are dead or cancelled, oldest first.
fn failed_jobs(fixture: &Fixture) -> Vec<JobRef> {
    let phases = [StateName::Dead, StateName::Cancelled].map(Phase::State).to_vec();
    let filter = JobFilter { phases, ..JobFilter::default() };
    let mut jobs = fixture.store.select(&filter, None, usize::MAX).expect("select");
    jobs.reverse();
    jobs
}

fn retry_selected(fixture: &Fixture, jobs: &[JobRef]) -> Vec<Change> {
    fixture.store.change(JobVerb::Retry, Targets::Selected(jobs), ACTOR).expect("change").changes
}

fn a_selected_job_whose_dependency_failed_again_is_not_retried(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue_all([
        job("root").max_retries(0),
        job("early").after(&["root"]),
        job("late").after(&["root"]),
        job("last").after(&["late"]),
    ]);
    fixture.run(&worker, FAILURE);
    let jobs = failed_jobs(fixture);
    let done = Change::Done(StateName::Pending);
    assert_eq!(retry_selected(fixture, &jobs[..2]), [done.clone(), done.clone()]);
    // The root dies between two portions of the selection.
    assert_eq!(fixture.run(&worker, FAILURE), "root");
    assert_eq!(fixture.state("early"), StateName::Cancelled);
    let before = [fixture.record("late"), fixture.record("last")];
    let refused =
        |id: &str, state| Change::Conflict(Conflict::DependencyFailed { dependency: job_id(id), state });
    assert_eq!(
        retry_selected(fixture, &jobs[2..]),
        [refused("root", StateName::Dead), refused("late", StateName::Cancelled)]
    );
    assert_eq!([fixture.record("late"), fixture.record("last")], before, "a conflict changes nothing");
    assert_eq!(fixture.claim(&worker, 9), [""; 0]);

    let ids = ["late", "root", "last", "early"].map(job_id);
    assert_eq!(
        fixture.change_all(JobVerb::RetryInOrder, &ids),
        [refused("root", StateName::Dead), done.clone(), refused("late", StateName::Cancelled), done.clone()]
    );
    assert_eq!(fixture.retry("last"), done, "a job that is named alone runs without its dependencies");
    assert_eq!(fixture.claim(&worker, 9), ["root", "last"]);
}

fn a_selected_job_that_runs_after_a_failure_is_retried(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue_all([
        job("root").max_retries(0).priority(9),
        job("cleanup").after(&["root"]).run_on_dependency_failure().max_retries(0),
    ]);
    fixture.run(&worker, FAILURE);
    assert_eq!(fixture.run(&worker, FAILURE), "cleanup");
    let jobs = failed_jobs(fixture);
    assert_eq!(retry_selected(fixture, &jobs[1..]), [Change::Done(StateName::Pending)]);
    assert_eq!(fixture.run(&worker, Outcome::Success), "cleanup");
}

fn a_selection_is_retried_dependencies_first_whatever_their_numbers_are(fixture: &Fixture) {
    const LENGTH: usize = 60;
    let worker = fixture.worker("w");
    // Every second job depends on an earlier one, the others on later ones; `j0` is the first to run.
    let link = |n: usize| {
        let spec = job(&format!("j{n}")).max_retries(0);
        if n == 0 { spec } else { spec.after(&[&format!("j{}", n - 1)]) }
    };
    let (even, odd) = ((0..LENGTH).step_by(2).rev(), (1..LENGTH).step_by(2));
    fixture.enqueue_all(even.chain(odd).map(link));
    assert_eq!(fixture.run(&worker, FAILURE), "j0");
    assert_eq!(fixture.claim(&worker, 9), [""; 0]);
    let mut jobs = failed_jobs(fixture);
    jobs.reverse();
    assert_eq!(jobs.len(), LENGTH);
    let tally = change_selected(fixture.store.as_ref(), JobVerb::Retry, jobs, ACTOR, |_| {});
    let tally = tally.expect("a retry");
    assert_eq!((tally.done, tally.skipped), (LENGTH as u64, 0));
    assert_eq!(fixture.claim(&worker, 9), ["j0"], "all others wait");
}
