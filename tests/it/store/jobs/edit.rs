//! Editing a job that is not running.

use std::time::Duration;

use domain::job::edit::Edit;
use domain::job::life::StateName;
use domain::job::outcome::Outcome;
use domain::job::retry_rules::ExitCodes;
use domain::job::spec::{JobSpec, Timeout};
use store::{AfterEdit, Change, Conflict, JobFilter, JobRef};

use crate::store::fixture::new_job::{job, job_id, queue_name};
use crate::store::fixture::{ACTOR, FAILURE, Fixture, every_store};

every_store!(
    an_edit_changes_only_the_given_fields,
    priority_and_queue_change_the_claim_order,
    a_new_start_time_moves_a_job_between_ready_and_scheduled,
    a_blocked_job_stays_blocked,
    editing_a_running_or_completed_job_is_a_conflict,
    a_dead_job_is_edited_and_retried_in_one_step,
    a_job_that_cannot_be_retried_is_not_edited_either,
    a_job_that_cannot_be_edited_is_not_retried_either,
    an_edited_job_is_found_only_by_its_new_tags,
    a_job_moves_into_and_out_of_a_full_queue,
    a_selection_is_edited_in_portions,
    a_selected_job_that_changed_is_left_alone,
    a_selected_job_whose_fields_contradict_the_edit_is_left_alone,
);

fn edit(fixture: &Fixture, id: &str, edit: &Edit) -> Change {
    fixture.store.edit(&job_id(id), edit, AfterEdit::Keep, ACTOR).expect("edit")
}

fn set(set: JobSpec) -> Edit {
    Edit { set, ..Edit::default() }
}

/// Moves the start to this long from now.
fn start(delay: Duration) -> Edit {
    set(JobSpec { delay: Some(delay), ..JobSpec::default() })
}

fn priority(priority: i32) -> Edit {
    set(JobSpec { priority: Some(priority), ..JobSpec::default() })
}

fn an_edit_changes_only_the_given_fields(fixture: &Fixture) {
    fixture.enqueue(job("a").tags(&["t"]).priority(3).unique_key("k"));
    let before = fixture.job("a");
    fixture.pass_secs(5);
    let change = set(JobSpec {
        command: Some("other".to_owned()),
        timeout: Some(Timeout::After(Duration::from_secs(9))),
        env: [("A".to_owned(), "secret".to_owned())].into(),
        ..JobSpec::default()
    });
    assert_eq!(edit(fixture, "a", &change), Change::Done(StateName::Pending));
    let after = fixture.job("a");
    assert_eq!(
        (&*after.command, after.timeout, &*after.options.env["A"]),
        ("other", Some(Duration::from_secs(9)), "secret")
    );
    let mut expected = before;
    expected.command.clone_from(&after.command);
    (expected.timeout, expected.updated_at) = (after.timeout, fixture.now());
    expected.options.env.clone_from(&after.options.env);
    assert_eq!(after, expected);
    let record = fixture.record("a");
    assert_eq!((&*record.events[0].event, &*record.events[0].by), ("edit", ACTOR));
    assert_eq!(edit(fixture, "unknown", &change), Change::NotFound);
}

fn priority_and_queue_change_the_claim_order(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue_all([job("a"), job("b"), job("c")]);
    edit(fixture, "c", &priority(5));
    edit(
        fixture,
        "b",
        &set(JobSpec { queue: Some(queue_name("other")), priority: Some(-1), ..JobSpec::default() }),
    );
    fixture.recount();
    assert_eq!(fixture.claim(&worker, 9), ["c", "a", "b"]);
    assert_eq!(fixture.job("b").queue, queue_name("other"));
}

fn a_new_start_time_moves_a_job_between_ready_and_scheduled(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue_all([job("now"), job("later").delay_secs(100)]);
    edit(fixture, "now", &start(Duration::from_secs(50)));
    edit(fixture, "later", &start(Duration::ZERO));
    assert_eq!(fixture.claim(&worker, 9), ["later"]);
    fixture.pass_secs(50);
    assert_eq!(fixture.run(&worker, FAILURE), "now");
    // The edit ends the wait for the backoff.
    edit(fixture, "now", &start(Duration::ZERO));
    assert_eq!(fixture.run(&worker, Outcome::Success), "now");
    assert_eq!(fixture.exchange(&worker, &[], 0).next_due, None, "no entry remains in the old position");
}

