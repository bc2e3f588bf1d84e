//! Pruning old data.

use std::sync::Arc;
use std::time::Duration;

use domain::job::NewJob;
use domain::job::environment::Environment;
use domain::job::life::StateName;
use domain::job::outcome::Outcome;
use domain::job::unique::UniqueFor;
use domain::settings::SettingKey;
use domain::values::timestamp::Timestamp;
use store::retention::{PruneTotals, RetentionPass};
use store::{
    Cursor, Duty, EnvironmentGc, JobFilter, NewSchedule, Prunable, PruneStep, ServedJobs, Settlement,
    settings,
};

use super::fixture::new_job::{job, job_id};
use super::fixture::{ACTOR, FAILURE, Fixture, every_store, settlement};
use super::schedules::minutely;

every_store!(
    jobs_are_kept_for_the_configured_time,
    a_finished_parent_of_a_blocked_job_is_pruned,
    the_age_of_a_job_counts_from_its_end,
    a_timestamp_in_the_future_does_not_prevent_pruning,
    a_step_is_bounded_by_its_limit,
    output_and_events_have_their_own_retention,
    a_dry_run_counts_without_deleting,
    stopped_workers_are_deleted_with_their_jobs,
    stopped_workers_without_jobs_are_deleted,
    a_job_number_is_not_reused,
    a_reported_death_is_no_news_and_ages_like_a_completed_job,
    one_worker_holds_a_duty_at_a_time,
    log_files_of_deleted_jobs_have_expired,
    many_old_jobs_are_deleted_in_small_steps_while_others_are_enqueued,
    a_job_that_holds_a_unique_key_is_kept,
    only_selected_jobs_in_an_unchanged_state_are_deleted,
    unused_environments_are_deleted,
    an_environment_reused_during_the_search_is_kept,
);

fn a_reported_death_is_no_news_and_ages_like_a_completed_job(fixture: &Fixture) {
    let store = fixture.store.as_ref();
    let worker = fixture.worker("w");
    let deaths = || store.recent_problems(Timestamp::EPOCH, fixture.now()).expect("problems").deaths;
    for id in ["reported", "unseen", "again"] {
        fixture.enqueue(job(id).max_retries(0));
        fixture.run(&worker, FAILURE);
    }
    assert_eq!(deaths(), 3);
    for id in ["reported", "again"] {
        assert!(store.mark_reported(&job_id(id), 1).expect("marked"));
        assert!(!store.mark_reported(&job_id(id), 2).expect("answered"), "it has no such attempt");
    }
    assert!(!store.mark_reported(&job_id("nope"), 1).expect("answered"));
    assert_eq!(deaths(), 1);
    fixture.retry("again");
    assert!(!store.mark_reported(&job_id("again"), 1).expect("answered"), "it is not dead");
    fixture.run(&worker, FAILURE);
    assert_eq!(deaths(), 2, "its second death was not reported");
    fixture.pass_secs(8 * DAY);
    assert_eq!(prune(fixture).jobs, 1);
    assert_eq!(ids(fixture), ["again", "unseen"]);
}

const DAY: u64 = 24 * 3600;

/// Prunes completely by the settings; there are no log files.
fn prune(fixture: &Fixture) -> PruneTotals {
    let settings = settings::in_force(fixture.store.as_ref()).expect("the settings");
    let mut walk = RetentionPass::by_settings(&settings, fixture.now(), "/nowhere".as_ref());
    while walk.step(fixture.store.as_ref()).expect("a step") {}
    walk.deleted()
}

fn ids(fixture: &Fixture) -> Vec<String> {
    fixture.list_by(&JobFilter::default(), 100)
}

fn step(fixture: &Fixture, what: Prunable) -> PruneStep {
    PruneStep { what, before: fixture.now(), after: Cursor::default(), limit: 2, dry_run: false }
}

fn jobs_are_kept_for_the_configured_time(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue(job("dead").max_retries(0).tags(&["t"]));
    fixture.run(&worker, FAILURE);
    fixture.enqueue("completed");
    fixture.run(&worker, Outcome::Success);
    fixture.enqueue_all([
        job("cancelled").unique_key("k"),
        job("failed").priority(-1),
        job("later").delay_secs(90 * DAY),
    ]);
    fixture.cancel("cancelled");
    fixture.run(&worker, FAILURE);
    fixture.pass_secs(7 * DAY - 1);
    assert_eq!(prune(fixture).jobs, 0);
    fixture.pass_secs(1);
    assert_eq!(prune(fixture).jobs, 2);
    assert_eq!(ids(fixture), ["later", "failed", "dead"]);
    fixture.set(SettingKey::RetainDead, "8d");
    fixture.pass_secs(DAY);
    assert_eq!(prune(fixture).jobs, 1);
    assert_eq!(ids(fixture), ["later", "failed"]);
    assert_eq!(prune(fixture), PruneTotals::default(), "nothing is left to prune");
    fixture.enqueue(job("again").unique_key("k"));
}

