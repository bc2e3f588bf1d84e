//! The history behind metrics: what is counted, how it gets coarser, and that nothing is lost.

use std::collections::BTreeMap;
use std::time::Duration;

use domain::job::life::StateName;
use domain::job::outcome::{Outcome, OutcomeName};
use domain::job::{Attempt, Usage};
use domain::metrics::activity::{Activity, EndedAttempt};
use domain::metrics::histogram::{RUN_BOUNDS, WAIT_BOUNDS};
use domain::metrics::history::{Point, Timeline};
use domain::settings::SettingKey;
use domain::values::name::{QueueName, WorkerId};
use domain::values::signal::Signal;
use store::retention::RetentionPass;
use store::transfer::{ImportRules, Line};
use store::{
    Cursor, JobFilter, Prunable, PruneStep, QueueMetrics, QueueRemoval, Settlement, Store, settings,
};

use super::fixture::new_job::{job, queue_name};
use super::fixture::{ACTOR, FAILURE, Fixture, every_store, settlement};

every_store!(
    a_claim_counts_with_how_late_it_is,
    each_outcome_counts_once,
    interrupted_attempts_are_not_among_the_run_times,
    a_refused_settlement_counts_for_nothing,
    states_are_counted_when_a_job_enters_them,
    rows_that_are_moved_or_imported_enter_nothing,
    an_imported_queue_keeps_its_history,
    queues_are_counted_apart,
    attempts_that_ended_are_counted_by_the_hour,
    the_totals_equal_a_recount_of_all_attempts_however_often_they_are_folded,
    a_dry_run_folds_nothing,
    a_recent_time_leaves_out_what_was_before,
    a_sample_is_taken_once_a_minute,
    enqueued_jobs_are_found_with_and_without_samples,
    jobs_enqueued_while_no_worker_sampled_are_spread_over_that_time,
    the_oldest_ready_job_of_each_queue_is_found_among_all_priorities,
    a_due_job_that_no_worker_made_ready_is_waiting_too,
    a_removed_queue_takes_its_history_along,
    a_history_has_what_happened_when_it_happened,
    a_history_keeps_its_sums_when_it_is_folded,
    a_history_has_no_points_while_no_worker_ran,
    a_process_that_remembers_the_past_answers_like_a_new_one,
    a_clock_that_was_days_ahead_hides_no_totals,
    a_clock_that_was_set_back_is_noticed_later_too,
);

const MINUTE: u64 = 60;
const HOUR: u64 = 3_600;
const DAY: u64 = 24 * HOUR;

/// A store of an earlier version, in which seven dead jobs were counted, keeps that number, and counts what happens next.
pub(super) fn assert_counts_from_now_on(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue("new");
    fixture.run(&worker, Outcome::Success);
    let QueueMetrics { queue, entered, activity, .. } = total(fixture, "default");
    assert_eq!((queue.counts[&StateName::Dead], activity.started), (7, 1));
    assert_eq!(entered, BTreeMap::from([(StateName::Pending, 1), (StateName::Completed, 1)]));
}

fn total(fixture: &Fixture, queue: &str) -> QueueMetrics {
    let all = fixture.store.total_metrics().expect("the totals");
    all.into_iter().find(|found| found.queue.name.as_str() == queue).expect("the queue exists")
}

fn recent(fixture: &Fixture, queue: &str, seconds: u64) -> QueueMetrics {
    let since = fixture.now().saturating_sub(Duration::from_secs(seconds));
    let all = fixture.store.recent_metrics(since).expect("the metrics");
    all.into_iter().find(|found| found.queue.name.as_str() == queue).expect("the queue exists")
}

fn ran(duration_ms: u64, outcome: Outcome, lease: &store::LeaseRef) -> Settlement {
    let cpu = Some(Duration::from_millis(2));
    Settlement {
        duration: Duration::from_millis(duration_ms),
        usage: Usage { cpu, max_rss_bytes: None },
        ..settlement(lease, outcome)
    }
}

/// Claims the next job and settles it.
fn run(fixture: &Fixture, worker: &WorkerId, duration_ms: u64, outcome: Outcome) {
    let lease = fixture.lease(worker);
    fixture.exchange(worker, &[ran(duration_ms, outcome, &lease)], 0);
}

