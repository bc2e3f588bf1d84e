//! Pausing and resuming running jobs.

use domain::job::life::StateName;
use domain::job::outcome::Outcome;
use store::{Change, Conflict, JobFilter, LeaseRef, LeaseStatus, Phase, WorkerState};

use crate::store::fixture::new_job::job;
use crate::store::fixture::{FAILURE, Fixture, every_store};

every_store!(
    a_running_job_is_paused_until_it_is_resumed,
    a_pause_ends_with_its_attempt,
    only_running_jobs_can_be_paused,
    a_job_that_is_being_cancelled_is_not_paused,
    a_worker_that_stops_resumes_its_jobs,
    paused_jobs_can_be_selected,
);

impl Fixture {
    fn events_of(&self, id: &str) -> Vec<String> {
        self.record(id).events.into_iter().map(|event| event.event).collect()
    }
}

fn a_running_job_is_paused_until_it_is_resumed(fixture: &Fixture) {
    let (worker, other) = (fixture.worker("w"), fixture.worker("other"));
    fixture.enqueue_all([job("a").unique_key("key"), job("b")]);
    let lease = fixture.lease(&worker);
    fixture.lease(&other);
    let before = fixture.job("a");
    let since = fixture.now();
    for _ in 0..2 {
        assert_eq!(fixture.pause_job("a"), Change::Done(StateName::Processing));
        assert_eq!(fixture.job("a").life.state.paused_at(), Some(since));
        assert_eq!(fixture.orders(&worker).paused, std::slice::from_ref(&lease));
        assert_eq!(fixture.orders(&other).paused, [], "it is another worker's job");
        fixture.pass_secs(1);
        assert_eq!(fixture.extend(&worker, &lease), LeaseStatus::Held, "heartbeats continue");
    }
    for _ in 0..2 {
        assert_eq!(fixture.resume_job("a"), Change::Done(StateName::Processing));
        assert_eq!(fixture.orders(&worker).paused, []);
    }
    let after = fixture.job("a");
    assert_eq!(after.life.state.paused_at(), None);
    assert_eq!((after.unique_key, after.options.name), (before.unique_key, before.options.name));
    assert_eq!(fixture.events_of("a"), ["pause", "resume"], "a change without effect is not recorded");
    assert!(fixture.settle(&worker, &lease, Outcome::Success));
}

fn a_pause_ends_with_its_attempt(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue("a");
    let lease = fixture.lease(&worker);
    fixture.pause_job("a");
    fixture.store.reap(&worker, None, &[]).expect("reap");
    assert_eq!(fixture.job("a").life.state.paused_at(), None);
    let next = fixture.worker("next");
    let lease = LeaseRef { attempt: lease.attempt + 1, ..lease };
    assert_eq!(fixture.lease(&next), lease);
    assert_eq!(fixture.job("a").life.state.paused_at(), None);
    assert_eq!(fixture.orders(&next).paused, []);
    fixture.pause_job("a");
    assert_eq!(fixture.orders(&next).paused, [lease]);
}

fn only_running_jobs_can_be_paused(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue(job("failed"));
    fixture.run(&worker, FAILURE);
    fixture.enqueue(job("completed"));
    fixture.run(&worker, Outcome::Success);
    fixture.enqueue(job("dead").max_retries(0));
    fixture.run(&worker, FAILURE);
    fixture.enqueue_all([job("pending"), job("cancelled")]);
    fixture.cancel("cancelled");
    for state in StateName::ALL.into_iter().filter(|state| *state != StateName::Processing) {
        let before = fixture.record(state.name());
        let conflict = Change::Conflict(Conflict::NotRunning(state));
        assert_eq!(fixture.pause_job(state.name()), conflict);
        assert_eq!(fixture.resume_job(state.name()), conflict);
        assert_eq!(fixture.record(state.name()), before, "{state:?} is unchanged");
    }
    assert_eq!(fixture.pause_job("unknown"), Change::NotFound);
}

fn a_job_that_is_being_cancelled_is_not_paused(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue("a");
    let lease = fixture.lease(&worker);
    fixture.pause_job("a");
    fixture.cancel("a");
    assert_eq!(fixture.job("a").life.state.paused_at(), None);
    assert_eq!(fixture.orders(&worker).paused, []);
    assert_eq!(fixture.cancelled(&worker), [lease]);
    assert_eq!(fixture.pause_job("a"), Change::Conflict(Conflict::Cancelling));
}

fn a_worker_that_stops_resumes_its_jobs(fixture: &Fixture) {
    let (worker, other) = (fixture.worker("w"), fixture.worker("other"));
    fixture.enqueue_all(["a", "b", "c"].map(job));
    fixture.leases(&worker, 2);
    fixture.lease(&other);
    fixture.pause_job("a");
    fixture.pause_job("c");
    fixture.store.set_worker_state(&worker, WorkerState::Draining).expect("set_worker_state");
    assert_eq!(fixture.pause_job("b"), Change::Conflict(Conflict::WorkerStopping));
    fixture.store.resume_all(&worker).expect("resume_all");
    assert_eq!(fixture.orders(&worker).paused, []);
    assert_eq!(fixture.events_of("a"), ["pause", "resume"]);
    assert_eq!(fixture.events_of("b"), [""; 0]);
    assert_eq!(fixture.orders(&other).paused.len(), 1, "jobs of other workers stay paused");
}

fn paused_jobs_can_be_selected(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue_all([job("a"), job("b").queue("q"), job("c"), job("d"), job("waits")]);
    fixture.leases(&worker, 4);
    for id in ["a", "b", "c", "d"] {
        fixture.pause_job(id);
    }
    fixture.cancel("c");
    fixture.resume_job("d");
    let paused = JobFilter::in_phase(Phase::Paused);
    assert_eq!(fixture.list_by(&paused, 9), ["b", "a"]);
    let queue = JobFilter { queue: Some("q".parse().expect("a name")), ..paused };
    assert_eq!(fixture.list_by(&queue, 9), ["b"]);
}
