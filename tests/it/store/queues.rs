//! Queues: pausing them, their limits, and counting their jobs.

use std::collections::BTreeMap;

use domain::job::life::StateName;
use domain::job::limits::Limits;
use domain::job::outcome::Outcome;
use domain::job::retry_rules::RetryRules;
use domain::settings::SettingKey;
use store::{Pause, Queue, QueueRemoval, QueueUpdate, Update};

use super::fixture::new_job::{job, queue_name};
use super::fixture::{ACTOR, FAILURE, Fixture, every_store};

every_store!(
    a_pause_records_time_user_and_reason,
    pausing_creates_a_queue,
    a_pause_prevents_claims_and_nothing_else,
    every_state_is_counted,
    limits_are_set_and_cleared_one_by_one,
    resource_limits_and_retry_rules_of_a_queue_are_stored_and_cleared,
    limits_of_the_job_override_those_of_the_queue_and_the_settings,
    retry_rules_of_a_queue_apply_to_jobs_without_their_own,
    only_a_queue_without_jobs_is_removed,
    a_pause_is_found_by_the_name_of_its_queue,
);

fn queue(fixture: &Fixture, name: &str) -> Queue {
    let queues = fixture.store.queues().expect("queues");
    let found = queues.into_iter().find(|queue| queue.name == queue_name(name));
    found.unwrap_or_else(|| panic!("there is no queue {name}"))
}

fn a_pause_records_time_user_and_reason(fixture: &Fixture) {
    fixture.enqueue_all([job("a").queue("q"), job("b").queue("other")]);
    let pause = Pause { by: "alice".to_owned(), reason: Some("the disk is full".to_owned()) };
    fixture.store.pause_queue(&queue_name("q"), &pause).expect("pause");
    assert_eq!(queue(fixture, "q").paused, Some((fixture.now(), pause)));
    assert_eq!(queue(fixture, "other").paused, None);

    fixture.pass_secs(1);
    let again = Pause { by: "bob".to_owned(), reason: None };
    fixture.store.pause_queue(&queue_name("q"), &again).expect("pause");
    assert_eq!(queue(fixture, "q").paused, Some((fixture.now(), again)));
    for _ in 0..2 {
        fixture.resume("q");
        assert_eq!(queue(fixture, "q").paused, None);
    }
}

fn pausing_creates_a_queue(fixture: &Fixture) {
    fixture.pause("early");
    fixture.resume("open");
    let early = queue(fixture, "early");
    assert!(early.paused.is_some());
    assert_eq!(early.counts, BTreeMap::new());
    let worker = fixture.worker("w");
    fixture.enqueue_all([job("a").queue("early"), job("b").queue("open")]);
    assert_eq!(fixture.claim(&worker, 9), ["b"], "the queue is paused before its first job");
}

fn a_pause_prevents_claims_and_nothing_else(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue_all([job("a"), job("b"), job("c")]);
    let leases = fixture.leases(&worker, 2);
    fixture.pause("default");
    assert!(fixture.settle(&worker, &leases[0], Outcome::Success), "a running job finishes");
    fixture.settle(&worker, &leases[1], FAILURE);
    fixture.enqueue("d");
    fixture.cancel("c");
    fixture.retry("b");
    assert_eq!(fixture.claim(&worker, 9), [""; 0]);
    fixture.resume("default");
    assert_eq!(fixture.claim(&worker, 9), ["b", "d"]);
}

fn every_state_is_counted(fixture: &Fixture) {
    let worker = fixture.worker("w");
    for (id, outcome, retries) in [
        ("completed", Some(Outcome::Success), 3),
        ("cancelled", Some(Outcome::Cancelled), 3),
        ("failed", Some(FAILURE), 3),
        ("dead", Some(FAILURE), 0),
        ("processing", None, 3),
    ] {
        fixture.enqueue(job(id).queue("q").max_retries(retries));
        match outcome {
            Some(outcome) => drop(fixture.run(&worker, outcome)),
            None => drop(fixture.lease(&worker)),
        }
    }
    fixture.enqueue(job("pending").queue("q"));
    fixture.enqueue(job("elsewhere").queue("p"));
    let each_once: BTreeMap<StateName, u64> = StateName::ALL.map(|state| (state, 1)).into();
    assert_eq!(queue(fixture, "q").counts, each_once);
    assert_eq!(
        queue(fixture, "p").counts,
        BTreeMap::from([(StateName::Pending, 1)]),
        "states without a job are left out"
    );
    fixture.remove("pending");
    assert_eq!(queue(fixture, "q").counts.get(&StateName::Pending), None);
}

fn set(fixture: &Fixture, update: &QueueUpdate) -> Queue {
    fixture.store.set_queue(&queue_name("q"), update, ACTOR).expect("the queue is updated");
    queue(fixture, "q")
}