/// Folds everything that is old enough, as the pruner does.
fn fold(fixture: &Fixture) {
    let settings = settings::in_force(fixture.store.as_ref()).expect("the settings");
    let mut pass = RetentionPass::by_settings(&settings, fixture.now(), "/nowhere".as_ref());
    while pass.step(fixture.store.as_ref()).expect("a step") {}
}

fn a_claim_counts_with_how_late_it_is(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue_all([job("a"), job("b"), job("c").delay_secs(10)]);
    fixture.pass_millis(30);
    fixture.leases(&worker, 2);
    fixture.pass_secs(12);
    fixture.lease(&worker);
    let Activity { started, waits, .. } = total(fixture, "default").activity;
    assert_eq!((started, waits.count(), waits.sum_ms), (3, 3, 30 + 30 + 2_030));
    let mut expected = waits;
    expected.buckets = [0; 16];
    expected.buckets[3] = 2;
    expected.buckets[8] = 1;
    assert_eq!(waits, expected);
    let longest = waits.quantile(1.0, &WAIT_BOUNDS).expect("there are waits");
    assert!((2_030..2_090).contains(&longest.as_millis()), "the sum allows no more: {longest:?}");
}

fn each_outcome_counts_once(fixture: &Fixture) {
    let worker = fixture.worker("w");
    let signal = Signal::from_number(9).expect("a signal");
    let outcomes = [
        Outcome::Success,
        FAILURE,
        Outcome::Signal { signal },
        Outcome::Timeout,
        Outcome::SpawnError,
        Outcome::Released,
    ];
    for outcome in outcomes {
        fixture.enqueue(job(outcome.name()).max_retries(0));
        run(fixture, &worker, 60, outcome);
        if outcome == Outcome::Released {
            run(fixture, &worker, 60, Outcome::Success);
        }
    }
    fixture.enqueue("cancelled");
    let lease = fixture.lease(&worker);
    fixture.cancel("cancelled");
    fixture.exchange(&worker, &[ran(60, Outcome::Cancelled, &lease)], 0);
    fixture.enqueue("lost");
    let lost = fixture.lease(&worker);
    fixture.reap_started(&worker, &[lost]);
    let activity = total(fixture, "default").activity;
    for outcome in OutcomeName::ALL {
        let expected = if outcome == OutcomeName::Success { 2 } else { 1 };
        assert_eq!(activity.ended(outcome), expected, "{outcome:?}");
    }
    assert_eq!((activity.started, activity.died), (9, 4));
    assert_eq!(activity.cpu_ms, 2 * 8, "a lost attempt has no known processor time");
}

fn interrupted_attempts_are_not_among_the_run_times(fixture: &Fixture) {
    let worker = fixture.worker("w");
    for (id, outcome, duration) in
        [("a", Outcome::Success, 60), ("b", FAILURE, 2_000), ("c", Outcome::Released, 900_000)]
    {
        fixture.enqueue(job(id).max_retries(0));
        run(fixture, &worker, duration, outcome);
    }
    let runs = total(fixture, "default").activity.runs;
    assert_eq!((runs.count(), runs.sum_ms), (2, 2_060));
    assert_eq!((runs.buckets[3], runs.buckets[7]), (1, 1));
}

fn a_refused_settlement_counts_for_nothing(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue("a");
    let lease = fixture.lease(&worker);
    assert!(fixture.settle(&worker, &lease, Outcome::Success));
    assert!(!fixture.settle(&worker, &lease, Outcome::Success), "it is settled");
    assert_eq!(total(fixture, "default").activity.outcomes.iter().sum::<u64>(), 1);
}

fn states_are_counted_when_a_job_enters_them(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.set(SettingKey::RetryDelay, "1s");
    fixture.enqueue(job("a").max_retries(1));
    run(fixture, &worker, 1, FAILURE);
    fixture.pass_secs(10);
    run(fixture, &worker, 1, FAILURE);
    fixture.retry("a");
    run(fixture, &worker, 1, Outcome::Success);
    fixture.enqueue("b");
    fixture.cancel("b");
    fixture.remove("b");
    let entered = total(fixture, "default").entered;
    let expected = [
        (StateName::Pending, 2),
        (StateName::Completed, 1),
        (StateName::Failed, 1),
        (StateName::Dead, 1),
        (StateName::Cancelled, 1),
    ];
    assert_eq!(
        entered,
        BTreeMap::from(expected),
        "a retry by hand enqueues nothing, and removal takes nothing back"
    );
}

