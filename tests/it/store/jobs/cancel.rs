//! Cancelling jobs.

use domain::job::life::{CancelReason, State, StateName};
use domain::job::outcome::Outcome;
use domain::values::signal::Signal;
use store::{CancelOrder, Change, Conflict, JobFilter, JobVerb, LeaseStatus, Phase};

use crate::store::fixture::new_job::{job, job_id};
use crate::store::fixture::{FAILURE, Fixture, change_all, every_store};

every_store!(
    a_waiting_job_is_cancelled_immediately,
    a_running_job_is_marked_and_its_worker_notified,
    cancelling_a_finished_job_is_a_conflict,
    each_of_several_ids_has_its_own_result,
    the_user_who_cancelled_is_recorded,
    the_signal_of_a_cancel_reaches_the_worker_of_that_attempt_alone,
);

fn a_waiting_job_is_cancelled_immediately(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue("failed");
    fixture.run(&worker, FAILURE);
    fixture.enqueue("failed-due");
    fixture.run(&worker, FAILURE);
    fixture.enqueue_all([
        job("ready"),
        job("scheduled").delay_secs(60),
        job("blocked").after(&["scheduled"]),
    ]);
    fixture.pass_secs(2);
    for id in ["blocked", "ready", "scheduled", "failed", "failed-due"] {
        assert_eq!(fixture.cancel(id), Change::Done(StateName::Cancelled), "{id}");
        let cancelled = State::Cancelled { finished_at: fixture.now(), reason: CancelReason::User };
        assert_eq!(fixture.job(id).life.state, cancelled, "{id}");
    }
    fixture.pass_secs(3_600);
    assert_eq!(fixture.claim(&worker, 9), [""; 0], "no cancelled job is claimed");
    for phase in [Phase::Ready, Phase::Scheduled, Phase::Blocked] {
        let filter = JobFilter::in_phase(phase);
        assert_eq!(fixture.list_by(&filter, 9), [""; 0], "{}", phase.name());
    }
    let exchanged = fixture.exchange(&worker, &[], 0);
    assert_eq!(exchanged.next_due, None, "no job is scheduled");
}

fn a_running_job_is_marked_and_its_worker_notified(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue("a");
    let lease = fixture.lease(&worker);
    assert_eq!(fixture.cancel("a"), Change::Done(StateName::Processing));
    assert_eq!(fixture.state("a"), StateName::Processing, "the job runs until its worker ends it");
    assert_eq!(fixture.cancel("a"), Change::Done(StateName::Processing), "a second cancel has no effect");
    for _ in 0..2 {
        assert_eq!(
            fixture.extend(&worker, &lease),
            LeaseStatus::CancelRequested(Signal::TERM),
            "reported at every heartbeat"
        );
    }
    assert!(fixture.settle(&worker, &lease, Outcome::Cancelled));
    assert_eq!(fixture.state("a"), StateName::Cancelled);

    // The cancel request ends with the attempt.
    fixture.retry("a");
    let lease = fixture.lease(&worker);
    assert_eq!(fixture.extend(&worker, &lease), LeaseStatus::Held);
}

fn cancelling_a_finished_job_is_a_conflict(fixture: &Fixture) {
    let worker = fixture.worker("w");
    for (id, outcome, state) in [
        ("completed", Outcome::Success, StateName::Completed),
        ("dead", FAILURE, StateName::Dead),
        ("cancelled", Outcome::Cancelled, StateName::Cancelled),
    ] {
        fixture.enqueue(job(id).max_retries(0));
        fixture.run(&worker, outcome);
        fixture.pass_secs(1);
        let before = fixture.record(id);
        assert_eq!(fixture.cancel(id), Change::Conflict(Conflict::State(state)));
        assert_eq!(fixture.record(id), before, "{id} is unchanged");
    }
}

fn each_of_several_ids_has_its_own_result(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue_all(["done", "running", "a"].map(job));
    fixture.run(&worker, Outcome::Success);
    fixture.lease(&worker);
    let ids = ["unknown", "done", "a", "running", "a"].map(job_id);
    assert_eq!(
        fixture.change_all(JobVerb::CANCEL, &ids),
        [
            Change::NotFound,
            Change::Conflict(Conflict::State(StateName::Completed)),
            Change::Done(StateName::Cancelled),
            Change::Done(StateName::Processing),
            Change::Conflict(Conflict::State(StateName::Cancelled)),
        ]
    );
}

fn the_user_who_cancelled_is_recorded(fixture: &Fixture) {
    fixture.enqueue("a");
    change_all(fixture.store.as_ref(), JobVerb::CANCEL, &[job_id("a")], "alice").expect("cancel");
    fixture.pass_secs(1);
    change_all(fixture.store.as_ref(), JobVerb::CANCEL, &[job_id("a")], "bob").expect("cancel");
    change_all(fixture.store.as_ref(), JobVerb::Retry, &[job_id("a")], "carol").expect("retry");
    let events = fixture.record("a").events;
    let recorded: Vec<_> = events.iter().map(|event| (event.event.as_str(), event.by.as_str())).collect();
    assert_eq!(
        recorded,
        [("cancel", "alice"), ("retry", "carol")],
        "a cancel without effect is not recorded"
    );
    assert_eq!(events[1].at, fixture.now());
}

fn the_signal_of_a_cancel_reaches_the_worker_of_that_attempt_alone(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue_all([job("a").unique_key("key"), job("waits")]);
    let lease = fixture.lease(&worker);
    let cancel = |signal: &str| JobVerb::Cancel { signal: Some(signal.parse().expect("a signal")) };
    let ordered = |signal: &str| {
        let signal = signal.parse().expect("a signal");
        assert_eq!(fixture.orders(&worker).cancelled, [CancelOrder { lease: lease.clone(), signal }]);
        assert_eq!(fixture.extend(&worker, &lease), LeaseStatus::CancelRequested(signal));
    };
    fixture.change_all(cancel("USR1"), &[job_id("a")]);
    ordered("USR1");
    fixture.cancel("a");
    ordered("USR1");
    fixture.change_all(cancel("KILL"), &[job_id("a")]);
    ordered("KILL");
    let waiting = fixture.change_all(cancel("INT"), &[job_id("waits")]);
    assert_eq!(waiting, [Change::Done(StateName::Cancelled)], "a job that does not run is just cancelled");
    assert!(fixture.settle(&worker, &lease, Outcome::Cancelled));
    assert_eq!(fixture.job("a").unique_key.as_deref(), Some("key"));

    fixture.retry("a");
    let lease = fixture.lease(&worker);
    fixture.cancel("a");
    assert_eq!(
        fixture.orders(&worker).cancelled,
        [CancelOrder { lease, signal: Signal::TERM }],
        "the signal was meant for an earlier attempt"
    );
}