fn limits_are_set_and_cleared_one_by_one(fixture: &Fixture) {
    let rate = "10/m".parse().expect("a rate");
    let limited = set(fixture, &QueueUpdate { concurrency: Update::Set(2), ..QueueUpdate::default() });
    assert_eq!((limited.concurrency, limited.rate), (Some(2), None), "a new queue");
    let limited = set(fixture, &QueueUpdate { rate: Update::Set(rate), ..QueueUpdate::default() });
    assert_eq!((limited.concurrency, limited.rate), (Some(2), Some(rate)), "the other value is kept");
    assert_eq!((limited.is_full(), limited.next_start_at), (false, None), "no job has started yet");
    let limited = set(fixture, &QueueUpdate { concurrency: Update::Clear, ..QueueUpdate::default() });
    assert_eq!((limited.concurrency, limited.rate), (None, Some(rate)));
    let limited = set(fixture, &QueueUpdate { rate: Update::Clear, ..QueueUpdate::default() });
    assert_eq!((limited.concurrency, limited.rate), (None, None));
}

fn resource_limits_and_retry_rules_of_a_queue_are_stored_and_cleared(fixture: &Fixture) {
    let limits: Limits = "memory=1G,cpu=0.5,nice=-5".parse().expect("limits");
    fixture.set_queue("q", "memory=1G,cpu=0.5,nice=-5", "1,75", "2");
    let stored = queue(fixture, "q");
    assert_eq!(stored.limits, limits);
    assert_eq!(stored.retry, RetryRules { retry_on: "1,75".parse().ok(), no_retry_on: "2".parse().ok() });
    let stored = set(fixture, &QueueUpdate { retry_on: Update::Clear, ..QueueUpdate::default() });
    assert_eq!((stored.limits, stored.retry.retry_on), (limits, None));
    assert!(stored.retry.no_retry_on.is_some(), "the other value is kept");
    let cleared = QueueUpdate { limits: Update::Clear, no_retry_on: Update::Clear, ..QueueUpdate::default() };
    let stored = set(fixture, &cleared);
    assert!(stored.limits.is_none() && stored.retry.is_none());
    let nothing = QueueUpdate { limits: Update::Set(Limits::default()), ..QueueUpdate::default() };
    assert!(set(fixture, &nothing).limits.is_none());
}

fn limits_of_the_job_override_those_of_the_queue_and_the_settings(fixture: &Fixture) {
    let worker = fixture.worker("w");
    let claimed = || {
        let claims = fixture.exchange(&worker, &[], 9).claimed;
        claims.iter().map(|claim| claim.limits.to_string()).collect::<Vec<_>>()
    };
    let jobs = |name: &str| {
        let id = |what: &str| format!("{name}-{what}");
        fixture.enqueue_all([
            job(&id("plain")),
            job(&id("own")).limits("pids=7,nice=1"),
            job(&id("queue")).queue("q"),
            job(&id("both")).queue("q").limits("pids=7"),
        ]);
    };
    jobs("none");
    assert_eq!(claimed(), ["none", "pids=7,nice=1", "none", "pids=7"]);
    fixture.set_queue("q", "memory=1G,pids=100", "1", "2");
    fixture.set(SettingKey::Limits, "nice=5,open_files=64");
    jobs("some");
    assert_eq!(
        claimed(),
        [
            "nice=5,open_files=64",
            "pids=7,nice=1,open_files=64",
            "memory=1G,pids=100,nice=5,open_files=64",
            "memory=1G,pids=7,nice=5,open_files=64",
        ]
    );
}

fn retry_rules_of_a_queue_apply_to_jobs_without_their_own(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.set_queue("q", "nice=1", "75", "2");
    fixture.enqueue_all([
        job("queue").queue("q"),
        job("own").queue("q").no_retry_on("3"),
        job("elsewhere"),
        job("again").queue("q"),
    ]);
    for exit_code in [1, 1, 1, 75] {
        fixture.run(&worker, Outcome::Failure { exit_code });
    }
    let states = ["queue", "own", "elsewhere", "again"].map(|id| fixture.state(id));
    assert_eq!(states, [StateName::Dead, StateName::Failed, StateName::Failed, StateName::Failed]);
}

fn only_a_queue_without_jobs_is_removed(fixture: &Fixture) {
    let remove = |name| fixture.store.remove_queue(&queue_name(name), ACTOR).expect("remove");
    assert_eq!(remove("q"), QueueRemoval::Missing);
    fixture.enqueue_all([job("a").queue("q"), job("b").queue("q"), job("c").queue("other")]);
    let worker = fixture.worker("w");
    fixture.claim(&worker, 1);
    assert_eq!(remove("q"), QueueRemoval::InUse { jobs: 2 });
    fixture.pause("early");
    assert_eq!(remove("early"), QueueRemoval::Removed);
    assert_eq!(remove("early"), QueueRemoval::Missing);
    let names: Vec<String> =
        fixture.store.queues().expect("queues").iter().map(|queue| queue.name.to_string()).collect();
    assert_eq!(names, ["other", "q"]);
    fixture.enqueue_all([job("d").queue("early")]);
    assert!(queue(fixture, "early").paused.is_none(), "it is a new queue");
}

fn a_pause_is_found_by_the_name_of_its_queue(fixture: &Fixture) {
    let pause_of = |name| fixture.store.pause_of(&queue_name(name)).expect("a pause");
    assert_eq!(pause_of("q"), None);
    fixture.pause("q");
    assert!(pause_of("q").is_some());
    assert_eq!(pause_of("other"), None);
    fixture.resume("q");
    assert_eq!(pause_of("q"), None);
}