fn exported(fixture: &Fixture) -> Vec<Line> {
    let mut lines = Vec::new();
    let sink = &mut |line| {
        lines.push(line);
        true
    };
    fixture.store.export(&store::ExportScope::All, sink).expect("an export");
    lines
}

fn import(fixture: &Fixture, lines: &[Line], if_absent: bool) {
    let rules = ImportRules { if_absent, ..ImportRules::default() };
    fixture.store.import(&mut lines.iter().cloned().map(Ok), rules, ACTOR).expect("an import");
}

/// As lines of an earlier version.
fn rows_that_are_moved_or_imported_enter_nothing(fixture: &Fixture) {
    fixture.enqueue("a");
    let mut lines = exported(fixture);
    lines.retain(|line| !matches!(line, Line::Totals(_) | Line::Minutes(_)));
    let other = Fixture::sqlite();
    import(&other, &lines, false);
    assert_eq!(total(&other, "default").entered, BTreeMap::new());
    let worker = other.worker("w");
    run(&other, &worker, 1, Outcome::Success);
    assert_eq!(total(&other, "default").activity.started, 1);
}

fn an_imported_queue_keeps_its_history(fixture: &Fixture) {
    let worker = fixture.worker("w");
    for (at, outcome) in [Outcome::Success, FAILURE, Outcome::Success].into_iter().enumerate() {
        fixture.enqueue_all([job(&format!("a{at}")).max_retries(0), job(&format!("b{at}")).queue("mail")]);
        run(fixture, &worker, 1_500, outcome);
        fixture.store.sample_depth().expect("a sample");
        // Some of it becomes coarser.
        fixture.pass_secs(2 * DAY);
        fold(fixture);
    }
    run(fixture, &worker, 20, Outcome::Success);
    let lines = exported(fixture);
    for other in [Fixture::sqlite(), Fixture::postgres()] {
        // A worker that waits for jobs has taken a sample.
        other.store.sample_depth().expect("a sample");
        other.pass_secs(6 * DAY);
        // A second import changes nothing.
        for if_absent in [false, true] {
            import(&other, &lines, if_absent);
            for queue in ["default", "mail"] {
                assert_eq!(total(&other, queue), total(fixture, queue), "{queue}");
                assert_eq!(
                    recent(&other, queue, 20 * MINUTE),
                    recent(fixture, queue, 20 * MINUTE),
                    "{queue}"
                );
            }
        }
        let worker = other.worker("v");
        run(&other, &worker, 1, Outcome::Success);
        let started = |fixture| -> u64 {
            ["default", "mail"].map(|queue| total(fixture, queue).activity.started).iter().sum()
        };
        assert_eq!(started(&other), started(fixture) + 1, "it counts from there on");
        other.recount();
    }
}

fn queues_are_counted_apart(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue_all([job("a"), job("b").queue("mail"), job("c").queue("mail")]);
    let leases = fixture.leases(&worker, 3);
    let settlements: Vec<Settlement> = leases.iter().map(|lease| ran(1, Outcome::Success, lease)).collect();
    fixture.exchange(&worker, &settlements, 0);
    for (queue, jobs) in [("default", 1), ("mail", 2)] {
        let QueueMetrics { activity, enqueued, .. } = total(fixture, queue);
        assert_eq!((activity.started, activity.finished(), enqueued), (jobs, jobs, jobs), "{queue}");
    }
}

fn attempts_that_ended_are_counted_by_the_hour(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue("a");
    run(fixture, &worker, 1, Outcome::Success);
    fixture.pass_secs(90 * MINUTE);
    fixture.enqueue_all([job("b").queue("mail")]);
    run(fixture, &worker, 1, Outcome::Success);
    let hours = |count: usize| {
        let found = fixture.store.ended_per_hour(count).expect("the hours");
        let named = found.into_iter().map(|(queue, hours)| (queue.to_string(), hours));
        named.collect::<BTreeMap<String, Vec<u64>>>()
    };
    let of = |queue: &str, hours: [u64; 3]| (queue.to_owned(), hours.to_vec());
    assert_eq!(hours(3), BTreeMap::from([of("default", [0, 1, 0]), of("mail", [0, 0, 1])]));
    assert_eq!(hours(1), BTreeMap::from([("mail".to_owned(), vec![1])]), "what is older is left out");
}

