//! Jobs that depend on other jobs.

use domain::job::life::{CancelReason, State, StateName};
use domain::job::outcome::Outcome;
use domain::values::name::WorkerId;
use store::{Change, Conflict, EnqueueRefusal, JobFilter, JobVerb, Phase};

use crate::store::fixture::new_job::{JobBuilder, job, job_id};
use crate::store::fixture::{FAILURE, Fixture, every_store};

every_store!(
    a_child_runs_after_its_parent_completed,
    a_child_is_due_when_its_last_parent_ends,
    a_child_also_waits_for_its_own_due_time,
    a_failed_attempt_of_a_parent_is_not_its_end,
    the_failure_of_a_parent_cancels_or_unblocks_its_children,
    a_cancelled_child_cancels_its_own_children,
    jobs_enqueued_together_may_depend_on_later_ones,
    unknown_and_cyclic_dependencies_are_refused,
    a_finished_parent_takes_effect_immediately,
    one_failed_parent_cancels_a_child,
    a_cancelled_child_does_not_prevent_removing_its_other_parents,
    very_many_children_are_unblocked_in_portions,
    very_many_children_are_cancelled_without_a_worker,
    a_very_long_chain_is_cancelled_to_its_end,
    a_new_child_of_a_retried_parent_waits_for_the_new_run,
    a_retried_child_waits_for_its_unfinished_parents,
    parent_and_child_retried_together_keep_their_order,
    further_portions_are_unblocked_without_a_bell,
    a_job_with_unfinished_dependents_is_not_removed,
    fault_09_a_retry_that_would_close_a_cycle_is_refused,
    fault_09_retrying_a_failed_job_closes_no_cycle,
);

fn blocked_by(fixture: &Fixture, id: &str) -> Option<u32> {
    match fixture.job(id).life.state {
        State::Pending { blocked_by } => Some(blocked_by),
        State::Processing(_)
        | State::Completed { .. }
        | State::Failed
        | State::Dead { .. }
        | State::Cancelled { .. } => None,
    }
}

fn in_phase(fixture: &Fixture, phase: Phase) -> Vec<String> {
    let filter = JobFilter::in_phase(phase);
    fixture.list_by(&filter, 1_000)
}

fn cancelled_by_dependency(fixture: &Fixture, id: &str) -> bool {
    let reason = CancelReason::Dependency;
    matches!(fixture.job(id).life.state, State::Cancelled { reason: found, .. } if found == reason)
}

fn a_child_runs_after_its_parent_completed(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue("parent");
    fixture.enqueue(job("child").after(&["parent"]).priority(9));
    assert_eq!(in_phase(fixture, Phase::Blocked), ["child"]);
    let lease = fixture.lease(&worker);
    assert_eq!(lease.job, job_id("parent"));
    assert_eq!(fixture.claim(&worker, 1), [""; 0], "the child waits while the parent runs");
    fixture.settle(&worker, &lease, Outcome::Success);
    assert_eq!(fixture.claim(&worker, 1), ["child"]);
}

fn a_child_is_due_when_its_last_parent_ends(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue_all([job("p1").priority(1), job("p2").priority(1), job("child").after(&["p1", "p2"])]);
    fixture.pass_secs(1);
    fixture.enqueue("plain");
    fixture.pass_secs(1);
    assert_eq!(fixture.run(&worker, Outcome::Success), "p1");
    assert_eq!(blocked_by(fixture, "child"), Some(1));
    fixture.pass_secs(1);
    assert_eq!(fixture.run(&worker, Outcome::Success), "p2");
    assert_eq!(fixture.job("child").life.due_at, fixture.now());
    assert_eq!(fixture.claim(&worker, 9), ["plain", "child"], "ordered by due time");
}

fn a_child_also_waits_for_its_own_due_time(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue_all([job("parent"), job("child").after(&["parent"]).delay_secs(60)]);
    fixture.run(&worker, Outcome::Success);
    assert_eq!(in_phase(fixture, Phase::Scheduled), ["child"]);
    fixture.pass_secs(59);
    assert_eq!(fixture.claim(&worker, 9), [""; 0]);
    fixture.pass_secs(1);
    assert_eq!(fixture.claim(&worker, 9), ["child"]);
}

fn a_failed_attempt_of_a_parent_is_not_its_end(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue_all([job("parent"), job("child").after(&["parent"])]);
    for outcome in [FAILURE, Outcome::Lost, Outcome::Released] {
        fixture.run(&worker, outcome);
        assert_eq!(blocked_by(fixture, "child"), Some(1), "{outcome:?}");
        fixture.pass_secs(2);
    }
    fixture.run(&worker, Outcome::Success);
    assert_eq!(fixture.claim(&worker, 9), ["child"]);
}

