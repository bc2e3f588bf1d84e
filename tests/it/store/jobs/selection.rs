//! Selecting jobs by a filter, and changing the selected jobs.

use std::time::Duration;

use domain::job::life::StateName;
use domain::job::outcome::Outcome;
use store::{Change, Conflict, JobFilter, JobRef, JobVerb, Phase, Targets};

use crate::store::fixture::new_job::{job, job_id, queue_name};
use crate::store::fixture::{ACTOR, FAILURE, Fixture, every_store};

every_store!(
    several_phases_form_one_list_from_new_to_old,
    a_selection_is_ordered_from_new_to_old_in_every_phase,
    command_patterns_match_the_exact_text,
    changed_before_selects_jobs_that_have_not_changed_since,
    ids_are_found_by_prefix,
    a_job_that_changed_its_state_after_the_selection_is_not_changed,
    a_job_removed_after_the_selection_is_not_found,
);

fn selected(fixture: &Fixture, filter: &JobFilter, limit: usize) -> Vec<JobRef> {
    let mut selected: Vec<JobRef> = Vec::new();
    loop {
        let below = selected.last().map(|job| job.number);
        let more = fixture.store.select(filter, below, limit).expect("select");
        assert!(more.len() <= limit, "the page has at most `limit` jobs");
        if more.is_empty() {
            return selected;
        }
        selected.extend(more);
    }
}

fn ids(selected: &[JobRef]) -> Vec<&str> {
    selected.iter().map(|job| job.id.as_str()).collect()
}

/// Jobs of many kinds, enqueued in mixed order.
fn some_of_each(fixture: &Fixture) {
    let worker = fixture.worker("w");
    for (id, outcome) in [("completed", Outcome::Success), ("failed", FAILURE)] {
        fixture.enqueue(id);
        fixture.run(&worker, outcome);
    }
    fixture.enqueue_all([
        job("blocked").after(&["ready"]),
        job("scheduled").delay_secs(60),
        job("ready").priority(-1).tags(&["t"]),
        job("held").queue("held").tags(&["t"]),
        job("soon").delay_secs(30),
        job("high").priority(9).queue("q"),
    ]);
    fixture.pause("held");
}

fn several_phases_form_one_list_from_new_to_old(fixture: &Fixture) {
    some_of_each(fixture);
    let state = Phase::State;
    for (phases, expected) in [
        (vec![state(StateName::Failed), state(StateName::Completed)], vec!["failed", "completed"]),
        (vec![Phase::Ready, state(StateName::Failed)], vec!["high", "ready", "failed"]),
        (vec![Phase::Blocked, Phase::Scheduled], vec!["soon", "scheduled", "blocked"]),
        (
            vec![Phase::Ready, state(StateName::Pending)],
            vec!["high", "soon", "held", "ready", "scheduled", "blocked"],
        ),
    ] {
        let filter = JobFilter { phases, ..JobFilter::default() };
        for limit in [1, 2, 100] {
            assert_eq!(fixture.list_by(&filter, limit), expected, "{filter:?} in pages of {limit}");
            assert_eq!(ids(&selected(fixture, &filter, limit)), expected, "{filter:?}");
        }
    }
}

fn a_selection_is_ordered_from_new_to_old_in_every_phase(fixture: &Fixture) {
    some_of_each(fixture);
    fixture.pass_secs(2);
    for (phase, expected) in [
        (Phase::Ready, vec!["high", "ready", "failed"]),
        (Phase::Scheduled, vec!["soon", "scheduled"]),
        (Phase::Blocked, vec!["blocked"]),
    ] {
        for limit in [1, 100] {
            assert_eq!(ids(&selected(fixture, &JobFilter::in_phase(phase), limit)), expected);
        }
        let tagged = JobFilter { tag: Some("t".to_owned()), ..JobFilter::in_phase(phase) };
        let both = JobFilter { queue: Some(queue_name("default")), ..tagged.clone() };
        let expected = if phase == Phase::Ready { vec!["ready"] } else { vec![] };
        assert_eq!(ids(&selected(fixture, &tagged, 9)), expected, "{tagged:?}");
        assert_eq!(ids(&selected(fixture, &both, 9)), expected, "{both:?}");
        assert_eq!(fixture.list_by(&both, 9), expected, "{both:?}");
    }
}