/// All ended attempts of a queue, counted from the history of its jobs.
fn recounted(fixture: &Fixture, queue: &str) -> Activity {
    let mut activity = Activity::default();
    let filter = JobFilter { queue: Some(queue_name(queue)), ..JobFilter::default() };
    for id in fixture.list_by(&filter, 1_000) {
        let record = fixture.record(&id);
        let is_dead = record.job.life.state.name() == StateName::Dead;
        let last = record.history.len();
        for (at, Attempt { ending, .. }) in record.history.into_iter().enumerate() {
            let Some(ending) = ending else { continue };
            activity.record_end(&EndedAttempt {
                outcome: ending.outcome.kind(),
                duration: ending.duration,
                cpu: ending.usage.cpu,
                died: is_dead && at + 1 == last,
            });
        }
    }
    activity
}

fn the_totals_equal_a_recount_of_all_attempts_however_often_they_are_folded(fixture: &Fixture) {
    let worker = fixture.worker("w");
    for key in [SettingKey::RetainCompleted, SettingKey::RetainLogs, SettingKey::RetainEvents] {
        fixture.set(key, "never");
    }
    fixture.set(SettingKey::RetryDelay, "1m");
    let mut ran_jobs = 0;
    let steps = [7, 13 * MINUTE, 3 * HOUR, 31 * HOUR, 9 * DAY, 40 * DAY, 80 * DAY, 120 * DAY];
    for (round, pause) in steps.into_iter().cycle().take(24).enumerate() {
        for at in 0..3_u64 {
            let queue = if at == 2 { "mail" } else { "default" };
            fixture.enqueue(job(&format!("j-{round}-{at}")).queue(queue).max_retries(1));
        }
        fixture.store.sample_depth().expect("a sample");
        for (at, outcome) in [Outcome::Success, FAILURE, Outcome::Released, FAILURE].into_iter().enumerate() {
            fixture.pass_millis(40 * at as u64);
            run(fixture, &worker, 1 << (round + at).min(22), outcome);
            ran_jobs += 1;
        }
        fixture.pass_secs(pause);
        if round % 2 == 1 {
            fold(fixture);
        }
        for queue in ["default", "mail"] {
            let Activity { started, waits, outcomes, died, runs, cpu_ms } = total(fixture, queue).activity;
            let expected = recounted(fixture, queue);
            assert_eq!(outcomes, expected.outcomes, "{queue} in round {round}");
            assert_eq!((died, runs, cpu_ms), (expected.died, expected.runs, expected.cpu_ms));
            assert_eq!((started, waits.count()), (outcomes.iter().sum(), started));
        }
    }
    fixture.pass_secs(100 * DAY);
    fold(fixture);
    let all = fixture.store.total_metrics().expect("the totals");
    assert_eq!(all.iter().map(|queue| queue.activity.started).sum::<u64>(), ran_jobs);
    assert_eq!(recent(fixture, "default", 300 * DAY).activity, Activity::default(), "all is in the last row");
    assert_eq!(all.iter().map(|queue| queue.enqueued).sum::<u64>(), 24 * 3);
    let runs = total(fixture, "default").activity.runs;
    assert!(runs.quantile(0.5, &RUN_BOUNDS).is_some());
}

fn a_dry_run_folds_nothing(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue("a");
    run(fixture, &worker, 1, Outcome::Success);
    fixture.pass_secs(200 * DAY);
    let step = PruneStep {
        what: Prunable::Minutes { retain: Some(Duration::from_secs(DAY)) },
        before: fixture.now(),
        after: Cursor::default(),
        limit: 10,
        dry_run: true,
    };
    assert_eq!(fixture.store.prune(&step).expect("a step").next, None);
    assert_eq!(recent(fixture, "default", 300 * DAY).activity.started, 1);
}

fn a_recent_time_leaves_out_what_was_before(fixture: &Fixture) {
    let worker = fixture.worker("w");
    for id in ["old", "new"] {
        fixture.enqueue(id);
        run(fixture, &worker, 1, Outcome::Success);
        fixture.pass_secs(50 * MINUTE);
    }
    for (seconds, jobs) in [(10 * MINUTE, 0), (HOUR, 1), (2 * HOUR, 2)] {
        assert_eq!(recent(fixture, "default", seconds).activity.finished(), jobs, "{seconds}");
    }
    assert_eq!(total(fixture, "default").activity.finished(), 2);
}