fn a_finished_parent_of_a_blocked_job_is_pruned(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue(job("parent"));
    fixture.run(&worker, Outcome::Success);
    fixture.enqueue_all([job("other"), job("child").after(&["parent", "other"])]);
    fixture.pass_secs(8 * DAY);
    prune(fixture);
    assert_eq!(ids(fixture), ["child", "other"], "the end of the parent is already recorded in the child");
    assert_eq!(fixture.run(&worker, Outcome::Success), "other");
    assert_eq!(fixture.run(&worker, Outcome::Success), "child");
}

fn the_age_of_a_job_counts_from_its_end(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue_all([job("slow").priority(-1), job("quick")]);
    fixture.run(&worker, Outcome::Success);
    fixture.pass_secs(5 * DAY);
    fixture.run(&worker, Outcome::Success);
    fixture.pass_secs(4 * DAY);
    assert_eq!(prune(fixture).jobs, 1);
    assert_eq!(ids(fixture), ["slow"]);
}

fn a_timestamp_in_the_future_does_not_prevent_pruning(fixture: &Fixture) {
    let worker = fixture.worker("w");
    let run = |id: &str| {
        fixture.enqueue(id);
        let lease = fixture.lease(&worker);
        let with_output = Settlement { output: Some(b"x".to_vec()), ..settlement(&lease, Outcome::Success) };
        fixture.exchange(&worker, &[with_output], 0);
    };
    let year = 365 * 24 * 3_600_000;
    fixture.clock.jump(year);
    run("ahead");
    fixture.set(SettingKey::MaxRetries, "1");
    fixture.clock.jump(-year);
    run("after");
    fixture.set(SettingKey::MaxRetries, "2");
    fixture.pass_secs(31 * DAY);
    let pruned = prune(fixture);
    assert_eq!((pruned.jobs, pruned.outputs, pruned.events), (1, 0, 2), "output is deleted with its job");
    assert_eq!(ids(fixture), ["ahead"]);
}

fn a_step_is_bounded_by_its_limit(fixture: &Fixture) {
    let worker = fixture.worker("w");
    for id in ["a", "b", "c"] {
        fixture.enqueue(id);
        fixture.run(&worker, Outcome::Success);
    }
    let mut at = step(fixture, Prunable::Jobs(StateName::Completed));
    let pruned = fixture.store.prune(&at).expect("a step");
    assert_eq!((pruned.count, &*pruned.gone, pruned.next), (2, &[(1, 1), (2, 1)][..], Some(Cursor(2, 0))));
    at.after = Cursor(2, 0);
    let pruned = fixture.store.prune(&at).expect("a step");
    assert_eq!((pruned.count, pruned.next), (1, None));
    assert_eq!(ids(fixture), [""; 0]);
}

fn output_and_events_have_their_own_retention(fixture: &Fixture) {
    fixture.set(SettingKey::RetainCompleted, "never");
    fixture.set(SettingKey::RetainLogs, "1d");
    let worker = fixture.worker("w");
    fixture.enqueue("a");
    let lease = fixture.lease(&worker);
    let with_output = Settlement { output: Some(b"hello".to_vec()), ..settlement(&lease, Outcome::Success) };
    fixture.exchange(&worker, &[with_output], 0);
    fixture.retry("a");
    fixture.cancel("a");
    fixture.pass_secs(DAY);
    let pruned = prune(fixture);
    assert_eq!((pruned.jobs, pruned.outputs, pruned.events), (0, 1, 0));
    assert_eq!(fixture.store.output(&job_id("a"), 1).expect("output"), None);
    assert_eq!(fixture.record("a").events.len(), 2);
    fixture.pass_secs(29 * DAY);
    assert!(prune(fixture).events >= 2, "changed settings are events too");
    assert_eq!(fixture.record("a").events, []);
    assert_eq!(fixture.record("a").history.len(), 1, "the history is kept with its job");
}

