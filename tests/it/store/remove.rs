//! Forgetting a job.

use domain::job::life::StateName;
use domain::job::outcome::Outcome;
use store::{Change, Conflict, JobFilter, Phase};

use super::fixture::{FAILURE, Fixture, SOMEBODY, every_store};
use super::new_job::{job, job_id};

every_store!(
    whatever_does_not_run_can_be_removed,
    a_running_job_is_a_conflict,
    a_job_that_others_wait_for_is_a_conflict,
    several_ids_are_tried_each,
    a_removed_job_is_nowhere,
);

fn whatever_does_not_run_can_be_removed(fixture: &Fixture) {
    let worker = fixture.worker("w");
    for (id, outcome, state) in [
        ("completed", Outcome::Success, StateName::Completed),
        ("cancelled", Outcome::Cancelled, StateName::Cancelled),
        ("failed", FAILURE, StateName::Failed),
    ] {
        fixture.enqueue(id);
        fixture.run(&worker, outcome);
        assert_eq!(fixture.remove(id), Change::Done(state), "{id}");
    }
    fixture.enqueue(job("dead").max_retries(0));
    fixture.run(&worker, FAILURE);
    fixture.enqueue_all([job("ready"), job("scheduled").delay_secs(5), job("blocked").after(&["ready"])]);
    for id in ["dead", "blocked", "scheduled", "ready"] {
        let state = fixture.state(id);
        assert_eq!(fixture.remove(id), Change::Done(state), "{id}");
    }
    fixture.pass_secs(300);
    assert_eq!(fixture.claim(&worker, 9), [""; 0], "none of them ever runs");
    assert_eq!(fixture.list_by(&JobFilter::default(), 9), [""; 0]);
    assert_eq!(fixture.exchange(&worker, &[], 0).next_due, None);
}

fn a_running_job_is_a_conflict(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue("a");
    let lease = fixture.lease(&worker);
    let before = fixture.record("a");
    let conflict = Change::Conflict(Conflict::State(StateName::Processing));
    assert_eq!(fixture.remove("a"), conflict);
    assert_eq!(fixture.record("a"), before);
    assert!(fixture.settle(&worker, &lease, Outcome::Success));
}

fn a_job_that_others_wait_for_is_a_conflict(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue_all([job("parent"), job("b").after(&["parent"]), job("c").after(&["parent"])]);
    let waited_for = |count| Change::Conflict(Conflict::WaitedFor { count });
    assert_eq!(fixture.remove("parent"), waited_for(2));
    assert_eq!(fixture.remove("b"), Change::Done(StateName::Pending));
    assert_eq!(fixture.remove("parent"), waited_for(1));
    fixture.run(&worker, Outcome::Success);
    assert_eq!(fixture.remove("parent"), Change::Done(StateName::Completed));
    assert_eq!(fixture.run(&worker, Outcome::Success), "c");
    assert_eq!(fixture.job("c").depends_on, [job_id("parent")], "what it depended on is still told");
}

fn several_ids_are_tried_each(fixture: &Fixture) {
    fixture.enqueue_all([job("parent"), job("child").after(&["parent"])]);
    let ids = ["nobody", "child", "parent", "child"].map(job_id);
    assert_eq!(
        fixture.store.remove(&ids, SOMEBODY).expect("remove"),
        [
            Change::NotFound,
            Change::Done(StateName::Pending),
            Change::Done(StateName::Pending),
            Change::NotFound,
        ]
    );
}

fn a_removed_job_is_nowhere(fixture: &Fixture) {
    fixture.enqueue(job("a").tags(&["t"]).queue("q"));
    fixture.remove("a");
    let id = job_id("a");
    assert_eq!(fixture.store.find(&id).expect("find"), None);
    assert_eq!(fixture.store.record(&id).expect("record"), None);
    assert_eq!(fixture.store.existing_ids(&[id]).expect("taken"), []);
    assert_eq!(fixture.cancel("a"), Change::NotFound);
    assert_eq!(fixture.retry("a"), Change::NotFound);
    for phases in Phase::ALL.map(|phase| vec![phase]).into_iter().chain([Vec::new()]) {
        let filter = JobFilter { phases, ..JobFilter::default() };
        assert_eq!(fixture.list_by(&filter, 9), [""; 0], "{filter:?}");
    }
    let queues = fixture.store.queues().expect("queues");
    assert_eq!(queues.len(), 1, "its queue stays");
    assert!(queues[0].counts.is_empty(), "and is empty: {queues:?}");
}
