//! Every reason, and the estimate that follows from it.

use crate::explain::*;
use crate::job::LatestAttempt;
use crate::job::life::{CancelReason, DeadReason, Lease, Life, Losses};
use crate::job::options::JobOptions;
use crate::queue::rate::Rate;
use crate::values::name::QueueName;

const NOW: Timestamp = Timestamp::from_millis(1_000_000);

fn later(seconds: u64) -> Timestamp {
    NOW.saturating_add(Duration::from_secs(seconds))
}

/// A job that is ready, and a worker with free slots.
fn facts() -> Facts {
    let life = Life {
        state: State::Pending { blocked_by: 0 },
        run_at: None,
        due_at: NOW,
        attempts: 1,
        max_retries: 3,
        failures: 0,
        losses: Losses::default(),
    };
    let job = Job {
        id: "a".parse().expect("valid id"),
        number: 1,
        queue: "q".parse().expect("valid queue name"),
        command: "true".to_owned(),
        priority: 0,
        life,
        created_at: NOW,
        updated_at: NOW,
        timeout: None,
        cwd: None,
        tags: Vec::new(),
        depends_on: Vec::new(),
        unique_key: None,
        batch: None,
        options: JobOptions::default(),
        latest: LatestAttempt::default(),
    };
    Facts {
        job,
        now: NOW,
        waits_for: Vec::new(),
        queue: QueueFacts::default(),
        ahead: Count { least: 0, is_exact: true },
        ahead_in_queue: Count { least: 0, is_exact: true },
        durations: None,
        workers: WorkerFacts { all: 1, draining: 0, serving: 1, slots: 2, busy: 0 },
        unkillable: Vec::new(),
        busy_slots: Vec::new(),
        failed_dependency: None,
        overtaken_since: None,
    }
}

fn with(change: impl FnOnce(&mut Facts)) -> Facts {
    let mut facts = facts();
    change(&mut facts);
    facts
}

fn pause(reason: Option<&str>) -> Pause {
    Pause { by: "ada".to_owned(), reason: reason.map(str::to_owned) }
}

/// A rate limit whose tokens have just been used up.
fn used_up(rate: &str) -> Meter {
    let rate: Rate = rate.parse().expect("valid rate");
    Meter { rate, bucket: rate.full(NOW).take(rate, NOW, rate.count()) }
}

fn codes(facts: &Facts) -> Vec<&'static str> {
    explain(facts, &TimeFormat::Full).reasons.iter().map(|reason| reason.code.name()).collect()
}

#[test]
fn each_reason_is_reported_alone_and_together_with_others() {
    let running = Lease::new("w".parse().expect("valid name"), NOW, NOW);
    let lease = Lease { cancel_requested: Some(CancelReason::User), ..running };
    let cases: Vec<(&[&str], Facts)> = vec![
        (&["ready"], facts()),
        (&["scheduled"], with(|facts| facts.job.life.run_at = Some(later(9)))),
        (&["blocked"], with(|facts| facts.job.life.state = State::Pending { blocked_by: 2 })),
        (
            &["backoff"],
            with(|facts| {
                facts.job.life.state = State::Failed;
                facts.job.life.due_at = later(4);
            }),
        ),
        (&["ready"], with(|facts| facts.job.life.state = State::Failed)),
        (&["queue_paused"], with(|facts| facts.queue.paused = Some((NOW, pause(None))))),
        (
            &["queue_full"],
            with(|facts| {
                (facts.queue.concurrency, facts.queue.running) = (Some(2), 2);
            }),
        ),
        (&["rate"], with(|facts| facts.queue.meter = Some(used_up("1/3s")))),
        (
            &["rate", "behind"],
            with(|facts| {
                facts.queue.meter = Some(used_up("1/3s"));
                facts.ahead_in_queue.least = 2;
            }),
        ),
        (&["no_worker"], with(|facts| facts.workers = WorkerFacts::default())),
        (&["queue_not_served"], with(|facts| facts.workers.serving = 0)),
        (&["slots_busy"], with(|facts| facts.workers.busy = 2)),
        (&["behind"], with(|facts| facts.ahead.least = 3)),
        (
            &["behind", "starved"],
            with(|facts| {
                facts.ahead.least = 3;
                facts.overtaken_since = Some(NOW.saturating_sub(STARVED_AFTER));
            }),
        ),
        (
            &["ready"],
            with(|facts| {
                let waited = STARVED_AFTER.checked_sub(Duration::from_millis(1)).expect("it is longer");
                facts.overtaken_since = Some(NOW.saturating_sub(waited));
            }),
        ),
        (
            &["blocked", "scheduled", "queue_paused", "no_worker"],
            with(|facts| {
                facts.job.life.state = State::Pending { blocked_by: 1 };
                facts.job.life.run_at = Some(later(9));
                facts.queue.paused = Some((NOW, pause(Some("upgrade"))));
                facts.workers = WorkerFacts::default();
            }),
        ),
        (&["running", "cancelling"], with(|facts| facts.job.life.state = State::Processing(lease))),
        (
            &["finished"],
            with(|facts| {
                let reason = CancelReason::User;
                facts.job.life.state = State::Cancelled { finished_at: NOW, reason };
            }),
        ),
    ];
    for (expected, facts) in cases {
        assert_eq!(codes(&facts), expected, "{:?}", facts.job.life.state);
    }
}