fn a_sample_is_taken_once_a_minute(fixture: &Fixture) {
    let sample = || fixture.store.sample_depth().expect("a sample");
    assert!(sample(), "the first is due at once, even without a queue");
    assert!(!sample(), "the minute has its sample");
    fixture.enqueue("a");
    fixture.pass_secs(MINUTE);
    assert!(sample());
    assert!(!sample());
    fixture.pass_secs(MINUTE - 1);
    fixture.clock.jump(-30 * DAY_MILLIS);
    assert!(sample(), "a clock that was set back does not stop the samples");
}

const DAY_MILLIS: i64 = 24 * 3_600_000;

fn enqueued_jobs_are_found_with_and_without_samples(fixture: &Fixture) {
    let enqueued = |seconds| recent(fixture, "default", seconds).enqueued;
    fixture.enqueue_all([job("a"), job("b")]);
    assert_eq!(enqueued(HOUR), 2, "never sampled");
    fixture.pass_secs(2 * MINUTE);
    fixture.store.sample_depth().expect("a sample");
    fixture.enqueue("c");
    assert_eq!((enqueued(HOUR), total(fixture, "default").enqueued), (3, 3), "sampled in part");
    fixture.pass_secs(MINUTE);
    fixture.store.sample_depth().expect("a sample");
    assert_eq!(enqueued(HOUR), 3, "sampled");
    for _ in 0..70 {
        fixture.pass_secs(MINUTE);
        fixture.store.sample_depth().expect("a sample");
    }
    fixture.enqueue("d");
    assert_eq!((enqueued(HOUR), total(fixture, "default").enqueued), (1, 4), "the first three are too old");
}

fn jobs_enqueued_while_no_worker_sampled_are_spread_over_that_time(fixture: &Fixture) {
    fixture.store.sample_depth().expect("a sample");
    fixture.enqueue("first");
    fixture.pass_secs(MINUTE);
    fixture.store.sample_depth().expect("a sample");
    fixture.enqueue_all((0..100).map(|at| job(&format!("j-{at}"))));
    fixture.pass_secs(10 * HOUR);
    let enqueued = || recent(fixture, "default", HOUR).enqueued;
    assert_eq!(enqueued(), 10, "not sampled yet");
    fixture.store.sample_depth().expect("a sample");
    assert_eq!(enqueued(), 10, "sampled");
    assert_eq!(total(fixture, "default").enqueued, 101);
}

fn the_oldest_ready_job_of_each_queue_is_found_among_all_priorities(fixture: &Fixture) {
    let start = fixture.now();
    fixture.enqueue(job("low").priority(-5));
    fixture.pass_secs(10);
    fixture.enqueue_all([job("high").priority(9), job("other").queue("mail").priority(3)]);
    fixture.pass_secs(10);
    fixture.enqueue_all([job("new"), job("blocked").queue("empty").after(&["low"])]);
    let oldest = |queue| total(fixture, queue).oldest_ready_at;
    assert_eq!(oldest("default"), Some(start));
    assert_eq!(oldest("mail"), Some(start.saturating_add(Duration::from_secs(10))));
    assert_eq!(oldest("empty"), None, "a blocked job is not ready");
    let worker = fixture.worker("w");
    let claimed_at = fixture.now();
    fixture.claims(&worker, 2);
    fixture.pass_secs(5);
    assert_eq!(total(fixture, "default").oldest_running_at, Some(claimed_at));
    assert_eq!(total(fixture, "empty").oldest_running_at, None);
}

fn a_due_job_that_no_worker_made_ready_is_waiting_too(fixture: &Fixture) {
    fixture.enqueue(job("later").delay_secs(30));
    let oldest = || total(fixture, "default").oldest_ready_at;
    assert_eq!(oldest(), None);
    let due_at = fixture.now().saturating_add(Duration::from_secs(30));
    fixture.pass_secs(90);
    assert_eq!(oldest(), Some(due_at));
}

