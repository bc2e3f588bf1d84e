//! Removing jobs.

use domain::job::life::StateName;
use domain::job::outcome::Outcome;
use store::{Change, Conflict, JobFilter, JobVerb, Phase};

use crate::store::fixture::new_job::{job, job_id};
use crate::store::fixture::{FAILURE, Fixture, every_store};

every_store!(
    a_job_that_is_not_running_can_be_removed,
    removing_a_running_job_is_a_conflict,
    removing_a_job_with_unfinished_dependents_is_a_conflict,
    each_of_several_ids_has_its_own_result,
    a_removed_job_is_not_found_anywhere,
);

fn a_job_that_is_not_running_can_be_removed(fixture: &Fixture) {
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
    assert_eq!(fixture.claim(&worker, 9), [""; 0], "no removed job is claimed");
    assert_eq!(fixture.list_by(&JobFilter::default(), 9), [""; 0]);
    assert_eq!(fixture.exchange(&worker, &[], 0).next_due, None);
}

fn removing_a_running_job_is_a_conflict(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue("a");
    let lease = fixture.lease(&worker);
    let before = fixture.record("a");
    let conflict = Change::Conflict(Conflict::State(StateName::Processing));
    assert_eq!(fixture.remove("a"), conflict);
    assert_eq!(fixture.record("a"), before);
    assert!(fixture.settle(&worker, &lease, Outcome::Success));
}

fn removing_a_job_with_unfinished_dependents_is_a_conflict(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue_all([job("parent"), job("b").after(&["parent"]), job("c").after(&["parent"])]);
    let waited_for = |count| Change::Conflict(Conflict::WaitedFor { count });
    assert_eq!(fixture.remove("parent"), waited_for(2));
    assert_eq!(fixture.remove("b"), Change::Done(StateName::Pending));
    assert_eq!(fixture.remove("parent"), waited_for(1));
    fixture.run(&worker, Outcome::Success);
    assert_eq!(fixture.remove("parent"), Change::Done(StateName::Completed));
    assert_eq!(fixture.run(&worker, Outcome::Success), "c");
    assert_eq!(fixture.job("c").depends_on, [job_id("parent")], "its dependency is still listed");
}

fn each_of_several_ids_has_its_own_result(fixture: &Fixture) {
    fixture.enqueue_all([job("parent"), job("child").after(&["parent"])]);
    let ids = ["unknown", "child", "parent", "child"].map(job_id);
    assert_eq!(
        fixture.change_all(JobVerb::Remove, &ids),
        [
            Change::NotFound,
            Change::Done(StateName::Pending),
            Change::Done(StateName::Pending),
            Change::NotFound,
        ]
    );
}

fn a_removed_job_is_not_found_anywhere(fixture: &Fixture) {
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
    assert_eq!(queues.len(), 1, "its queue is kept");
    assert!(queues[0].counts.is_empty(), "the queue is empty: {queues:?}");
}