#[test]
fn messages_name_jobs_people_and_causes() {
    let message = |facts: &Facts| explain(facts, &TimeFormat::Full).reasons[0].message.clone();
    let blocked = with(|facts| {
        facts.job.life.state = State::Pending { blocked_by: 5 };
        facts.waits_for = vec![("b".parse().expect("valid id"), StateName::Failed)];
    });
    assert_eq!(message(&blocked), "it waits for 5 other jobs: b (failed), and 4 more");
    let paused = with(|facts| facts.queue.paused = Some((NOW, pause(Some("upgrade")))));
    assert!(
        message(&paused).contains("paused by ada") && message(&paused).contains("(upgrade)"),
        "{}",
        message(&paused)
    );
    let failed = FailedDependency {
        id: "b".parse().expect("valid id"),
        handle: "b".to_owned(),
        state: StateName::Dead,
        why: Some("exit code 3: boom".to_owned()),
    };
    let cancelled = with(|facts| {
        facts.job.life.state = State::Cancelled { finished_at: NOW, reason: CancelReason::Dependency };
        facts.failed_dependency = Some(failed);
    });
    let expected = " because b is dead (exit code 3: boom); `queuectl retry --with-dependents b` runs it and its dependents again";
    assert!(message(&cancelled).ends_with(expected), "{}", message(&cancelled));
    assert_eq!(explain(&cancelled, &TimeFormat::Full).reasons[0].jobs.len(), 1);
    let dead = with(|facts| {
        facts.job.life.state = State::Dead { finished_at: NOW, reason: DeadReason::CrashLimit };
    });
    assert!(message(&dead).contains("(crash limit)"), "{}", message(&dead));
}

#[test]
fn the_estimate_adds_up_known_waits_and_is_unknown_otherwise() {
    let durations = Some(Durations { attempts: 7, average: Duration::from_secs(10) });
    let start = |facts: &Facts| {
        let explanation = explain(facts, &TimeFormat::Full);
        (explanation.probable_start, explanation.estimated_from)
    };
    assert_eq!(start(&facts()), (Some(NOW), None));
    assert_eq!(start(&with(|facts| facts.job.life.run_at = Some(later(9)))), (Some(later(9)), None));
    assert_eq!(start(&with(|facts| facts.workers = WorkerFacts::default())), (None, None));
    assert_eq!(start(&with(|facts| facts.workers.busy = 2)), (None, None), "the duration of jobs is unknown");
    let queued = with(|facts| {
        (facts.ahead.least, facts.durations, facts.workers.busy) = (6, durations, 2);
    });
    assert_eq!(start(&queued), (Some(later(35)), Some(7)), "half a job, then three in each of two slots");
    let uncounted = with(|facts| {
        (facts.ahead, facts.durations) = (Count { least: 1_000, is_exact: false }, durations);
    });
    assert_eq!(start(&uncounted), (None, None));
    let one_at_a_time = with(|facts| {
        (facts.ahead.least, facts.durations) = (2, durations);
        (facts.queue.concurrency, facts.queue.running) = (Some(1), 1);
    });
    assert_eq!(start(&one_at_a_time), (Some(later(25)), Some(7)));
}

#[test]
fn a_job_that_runs_longer_than_usual_is_expected_to_run_as_long_again() {
    let average = Duration::from_secs(10);
    let busy_for = |seconds: &[u64]| {
        let facts = with(|facts| {
            (facts.durations, facts.workers.busy) = (Some(Durations { attempts: 7, average }), 2);
            facts.busy_slots = seconds
                .iter()
                .map(|seconds| BusySlot {
                    id: "other".parse().expect("an id"),
                    handle: "other".to_owned(),
                    queue: QueueName::default_queue(),
                    since: NOW.saturating_sub(Duration::from_secs(*seconds)),
                    is_paused: false,
                })
                .collect();
        });
        let explanation = explain(&facts, &TimeFormat::Full);
        (explanation.probable_start, explanation.is_overdue)
    };
    assert_eq!(busy_for(&[4, 3]), (Some(later(6)), false));
    assert_eq!(busy_for(&[30, 20]), (Some(later(20)), false));
    assert_eq!(busy_for(&[500, 3]), (Some(later(7)), false));
    assert_eq!(busy_for(&[500, 420]), (None, true), "the average says nothing about such jobs");
}

#[test]
fn the_estimate_is_the_later_of_history_and_rate_limit() {
    let ten_seconds = Some(Durations { attempts: 7, average: Duration::from_secs(10) });
    for (why, rate, ahead, busy, durations, expected) in [
        ("no job is ahead", "1/m", 0, 0, ten_seconds, (Some(later(60)), None)),
        ("the rate is slower than the jobs", "1/m", 3, 0, ten_seconds, (Some(later(240)), Some(7))),
        ("the jobs are slower than the rate", "10/s", 6, 2, ten_seconds, (Some(later(35)), Some(7))),
        ("no job has ever run, but a slot is free", "1/m", 3, 0, None, (Some(later(240)), None)),
        ("no job has ever run, and no slot is free", "1/m", 3, 2, None, (None, None)),
    ] {
        let facts = with(|facts| {
            (facts.queue.meter, facts.durations, facts.workers.busy) = (Some(used_up(rate)), durations, busy);
            (facts.ahead.least, facts.ahead_in_queue.least) = (ahead, ahead);
        });
        let explanation = explain(&facts, &TimeFormat::Full);
        assert_eq!((explanation.probable_start, explanation.estimated_from), expected, "{why}");
    }
}