fn a_blocked_job_stays_blocked(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue_all([job("parent"), job("child").after(&["parent"])]);
    edit(fixture, "child", &priority(9));
    edit(fixture, "child", &start(Duration::ZERO));
    assert_eq!(fixture.run(&worker, Outcome::Success), "parent");
    assert_eq!(fixture.run(&worker, Outcome::Success), "child");
}

fn editing_a_running_or_completed_job_is_a_conflict(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue("a");
    let lease = fixture.lease(&worker);
    let change = priority(9);
    let conflict = |state| Change::Conflict(Conflict::State(state));
    assert_eq!(edit(fixture, "a", &change), conflict(StateName::Processing));
    assert!(fixture.settle(&worker, &lease, Outcome::Success));
    let before = fixture.record("a");
    assert_eq!(edit(fixture, "a", &change), conflict(StateName::Completed));
    assert_eq!(fixture.record("a"), before);
}

fn a_dead_job_is_edited_and_retried_in_one_step(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue(job("a").max_retries(0));
    fixture.run(&worker, FAILURE);
    let change =
        set(JobSpec { max_retries: Some(1), queue: Some(queue_name("other")), ..JobSpec::default() });
    assert_eq!(edit(fixture, "a", &change), Change::Done(StateName::Dead), "the job stays dead");
    assert_eq!(fixture.claim(&worker, 1), [""; 0]);
    let change = priority(2);
    let retried = fixture.store.edit(&job_id("a"), &change, AfterEdit::Retry, ACTOR).expect("edit");
    assert_eq!(retried, Change::Done(StateName::Pending));
    fixture.recount();
    fixture.run(&worker, FAILURE);
    assert_eq!(fixture.state("a"), StateName::Failed, "the job now has a retry");
    let events: Vec<String> = fixture.record("a").events.into_iter().map(|event| event.event).collect();
    assert_eq!(events, ["edit", "retry", "edit"]);
}

fn a_job_that_cannot_be_retried_is_not_edited_either(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue(job("a").unique_key("k"));
    fixture.cancel("a");
    fixture.enqueue(job("b").unique_key("k"));
    let before = fixture.record("a");
    let change = priority(2);
    let retried = fixture.store.edit(&job_id("a"), &change, AfterEdit::Retry, ACTOR).expect("edit");
    assert_eq!(retried, Change::Conflict(Conflict::KeyTaken { holder: job_id("b") }));
    assert_eq!(fixture.record("a"), before);
    assert_eq!(fixture.claim(&worker, 9), ["b"]);
}

fn a_job_that_cannot_be_edited_is_not_retried_either(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue(job("a").max_retries(0));
    fixture.run(&worker, FAILURE);
    let change = start(Duration::MAX);
    let retried = fixture.store.edit(&job_id("a"), &change, AfterEdit::Retry, ACTOR).expect("edit");
    assert_eq!(retried, Change::Conflict(Conflict::TooLate));
    assert_eq!(fixture.job("a").life.state.name(), StateName::Dead);
    let missing = fixture.store.edit(&job_id("unknown"), &change, AfterEdit::Retry, ACTOR).expect("edit");
    assert_eq!(missing, Change::NotFound);
}

fn an_edited_job_is_found_only_by_its_new_tags(fixture: &Fixture) {
    fixture.enqueue(job("a").tags(&["x", "y"]));
    edit(fixture, "a", &set(JobSpec { tags: vec!["y".to_owned(), "z".to_owned()], ..JobSpec::default() }));
    for (tag, found) in [("x", 0), ("y", 1), ("z", 1)] {
        let filter = JobFilter { tag: Some(tag.to_owned()), ..JobFilter::default() };
        assert_eq!(fixture.list_by(&filter, 9).len(), found, "{tag}");
    }
    fixture.remove("a");
}