/// Ends the job `parent` without success.
type ParentFailure = fn(&Fixture, &WorkerId);

const PARENT_FAILURES: [(&str, ParentFailure); 3] = [
    ("dead", |fixture, worker| {
        assert_eq!(fixture.run(worker, FAILURE), "parent");
    }),
    ("cancelled", |fixture, _| {
        fixture.cancel("parent");
    }),
    ("cancelled while running", |fixture, worker| {
        let lease = fixture.lease(worker);
        fixture.cancel("parent");
        fixture.settle(worker, &lease, Outcome::Cancelled);
    }),
];

fn the_failure_of_a_parent_cancels_or_unblocks_its_children(fixture: &Fixture) {
    let worker = fixture.worker("w");
    for (how, end) in PARENT_FAILURES {
        fixture.enqueue_all([
            job("parent").max_retries(0),
            job("child").after(&["parent"]),
            job("cleanup").after(&["parent"]).run_on_dependency_failure(),
        ]);
        end(fixture, &worker);
        assert!(cancelled_by_dependency(fixture, "child"), "{how}");
        assert_eq!(blocked_by(fixture, "cleanup"), Some(0), "{how}");
        assert_eq!(fixture.run(&worker, Outcome::Success), "cleanup", "{how}");
        for id in ["parent", "child", "cleanup"] {
            assert!(matches!(fixture.remove(id), Change::Done(_)), "{how}: {id}");
        }
    }
}

fn a_cancelled_child_cancels_its_own_children(fixture: &Fixture) {
    fixture.enqueue_all([
        job("a"),
        job("b").after(&["a"]),
        job("c").after(&["b"]),
        job("d").after(&["b", "c"]).run_on_dependency_failure(),
        job("e").after(&["d", "c"]),
    ]);
    fixture.cancel("a");
    for id in ["b", "c", "e"] {
        assert!(cancelled_by_dependency(fixture, id), "{id}");
    }
    assert_eq!(blocked_by(fixture, "d"), Some(0));
    assert_eq!(in_phase(fixture, Phase::Blocked), [""; 0]);
}

fn jobs_enqueued_together_may_depend_on_later_ones(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue_all([
        job("last").after(&["middle", "first"]),
        job("middle").after(&["first"]),
        job("first"),
    ]);
    for id in ["first", "middle", "last"] {
        assert_eq!(fixture.run(&worker, Outcome::Success), id);
    }
}

fn unknown_and_cyclic_dependencies_are_refused(fixture: &Fixture) {
    fixture.enqueue("known");
    let unknown = EnqueueRefusal::UnknownDependency(job_id("unknown"));
    let batch = [job("a"), job("b").after(&["known", "unknown"]), job("c").after(&["b"])];
    assert_eq!(fixture.refused(batch), (1, unknown));
    let (_, cycle) =
        fixture.refused([job("a").after(&["known", "c"]), job("b").after(&["a"]), job("c").after(&["b"])]);
    assert!(matches!(cycle, EnqueueRefusal::Cycle(_)), "{cycle:?}");
    // Only the first of two jobs with the same id is stored, so only its dependencies count.
    let (_, cycle) = fixture.refused([job("a").after(&["b"]), job("b").after(&["a"]), job("b").if_absent()]);
    assert!(matches!(cycle, EnqueueRefusal::Cycle(_)), "{cycle:?}");
    assert_eq!(fixture.list_by(&JobFilter::default(), 9), ["known"]);
    assert!(matches!(fixture.remove("known"), Change::Done(_)), "no job depends on it");
}

fn a_finished_parent_takes_effect_immediately(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue_all([job("good").priority(1), job("bad").max_retries(0)]);
    fixture.run(&worker, Outcome::Success);
    fixture.run(&worker, FAILURE);
    fixture.pass_secs(1);
    fixture.enqueue_all([
        job("grandchild").after(&["child"]),
        job("child").after(&["bad"]),
        job("great-grandchild").after(&["grandchild"]),
        job("cleanup").after(&["good", "bad"]).run_on_dependency_failure(),
        job("next").after(&["good"]),
    ]);
    for id in ["child", "grandchild", "great-grandchild"] {
        assert!(cancelled_by_dependency(fixture, id), "{id}");
    }
    assert_eq!(fixture.claim(&worker, 9), ["cleanup", "next"]);
    assert_eq!(fixture.job("next").life.due_at, fixture.now());
}