fn a_dry_run_counts_without_deleting(fixture: &Fixture) {
    let worker = fixture.worker("w");
    for id in ["a", "b", "c"] {
        fixture.enqueue(id);
        fixture.run(&worker, Outcome::Success);
    }
    fixture.pass_secs(8 * DAY);
    let settings = settings::in_force(fixture.store.as_ref()).expect("the settings");
    let mut walk = RetentionPass::by_settings(&settings, fixture.now(), "/nowhere".as_ref()).dry_run();
    while walk.step(fixture.store.as_ref()).expect("a step") {}
    assert_eq!(walk.deleted().jobs, 3);
    assert_eq!(ids(fixture).len(), 3, "nothing was deleted");
    assert_eq!(prune(fixture).jobs, 3);
}

fn stopped_workers_are_deleted_with_their_jobs(fixture: &Fixture) {
    fixture.enqueue_all([job("alone"), job("a")]);
    let for_one = fixture.worker_serving("for-one", ServedJobs::Job(job_id("alone")));
    fixture.run(&for_one, Outcome::Success);
    fixture.retire(&for_one);
    let old = fixture.worker("old");
    fixture.run(&old, Outcome::Success);
    fixture.retire(&old);
    fixture.pass_secs(8 * DAY);
    let live = fixture.worker("live");
    fixture.enqueue("new");
    fixture.run(&live, Outcome::Success);
    assert_eq!(prune(fixture).jobs, 2);
    assert_eq!(fixture.record("new").history.len(), 1);
    for gone in ["for-one", "old"] {
        let again = fixture.store.orders(&gone.parse().expect("an id"));
        assert!(again.is_err(), "{gone} is deleted: {again:?}");
    }
    fixture.orders(&live);
}

/// A user may start a worker every minute for jobs that are rare.
fn stopped_workers_without_jobs_are_deleted(fixture: &Fixture) {
    let idle = fixture.worker("idle");
    fixture.retire(&idle);
    prune(fixture);
    let again = fixture.store.orders(&idle);
    assert!(again.is_err(), "the worker is deleted: {again:?}");
}

fn a_job_number_is_not_reused(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue("a");
    let number = fixture.job("a").number;
    fixture.run(&worker, Outcome::Success);
    fixture.pass_secs(8 * DAY);
    prune(fixture);
    fixture.enqueue("b");
    assert!(fixture.job("b").number > number);
}

fn one_worker_holds_a_duty_at_a_time(fixture: &Fixture) {
    let lease = Duration::from_secs(60);
    let take = || fixture.store.take_duty(Duty::Prune, lease).expect("a duty");
    assert_eq!((take(), take()), (true, false));
    fixture.pass_secs(60);
    assert!(take(), "the previous holder died");
    fixture.store.end_duty(Duty::Prune, Duration::from_secs(3_600), ACTOR, Some("much")).expect("done");
    fixture.pass_secs(3_599);
    assert!(!take());
    fixture.clock.jump(-1_000_000_000);
    assert!(take(), "the clock was wrong when the duty ended");
}

fn log_files_of_deleted_jobs_have_expired(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue_all([job("a"), job("b")]);
    fixture.run(&worker, Outcome::Success);
    fixture.lease(&worker);
    let ended_at = fixture.now();
    fixture.pass_secs(5);
    let files = [(1, 1), (2, 1), (3, 1)];
    let expired = |before| fixture.store.expired_logs(&files, before).expect("files");
    assert_eq!(expired(None), [(3, 1)]);
    assert_eq!(expired(Some(ended_at)), [(1, 1), (3, 1)], "the log of a running job is kept");
}

/// Enough for a file to shrink when they are deleted, and few enough to be fast. A server shrinks its tables by itself.
const MANY_JOBS: usize = 20_000;
const MANY_JOBS_ON_A_SERVER: usize = 3_000;