fn a_job_moves_into_and_out_of_a_full_queue(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.limit("narrow", Some(1), None);
    fixture.enqueue_all(["a", "b"].map(|id| job(id).queue("narrow").batch("all")));
    fixture.enqueue(job("c").batch("all").delay_secs(100));
    assert_eq!(fixture.claim(&worker, 9), ["a"], "the queue is full");
    let to = |queue| set(JobSpec { queue: Some(queue_name(queue)), ..JobSpec::default() });
    edit(fixture, "c", &Edit { reset: vec!["run_at"], ..to("narrow") });
    assert_eq!(fixture.claim(&worker, 9), [""; 0], "the queue is also full for a moved job");
    edit(fixture, "b", &to("wide"));
    fixture.recount();
    assert_eq!(fixture.claim(&worker, 9), ["b"]);
    edit(fixture, "c", &to("wide"));
    assert_eq!(fixture.claim(&worker, 9), ["c"]);
    fixture.recount();
}

fn selected(fixture: &Fixture) -> Vec<JobRef> {
    fixture.store.select(&JobFilter::default(), None, usize::MAX).expect("select")
}

fn edit_selected(fixture: &Fixture, jobs: &[JobRef], edit: &Edit) -> Vec<Change> {
    fixture.store.edit_selected(jobs, edit, ACTOR).expect("edit_selected")
}

fn a_selection_is_edited_in_portions(fixture: &Fixture) {
    const JOBS: usize = 1_200;
    fixture.enqueue_all((0..JOBS).map(|at| job(&format!("j{at}"))));
    let change = set(JobSpec { queue: Some(queue_name("other")), ..priority(4).set });
    let mut jobs = selected(fixture);
    let mut steps = 0;
    while !jobs.is_empty() {
        let changes = edit_selected(fixture, &jobs, &change);
        assert!(
            !changes.is_empty() && changes.iter().all(|change| *change == Change::Done(StateName::Pending))
        );
        jobs.drain(..changes.len());
        steps += 1;
    }
    assert!(steps > 1, "one transaction does not hold up other writers for all of them");
    fixture.recount();
    let edited = selected(fixture).iter().all(|seen| {
        let job = fixture.job(seen.id.as_str());
        (job.priority, job.queue.as_str()) == (4, "other")
    });
    assert!(edited);
    assert_eq!(fixture.record("j0").events[0].event, "edit");
}

fn a_selected_job_that_changed_is_left_alone(fixture: &Fixture) {
    fixture.enqueue_all([job("runs"), job("gone"), job("again"), job("stays").queue("slow")]);
    let jobs = selected(fixture);
    let worker = fixture.worker("w");
    assert_eq!(fixture.claim(&worker, 1), ["runs"]);
    fixture.remove("gone");
    fixture.remove("again");
    fixture.enqueue(job("again"));
    let mut changes: Vec<(&str, Change)> =
        jobs.iter().map(|job| job.id.as_str()).zip(edit_selected(fixture, &jobs, &priority(7))).collect();
    changes.sort_by_key(|(id, _)| *id);
    let expected = [
        ("again", Change::NotFound),
        ("gone", Change::NotFound),
        ("runs", Change::Conflict(Conflict::State(StateName::Processing))),
        ("stays", Change::Done(StateName::Pending)),
    ];
    assert_eq!(changes, expected);
    let priorities = ["runs", "again", "stays"].map(|id| fixture.job(id).priority);
    assert_eq!(priorities, [0, 0, 7]);
}

fn a_selected_job_whose_fields_contradict_the_edit_is_left_alone(fixture: &Fixture) {
    let codes = |text: &str| text.parse::<ExitCodes>().ok();
    fixture.enqueue_all([job("plain"), job("rules")]);
    let rules = set(JobSpec { no_retry_on: codes("75"), ..JobSpec::default() });
    assert_eq!(edit(fixture, "rules", &rules), Change::Done(StateName::Pending));
    let change = set(JobSpec { retry_on: codes("75"), ..priority(3).set });
    let changes = edit_selected(fixture, &selected(fixture), &change);
    assert_eq!(changes, [Change::Conflict(Conflict::Contradiction), Change::Done(StateName::Pending)]);
    assert_eq!(["rules", "plain"].map(|id| fixture.job(id).priority), [0, 3]);
}