fn one_failed_parent_cancels_a_child(fixture: &Fixture) {
    fixture.enqueue_all([job("p1"), job("p2"), job("p3"), job("child").after(&["p1", "p2", "p3"])]);
    fixture.cancel("p2");
    assert!(cancelled_by_dependency(fixture, "child"));
    let before = fixture.record("child");
    fixture.pass_secs(1);
    let worker = fixture.worker("w");
    fixture.run(&worker, Outcome::Success);
    fixture.cancel("p3");
    assert_eq!(fixture.record("child"), before, "its other parents no longer affect it");
}

fn a_cancelled_child_does_not_prevent_removing_its_other_parents(fixture: &Fixture) {
    fixture.enqueue_all([job("dead"), job("open"), job("other")]);
    fixture.cancel("dead");
    // The dead parent is listed between two unfinished ones, and decides the child's end at enqueue.
    fixture.enqueue(job("child").after(&["open", "dead", "other"]));
    assert!(cancelled_by_dependency(fixture, "child"));
    assert!(matches!(fixture.remove("other"), Change::Done(_)), "no job depends on it");
    assert_eq!(fixture.retry("child"), Change::Done(StateName::Pending));
    assert_eq!(blocked_by(fixture, "child"), Some(1));
}

/// More children than any store should unblock in one transaction.
const VERY_MANY: usize = 2_500;

fn very_many_children_are_unblocked_in_portions(fixture: &Fixture) {
    let worker = fixture.worker("w");
    let children = (0..VERY_MANY).map(|n| job(&format!("c{n}")).after(&["parent"]));
    fixture.enqueue_all([job("parent")].into_iter().chain(children));
    fixture.run(&worker, Outcome::Success);
    let mut claimed = Vec::new();
    for _ in 0..10 {
        fixture.pass_millis(1);
        fixture.recount();
        claimed.extend(fixture.claim(&worker, VERY_MANY));
    }
    let expected: Vec<String> = (0..VERY_MANY).map(|n| format!("c{n}")).collect();
    assert!(claimed == expected, "each child once and in order: {}", claimed.len());
}

fn very_many_children_are_cancelled_without_a_worker(fixture: &Fixture) {
    let children = (0..VERY_MANY).map(|n| job(&format!("c{n}")).after(&["parent"]));
    fixture.enqueue_all([job("parent")].into_iter().chain(children));
    fixture.cancel("parent");
    let cancelled = in_phase(fixture, Phase::State(StateName::Cancelled));
    assert_eq!(cancelled.len(), VERY_MANY + 1, "`cancel` must cancel all of them itself");
}

fn a_very_long_chain_is_cancelled_to_its_end(fixture: &Fixture) {
    const LENGTH: usize = 3_000;
    let worker = fixture.worker("w");
    let link = |n: usize| -> JobBuilder {
        let spec = job(&format!("j{n}")).max_retries(0);
        if n == 0 { spec } else { spec.after(&[&format!("j{}", n - 1)]) }
    };
    // From last to first, so that every job depends on a later one.
    fixture.enqueue_all((0..LENGTH).rev().map(link));
    assert_eq!(fixture.run(&worker, FAILURE), "j0");
    for _ in 0..5 {
        assert_eq!(fixture.claim(&worker, 9), [""; 0], "no job of the chain is claimed");
        fixture.recount();
    }
    let cancelled = in_phase(fixture, Phase::State(StateName::Cancelled));
    assert_eq!(cancelled.len(), LENGTH - 1, "all jobs except the dead one");
    assert!(cancelled_by_dependency(fixture, &format!("j{}", LENGTH - 1)));
}

fn a_new_child_of_a_retried_parent_waits_for_the_new_run(fixture: &Fixture) {
    let worker = fixture.worker("w");
    let early = (0..VERY_MANY).map(|n| job(&format!("c{n}")).after(&["parent"]));
    fixture.enqueue_all([job("parent").priority(9)].into_iter().chain(early));
    fixture.run(&worker, Outcome::Success);
    // The parent runs again before all children of its first end were unblocked.
    fixture.retry("parent");
    fixture.enqueue(job("late").after(&["parent"]).priority(5));
    assert_eq!(fixture.claim(&worker, 1), ["parent"]);
    let mut claimed = Vec::new();
    for _ in 0..5 {
        claimed.extend(fixture.claim(&worker, VERY_MANY));
    }
    assert_eq!(claimed.len(), VERY_MANY, "the children of the first end");
    assert_eq!(blocked_by(fixture, "late"), Some(1), "the later child still waits");
}