fn command_patterns_match_the_exact_text(fixture: &Fixture) {
    for (id, command) in
        [("a", "make [all]"), ("b", "echo 2*3"), ("c", "echo 2x3"), ("d", "make\nclean"), ("e", "ECHO ä")]
    {
        fixture.enqueue(job(id).command(command));
    }
    for (pattern, expected) in [
        ("make", vec!["d", "a"]),
        ("make*", vec!["d", "a"]),
        ("*clean", vec!["d"]),
        ("clean*", vec![]),
        ("[all]", vec!["a"]),
        ("2?3", vec![]),
        ("echo 2?3", vec!["c", "b"]),
        (r"2\*3", vec!["b"]),
        ("????\u{20}?", vec!["e"]),
    ] {
        let filter = JobFilter { command: Some(pattern.parse().expect("a pattern")), ..JobFilter::default() };
        assert_eq!(fixture.list_by(&filter, 1), expected, "{pattern}");
        let ready = JobFilter { phases: vec![Phase::Ready], ..filter };
        let mut in_claim_order = fixture.list_by(&ready, 1);
        in_claim_order.reverse();
        assert_eq!(in_claim_order, expected, "{pattern} among ready jobs");
    }
}

fn changed_before_selects_jobs_that_have_not_changed_since(fixture: &Fixture) {
    fixture.enqueue_all([job("old"), job("touched"), job("later").delay_secs(99)]);
    fixture.pass_secs(10);
    fixture.enqueue("new");
    fixture.cancel("touched");
    let before = |secs: u64| JobFilter {
        changed_before: Some(fixture.now().saturating_sub(Duration::from_secs(secs))),
        ..JobFilter::default()
    };
    assert_eq!(fixture.list_by(&before(0), 9), ["later", "old"], "a job that just changed is not selected");
    assert_eq!(fixture.list_by(&before(9), 9), ["later", "old"]);
    assert_eq!(fixture.list_by(&before(10), 9), [""; 0]);
    let scheduled = JobFilter { phases: vec![Phase::Scheduled], ..before(9) };
    assert_eq!(fixture.list_by(&scheduled, 9), ["later"]);
}

fn ids_are_found_by_prefix(fixture: &Fixture) {
    fixture.enqueue_all([job("a-1"), job("a"), job("a-10"), job("A-1"), job("ab"), job("b.z:9")]);
    for (prefix, expected) in [
        ("a", vec!["a", "a-1", "a-10", "ab"]),
        ("a-1", vec!["a-1", "a-10"]),
        ("b.", vec!["b.z:9"]),
        ("a-10", vec!["a-10"]),
        ("x", vec![]),
    ] {
        let found = fixture.store.ids_with_prefix(&job_id(prefix), 9).expect("ids");
        assert_eq!(found, expected.into_iter().map(job_id).collect::<Vec<_>>(), "{prefix}");
    }
    assert_eq!(fixture.store.ids_with_prefix(&job_id("a"), 2).expect("ids").len(), 2);
}

fn a_job_that_changed_its_state_after_the_selection_is_not_changed(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue_all([job("a"), job("b")]);
    let selection = selected(fixture, &JobFilter::in_phase(Phase::Ready), 9);
    let lease = fixture.lease(&worker);
    let changes =
        fixture.store.change(JobVerb::CANCEL, Targets::Selected(&selection), ACTOR).expect("change").changes;
    let moved = Change::Conflict(Conflict::State(StateName::Processing));
    assert_eq!(changes, [Change::Done(StateName::Cancelled), moved], "`b` first, then `a`");
    assert!(fixture.settle(&worker, &lease, Outcome::Success), "the running job was not cancelled");
    let selection = selected(fixture, &JobFilter::in_phase(Phase::State(StateName::Cancelled)), 9);
    let changes =
        fixture.store.change(JobVerb::Retry, Targets::Selected(&selection), ACTOR).expect("change").changes;
    assert_eq!(changes, [Change::Done(StateName::Pending)]);
    assert_eq!(fixture.record("b").events.len(), 2, "both changes are recorded");
}

fn a_job_removed_after_the_selection_is_not_found(fixture: &Fixture) {
    fixture.enqueue_all([job("a"), job("b")]);
    let selection = selected(fixture, &JobFilter::default(), 9);
    fixture.remove("a");
    let changes =
        fixture.store.change(JobVerb::Remove, Targets::Selected(&selection), ACTOR).expect("change").changes;
    assert_eq!(changes, [Change::Done(StateName::Pending), Change::NotFound]);
}