fn many_old_jobs_are_deleted_in_small_steps_while_others_are_enqueued(fixture: &Fixture) {
    fixture.set(SettingKey::Durability, "normal");
    let worker = fixture.worker("w");
    let jobs = if fixture.store.spans_machines() { MANY_JOBS_ON_A_SERVER } else { MANY_JOBS };
    fixture.enqueue_all((0..jobs).map(|at| job(&format!("old-{at}"))));
    let leases = fixture.leases(&worker, jobs);
    let settlements: Vec<_> = leases.iter().map(|lease| settlement(lease, Outcome::Success)).collect();
    fixture.exchange(&worker, &settlements, 0);
    fixture.pass_secs(8 * DAY);
    let settings = settings::in_force(fixture.store.as_ref()).expect("the settings");
    let mut walk = RetentionPass::by_settings(&settings, fixture.now(), "/nowhere".as_ref());
    let (mut steps, mut before) = (0, 0);
    while walk.step(fixture.store.as_ref()).expect("a step") {
        let gone = walk.deleted().jobs - before;
        assert!(gone <= 250, "{gone} jobs in one step");
        before = walk.deleted().jobs;
        if steps % 16 == 0 {
            fixture.enqueue(job(&format!("new-{steps}")));
        }
        steps += 1;
        // Halfway through, the pruning worker dies and another one starts again.
        if steps == jobs / 500 {
            walk = RetentionPass::by_settings(&settings, fixture.now(), "/nowhere".as_ref());
            before = 0;
        }
    }
    let left = ids(fixture);
    assert!(!left.is_empty() && left.iter().all(|id| id.starts_with("new-")), "{} jobs are left", left.len());
    let space = PruneStep { what: Prunable::Space, ..step(fixture, Prunable::Space) };
    assert_eq!(
        fixture.store.prune(&PruneStep { dry_run: true, ..space }).expect("a step").count,
        0,
        "no free pages are left"
    );
}

fn a_job_that_holds_a_unique_key_is_kept(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue_all([
        job("span").unique_key("k").unique_for(UniqueFor::Span(Duration::from_secs(20 * DAY))),
        job("finished").unique_key("l"),
    ]);
    for _ in 0..2 {
        fixture.run(&worker, Outcome::Success);
    }
    fixture.pass_secs(8 * DAY);
    assert_eq!((prune(fixture).jobs, ids(fixture)), (1, vec!["span".to_owned()]));
    let found = fixture.enqueue_all([job("other").unique_key("k")]);
    assert_eq!(*found[0].id(), job_id("span"), "the job still holds its key");
    fixture.pass_secs(12 * DAY);
    assert_eq!(prune(fixture).jobs, 1);
    fixture.recount();
}

fn only_selected_jobs_in_an_unchanged_state_are_deleted(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue_all([job("a"), job("b"), job("parent").max_retries(0), job("waits").delay_secs(9)]);
    for _ in 0..3 {
        fixture.run(&worker, Outcome::Success);
    }
    let chosen = fixture.store.select(&JobFilter::default(), None, 9).expect("a selection");
    assert_eq!(fixture.store.prune_jobs(&chosen, true).expect("prune").count, 3);
    fixture.retry("b");
    fixture.retry("parent");
    let pruned = fixture.store.prune_jobs(&chosen, false).expect("prune");
    assert_eq!((pruned.count, pruned.gone.len()), (1, 1));
    assert_eq!(ids(fixture), ["waits", "parent", "b"]);
    fixture.recount();
}

fn in_environment(id: &str, variables: &str) -> NewJob {
    let environment = Some(Arc::new(Environment::from_bytes(variables.as_bytes())));
    NewJob { environment, ..NewJob::from(job(id)) }
}

fn unused_environments_are_deleted(fixture: &Fixture) {
    for (id, variables) in [("a", "A=1\0"), ("b", "A=2\0"), ("c", "A=3\0")] {
        fixture.enqueue(in_environment(id, variables));
    }
    let environment = Some(Arc::new(Environment::from_bytes(b"A=1\0")));
    let schedule = NewSchedule { environment, ..minutely("s") };
    fixture.store.add_schedule(&schedule, ACTOR).expect("the schedule is valid");
    fixture.remove("a");
    fixture.remove("b");
    let mut gc = EnvironmentGc::default();
    let mut steps = 1;
    while fixture.store.collect_environments(&mut gc, 1).expect("a step") {
        steps += 1;
    }
    assert_eq!(gc.deleted, 1, "a job and a schedule use the others");
    assert!(steps > 1, "one environment per step");
    assert_eq!(fixture.claim(&fixture.worker("w"), 9), ["c"]);
}

fn an_environment_reused_during_the_search_is_kept(fixture: &Fixture) {
    for (id, variables) in [("a", "A=1\0"), ("b", "A=2\0")] {
        fixture.enqueue(in_environment(id, variables));
    }
    fixture.remove("a");
    let mut gc = EnvironmentGc::default();
    assert!(fixture.store.collect_environments(&mut gc, 1).expect("a step"), "more environments remain");
    fixture.enqueue(in_environment("again", "A=1\0"));
    while fixture.store.collect_environments(&mut gc, 1).expect("a step") {}
    assert_eq!(gc.deleted, 0);
    assert_eq!(fixture.claim(&fixture.worker("w"), 9), ["b", "again"]);
}