fn a_retried_child_waits_for_its_unfinished_parents(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue_all([
        job("bad").max_retries(0).priority(2),
        job("open"),
        job("child").after(&["bad", "open"]),
    ]);
    fixture.run(&worker, FAILURE);
    assert!(cancelled_by_dependency(fixture, "child"));
    assert_eq!(fixture.retry("child"), Change::Done(StateName::Pending));
    assert_eq!(blocked_by(fixture, "child"), Some(1), "only the unfinished parent blocks it");
    fixture.run(&worker, Outcome::Success);
    assert_eq!(fixture.run(&worker, Outcome::Success), "child");

    // A cancelled job that is retried is blocked again.
    fixture.enqueue_all([job("p"), job("c").after(&["p"])]);
    fixture.cancel("c");
    fixture.retry("c");
    assert_eq!(blocked_by(fixture, "c"), Some(1));
    fixture.cancel("p");
    assert!(cancelled_by_dependency(fixture, "c"));
}

fn parent_and_child_retried_together_keep_their_order(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue_all([job("parent").max_retries(0), job("child").after(&["parent"]).priority(9)]);
    fixture.run(&worker, FAILURE);
    let ids = ["parent", "child"].map(job_id);
    fixture.change_all(JobVerb::Retry, &ids);
    assert_eq!(fixture.run(&worker, Outcome::Success), "parent");
    assert_eq!(fixture.run(&worker, Outcome::Success), "child");
}

fn further_portions_are_unblocked_without_a_bell(fixture: &Fixture) {
    let worker = fixture.worker("w");
    let children = (0..VERY_MANY).map(|n| job(&format!("c{n}")).after(&["parent"]));
    fixture.enqueue_all([job("parent")].into_iter().chain(children));
    fixture.cancel("parent");
    let mut exchanges = 0;
    while fixture.exchange(&worker, &[], 1).next_due == Some(fixture.now()) {
        exchanges += 1;
        assert!(exchanges < 10, "the portions come to an end");
    }
    assert!(exchanges >= 1, "more than one portion");
    assert_eq!(in_phase(fixture, Phase::State(StateName::Cancelled)).len(), VERY_MANY + 1);
    assert!(fixture.is_idle(&worker));
}

fn a_job_with_unfinished_dependents_is_not_removed(fixture: &Fixture) {
    fixture.enqueue_all([job("parent"), job("one").after(&["parent"])]);
    assert_eq!(fixture.remove("parent"), Change::Conflict(Conflict::WaitedFor { count: 1 }));
    fixture.enqueue_all((0..VERY_MANY).map(|n| job(&format!("c{n}")).after(&["parent"])));
    let Change::Conflict(conflict) = fixture.remove("parent") else {
        panic!("the job was removed");
    };
    assert_eq!(conflict.to_string(), "at least 50 unfinished jobs depend on it");
}

fn fault_09_a_retry_that_would_close_a_cycle_is_refused(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue_all([job("y"), job("x").after(&["y"])]);
    fixture.run(&worker, Outcome::Success);
    fixture.run(&worker, Outcome::Success);
    fixture.remove("y");
    fixture.pause("default");
    // `x` and `y` now depend on each other; the second time via `z`.
    for jobs in [vec![job("y").after(&["x"])], vec![job("z").after(&["x"]), job("y").after(&["z"])]] {
        let ids: Vec<String> =
            fixture.enqueue_all(jobs).iter().map(|enqueued| enqueued.id().to_string()).collect();
        let before = fixture.record("x");
        let conflict = Conflict::Cycle { through: job_id("y") };
        assert!(conflict.to_string().contains("cycle"));
        assert_eq!(fixture.retry("x"), Change::Conflict(conflict));
        assert_eq!(fixture.record("x"), before);
        for id in ids.iter().rev() {
            assert!(matches!(fixture.remove(id), Change::Done(_)), "{id}");
        }
    }
    assert_eq!(fixture.retry("x"), Change::Done(StateName::Pending), "no cycle remains");
}

fn fault_09_retrying_a_failed_job_closes_no_cycle(fixture: &Fixture) {
    let worker = fixture.worker("w");
    let chain = [job("y"), job("x").after(&["y"]), job("p").after(&["x"]), job("f").after(&["p"])];
    fixture.enqueue_all(chain);
    for _ in ["y", "x", "p"] {
        fixture.run(&worker, Outcome::Success);
    }
    fixture.run(&worker, FAILURE);
    assert_eq!(fixture.state("f"), StateName::Failed);
    fixture.remove("y");
    // `y` waits for the failed job `f`, so `f` must not start to wait for it.
    fixture.enqueue(job("y").after(&["f"]));
    for id in ["x", "p", "f"] {
        assert_eq!(fixture.retry(id), Change::Done(StateName::Pending), "{id}");
    }
    assert_eq!(blocked_by(fixture, "f"), Some(0), "its dependencies were met when it first ran");
    for id in ["f", "y", "x", "p"] {
        assert_eq!(fixture.run(&worker, Outcome::Success), id);
    }
}