fn a_removed_queue_takes_its_history_along(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue(job("a").queue("mail"));
    run(fixture, &worker, 1, Outcome::Success);
    fixture.store.sample_depth().expect("a sample");
    fixture.remove("a");
    let removed = fixture.store.remove_queue(&queue_name("mail"), ACTOR).expect("an answer");
    assert_eq!(removed, QueueRemoval::Removed);
    fixture.enqueue(job("b").queue("mail"));
    let mail = total(fixture, "mail");
    assert_eq!((mail.activity, mail.enqueued), (Activity::default(), 1));
}

/// Each with the number of minutes since it began.
fn points(fixture: &Fixture, seconds: u64, queue: Option<&str>) -> Vec<(u64, Point)> {
    let queue = queue.map(queue_name);
    let timeline = fixture.store.history(Duration::from_secs(seconds), queue.as_ref()).expect("a history");
    let now = fixture.now();
    let timeline = timeline.expect("the queue exists");
    timeline.points().map(|(at, point)| (now.since(at).as_secs() / MINUTE, *point)).collect()
}

fn a_history_has_what_happened_when_it_happened(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue("first");
    fixture.store.sample_depth().expect("a sample");
    fixture.enqueue_all([job("b").queue("mail"), job("c"), job("d").delay_secs(9_000)]);
    run(fixture, &worker, 60, Outcome::Success);
    fixture.pass_secs(MINUTE);
    fixture.store.sample_depth().expect("a sample");
    run(fixture, &worker, 60, FAILURE);
    fixture.pass_secs(10 * MINUTE);
    let all = points(fixture, HOUR, None);
    let [(11, first), (10, second)] = all[..] else { panic!("two minutes have points: {all:?}") };
    assert_eq!((first.enqueued, first.activity.started), (4, 1));
    assert_eq!(first.depth.map(|depth| depth.pending), Some(1));
    assert_eq!((second.enqueued, second.activity.failed()), (0, 1));
    assert_eq!(second.depth.map(|depth| (depth.pending, depth.processing)), Some((3, 0)));
    let mail = points(fixture, HOUR, Some("mail"));
    assert_eq!(mail.iter().map(|(_, point)| point.enqueued).sum::<u64>(), 1);
    let unknown = queue_name("x");
    assert_eq!(fixture.store.history(Duration::from_secs(HOUR), Some(&unknown)).expect("no history"), None);
}

/// Whatever the range, the points have everything that happened in it.
fn a_history_keeps_its_sums_when_it_is_folded(fixture: &Fixture) {
    let worker = fixture.worker("w");
    for at in 0..60 {
        fixture.enqueue(job(&format!("j{at}")).max_retries(0));
        run(fixture, &worker, 60, if at % 3 == 0 { FAILURE } else { Outcome::Success });
        fixture.pass_secs(MINUTE);
        fixture.store.sample_depth().expect("a sample");
        fixture.pass_secs(3 * HOUR - MINUTE);
        fold(fixture);
    }
    let activity = total(fixture, "default").activity;
    for days in [8, 30, 90] {
        let points = points(fixture, days * DAY, None);
        assert!(points.len() <= 300);
        let mut sum = Activity::default();
        for (_, point) in &points {
            sum.add(&point.activity);
        }
        assert_eq!(sum, activity, "{days} days");
        assert_eq!(points.iter().map(|(_, point)| point.enqueued).sum::<u64>(), 60, "{days} days");
    }
    let day: u64 = points(fixture, DAY, None).iter().map(|(_, point)| point.activity.started).sum();
    assert_eq!(day, 8);
}

fn a_history_has_no_points_while_no_worker_ran(fixture: &Fixture) {
    fixture.store.sample_depth().expect("a sample");
    fixture.pass_secs(31 * MINUTE);
    assert_eq!(points(fixture, HOUR, None), [], "a store without queues has no samples");
    fixture.enqueue("a");
    fixture.pass_secs(MINUTE);
    fixture.store.sample_depth().expect("a sample");
    fixture.pass_secs(20 * MINUTE);
    fixture.enqueue_all((0..10).map(|at| job(&format!("j{at}"))));
    let points = points(fixture, HOUR, None);
    assert_eq!(points.iter().map(|(_, point)| point.enqueued).sum::<u64>(), 11);
    assert_eq!(points.iter().filter(|(_, point)| point.depth.is_some()).count(), 1, "{points:?}");
}

/// Everything that a process remembers parts of: the totals, and histories.
fn remembered(store: &dyn Store) -> (Vec<QueueMetrics>, Vec<Timeline>) {
    let history = |seconds, queue: Option<&QueueName>| {
        let timeline = store.history(Duration::from_secs(seconds), queue).expect("a history");
        timeline.expect("the queue exists")
    };
    let ranges = [2 * MINUTE, 15 * MINUTE, HOUR, 6 * HOUR, 7 * DAY, 90 * DAY];
    let mail = queue_name("mail");
    let histories = ranges.into_iter().flat_map(|range| [history(range, None), history(range, Some(&mail))]);
    (store.total_metrics().expect("the totals"), histories.collect())
}

/// Removes the queue with its jobs, and makes it again.
fn replace_queue(fixture: &Fixture, worker: &WorkerId) {
    let name = queue_name("mail");
    for id in fixture.list_by(&JobFilter { queue: Some(name.clone()), ..JobFilter::default() }, 100) {
        fixture.remove(&id);
    }
    assert_eq!(fixture.store.remove_queue(&name, ACTOR).expect("an answer"), QueueRemoval::Removed);
    fixture.enqueue(job("again").queue("mail"));
    run(fixture, worker, 5, Outcome::Success);
    fixture.remove("again");
}

/// While minutes end, rows get coarser, a queue is removed and made again, and the clock is set.
fn a_process_that_remembers_the_past_answers_like_a_new_one(fixture: &Fixture) {
    let worker = fixture.worker("w");
    let steps = [7, 50, 3 * MINUTE, 9 * MINUTE, 4 * MINUTE, 11 * MINUTE, 5 * HOUR, 20, 26 * HOUR, 2 * MINUTE];
    let mut folded_at = None;
    for (round, pause) in steps.into_iter().cycle().take(40).enumerate() {
        let mail = format!("mail-{round}");
        fixture.enqueue_all([
            job(&format!("j-{round}")).max_retries(0),
            job(&mail).queue("mail").max_retries(0),
        ]);
        // Some jobs stay out of the samples for a while.
        if round % 3 != 1 {
            fixture.store.sample_depth().expect("a sample");
        }
        for outcome in [Outcome::Success, FAILURE] {
            run(fixture, &worker, 50 * round as u64, outcome);
        }
        match round % 8 {
            3 => {
                fold(fixture);
                folded_at = Some(fixture.now());
            }
            5 => replace_queue(fixture, &worker),
            6 => fixture.clock.jump(-30 * 60_000),
            7 => fixture.clock.jump(30 * 60_000),
            _ => {}
        }
        let (totals, histories) = remembered(fixture.store.as_ref());
        let (new_totals, new_histories) = remembered(fixture.new_connection().as_ref());
        assert_eq!(totals, new_totals, "round {round}");
        // Until it is read again, a history has the times of before a fold, which are finer.
        if folded_at.is_none_or(|at| fixture.now().since(at) > Duration::from_secs(15 * MINUTE)) {
            assert!(histories == new_histories, "round {round}");
        }
        fixture.pass_secs(pause);
    }
}

fn a_clock_that_was_days_ahead_hides_no_totals(fixture: &Fixture) {
    let worker = fixture.worker("w");
    for at in 0..3 {
        fixture.enqueue(job(&format!("j{at}")));
        run(fixture, &worker, 20, Outcome::Success);
        fixture.pass_secs(2 * DAY);
        fold(fixture);
    }
    fixture.clock.jump(-5 * DAY_MILLIS);
    assert_eq!(total(fixture, "default").activity.outcomes, recounted(fixture, "default").outcomes);
}

/// Minutes that run twice are in the totals twice, also for a process that read them before.
fn a_clock_that_was_set_back_is_noticed_later_too(fixture: &Fixture) {
    let worker = fixture.worker("w");
    let started = || total(fixture, "default").activity.started;
    fixture.pass_secs(HOUR);
    assert_eq!(fixture.store.total_metrics().expect("the totals"), []);
    fixture.enqueue("first");
    run(fixture, &worker, 1, Outcome::Success);
    fixture.pass_secs(10 * MINUTE);
    assert_eq!(started(), 1);
    fixture.clock.jump(-30 * 60_000);
    fixture.enqueue("second");
    run(fixture, &worker, 1, Outcome::Success);
    fixture.pass_secs(31 * MINUTE);
    assert_eq!(started(), 2);
}
