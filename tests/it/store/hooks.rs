//! Hooks: which events they receive, which worker delivers them, and what happens to failed deliveries.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use domain::hook::{HookEvent, Secret, Target, Trigger};
use domain::job::environment::Environment;
use domain::job::outcome::Outcome;
use domain::values::name::{HookName, WorkerId};
use serde_json::{Value, json};
use store::{
    Delivery, DeliveryExchangeResult, DeliveryReport, DeliveryResult, DeliveryRetry, Hook, NewHook,
    ServedJobs,
};

use super::fixture::new_job::{job, job_id, queue_name};
use super::fixture::{ACTOR, FAILURE, Fixture, every_store};

every_store!(
    every_field_of_a_hook_is_stored,
    a_hook_name_is_unique,
    each_transition_of_a_job_is_delivered_to_the_hooks_for_it,
    a_hook_can_be_restricted_to_a_queue,
    cancelled_and_released_attempts_fire_no_hook,
    a_dlq_hook_fires_once_until_the_threshold_is_crossed_again,
    many_jobs_that_die_in_one_exchange_fire_a_dlq_hook_once,
    a_crashed_worker_is_reported_once_with_its_jobs,
    each_hook_has_one_delivery_in_flight,
    a_failed_delivery_is_retried_with_backoff,
    a_waiting_delivery_is_tried_now_on_request,
    all_waiting_deliveries_of_a_hook_are_tried_now_on_request,
    events_before_a_hook_was_added_are_not_delivered,
    a_failing_hook_does_not_delay_other_deliveries,
    a_delivery_is_given_up_after_a_day_and_counted,
    a_hook_that_always_fails_does_not_accumulate_deliveries,
    a_delivery_of_a_dead_worker_is_due_immediately_the_first_time,
    a_worker_for_one_job_without_leases_is_not_reported_as_crashed,
    a_delivery_of_a_stopped_worker_is_due_immediately,
    a_delivery_that_takes_too_long_is_taken_by_another_worker,
    a_late_success_report_counts_and_a_late_failure_report_does_not,
    a_late_report_does_not_apply_to_another_delivery,
    a_removed_hook_has_no_deliveries,
    delivery_names_are_never_reused,
    the_last_results_and_the_waiting_deliveries_are_shown,
);

pub fn hook_name(name: &str) -> HookName {
    name.parse().expect("a name")
}

fn command(line: &str) -> Target {
    Target::Command { line: line.to_owned(), cwd: Some("/tmp".to_owned()), environment: None }
}

pub fn new_hook(name: &str, event: HookEvent, queue: Option<&str>, threshold: Option<u64>) -> NewHook {
    let trigger = Trigger::new(event, queue.map(queue_name), threshold).expect("the options are compatible");
    NewHook { name: hook_name(name), trigger, target: command("true") }
}

fn add(fixture: &Fixture, name: &str, event: HookEvent) {
    add_hook(fixture, &new_hook(name, event, None, None));
}

fn add_hook(fixture: &Fixture, hook: &NewHook) {
    assert!(fixture.store.add_hook(hook, ACTOR).expect("the hook is stored"), "the name is free");
}

fn hook(fixture: &Fixture, name: &str) -> Hook {
    let hooks = fixture.store.hooks().expect("hooks");
    hooks.into_iter().find(|hook| hook.name.as_str() == name).expect("the hook exists")
}

fn exchange_deliveries(
    fixture: &Fixture,
    worker: &WorkerId,
    reports: &[DeliveryReport],
    want: usize,
) -> DeliveryExchangeResult {
    fixture.store.exchange_deliveries(worker, reports, want).expect("post")
}

fn take(fixture: &Fixture, worker: &WorkerId, want: usize) -> Vec<Delivery> {
    exchange_deliveries(fixture, worker, &[], want).taken
}

fn report(delivery: &Delivery, result: DeliveryResult) -> DeliveryReport {
    DeliveryReport { number: delivery.number, hook: delivery.hook.clone(), result }
}

fn failed() -> DeliveryResult {
    DeliveryResult::Failed("connection refused".to_owned())
}

/// Delivers everything that is due, and returns it as hook and event.
fn deliver_all(fixture: &Fixture, worker: &WorkerId) -> Vec<(String, Value)> {
    let mut delivered = Vec::new();
    let mut reports = Vec::new();
    loop {
        let taken = exchange_deliveries(fixture, worker, &reports, 10).taken;
        if taken.is_empty() {
            return delivered;
        }
        reports = taken.iter().map(|delivery| report(delivery, DeliveryResult::Delivered)).collect();
        for delivery in taken {
            let event: Value = serde_json::from_str(&delivery.payload).expect("JSON");
            assert_eq!(event["delivery"], delivery.name, "the event names its delivery");
            let name = event["event"].as_str().expect("a name");
            assert!(delivery.trigger.events.contains(name.parse().expect("an event")), "{name}");
            delivered.push((delivery.hook.to_string(), event));
        }
    }
}

fn every_field_of_a_hook_is_stored(fixture: &Fixture) {
    let environment = Some(Arc::new(Environment::from_bytes(b"A=1\0")));
    let secret = Some(Secret::new("top secret".to_owned()).expect("a secret"));
    let url = "https://example.org/x".parse().expect("an address");
    let targets =
        [Target::Command { line: "cat".to_owned(), cwd: None, environment }, Target::Url { url, secret }];
    for (at, target) in targets.into_iter().enumerate() {
        let new =
            NewHook { target, ..new_hook(&format!("h{at}"), HookEvent::DlqAbove, Some("mail"), Some(7)) };
        add_hook(fixture, &new);
        let kept = hook(fixture, new.name.as_str());
        assert_eq!((kept.trigger, kept.target), (new.trigger, new.target));
        assert_eq!((kept.created_at, kept.created_by.as_str()), (fixture.now(), ACTOR));
        assert_eq!((kept.pending, kept.gave_up, kept.error), (0, 0, None));
    }
    assert!(fixture.store.queues().expect("queues").iter().any(|queue| queue.name == queue_name("mail")));
}

fn a_hook_name_is_unique(fixture: &Fixture) {
    add(fixture, "h", HookEvent::Dead);
    let again = new_hook("h", HookEvent::Success, None, None);
    assert!(!fixture.store.add_hook(&again, ACTOR).expect("add"));
    assert_eq!(hook(fixture, "h").trigger.events, HookEvent::Dead.into(), "the first hook is unchanged");
    assert!(fixture.store.remove_hook(&hook_name("h"), ACTOR).expect("remove"));
    assert!(!fixture.store.remove_hook(&hook_name("h"), ACTOR).expect("remove"));
}

fn each_transition_of_a_job_is_delivered_to_the_hooks_for_it(fixture: &Fixture) {
    add(fixture, "ok", HookEvent::Success);
    add(fixture, "bad", HookEvent::Failure);
    add(fixture, "worst", HookEvent::Dead);
    add(fixture, "worst-too", HookEvent::Dead);
    let worker = fixture.worker("w");
    fixture.enqueue(job("good"));
    fixture.run(&worker, Outcome::Success);
    fixture.enqueue(job("poor").max_retries(1));
    fixture.run(&worker, FAILURE);
    fixture.pass_secs(10);
    fixture.run(&worker, FAILURE);
    let delivered = deliver_all(fixture, &worker);
    let mut short: Vec<(&str, &Value, &Value)> = delivered
        .iter()
        .map(|(hook, event)| (hook.as_str(), &event["job"]["id"], &event["job"]["state"]))
        .collect();
    short.sort_by_key(|(hook, ..)| *hook);
    let (good, poor) = (json!("good"), json!("poor"));
    let (completed, again, dead) = (json!("completed"), json!("failed"), json!("dead"));
    assert_eq!(
        short,
        [
            ("bad", &poor, &again),
            ("ok", &good, &completed),
            ("worst", &poor, &dead),
            ("worst-too", &poor, &dead)
        ]
    );
    let (_, last) = delivered.iter().find(|(hook, _)| hook == "worst").expect("the hook received the event");
    assert_eq!(last["job"]["reason"], "retries_exhausted");
    assert_eq!(last["at"], last["job"]["finished_at"], "the time of the event");
}

fn a_hook_can_be_restricted_to_a_queue(fixture: &Fixture) {
    add_hook(fixture, &new_hook("mail", HookEvent::Success, Some("mail"), None));
    let worker = fixture.worker("w");
    fixture.enqueue_all([job("a"), job("b").queue("mail")]);
    fixture.run(&worker, Outcome::Success);
    fixture.run(&worker, Outcome::Success);
    let delivered = deliver_all(fixture, &worker);
    assert_eq!(delivered.len(), 1);
    assert_eq!(delivered[0].1["job"]["id"], "b");
}

fn cancelled_and_released_attempts_fire_no_hook(fixture: &Fixture) {
    for event in [HookEvent::Success, HookEvent::Failure, HookEvent::Dead] {
        add(fixture, event.name(), event);
    }
    let worker = fixture.worker("w");
    fixture.enqueue_all(["a", "b", "c"].map(job));
    fixture.cancel("a");
    fixture.run(&worker, Outcome::Released);
    fixture.run(&worker, Outcome::Cancelled);
    assert_eq!(deliver_all(fixture, &worker), []);
    assert_eq!(fixture.orders(&worker).next_delivery, None);
}

fn a_dlq_hook_fires_once_until_the_threshold_is_crossed_again(fixture: &Fixture) {
    add_hook(fixture, &new_hook("all", HookEvent::DlqAbove, None, Some(1)));
    add_hook(fixture, &new_hook("mail", HookEvent::DlqAbove, Some("mail"), Some(0)));
    let worker = fixture.worker("w");
    let counts = |kill: &str| {
        fixture.enqueue(job(kill).max_retries(0));
        fixture.run(&worker, FAILURE);
        deliver_all(fixture, &worker)
            .into_iter()
            .map(|(hook, event)| (hook, event["dlq"].clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(counts("a"), [], "the count equals the threshold");
    let above = |count: u64| ("all".to_owned(), json!({"count": count, "threshold": 1, "queue": null}));
    assert_eq!(counts("b"), [above(2)]);
    assert_eq!(counts("c"), [], "the count was already above");
    fixture.remove("a");
    fixture.retry("b");
    assert_eq!(fixture.run(&worker, Outcome::Success), "b");
    assert_eq!(counts("d"), [above(2)], "the count had fallen back to the threshold");
}

fn many_jobs_that_die_in_one_exchange_fire_a_dlq_hook_once(fixture: &Fixture) {
    add_hook(fixture, &new_hook("all", HookEvent::DlqAbove, None, Some(2)));
    let worker = fixture.worker("w");
    fixture.enqueue_all((0..5).map(|at| job(&format!("j{at}")).max_retries(0)));
    let settlements: Vec<_> =
        fixture.leases(&worker, 5).iter().map(|lease| super::fixture::settlement(lease, FAILURE)).collect();
    fixture.exchange(&worker, &settlements, 0);
    let delivered = deliver_all(fixture, &worker);
    assert_eq!(delivered.len(), 1);
    assert_eq!(delivered[0].1["dlq"]["count"], 5);
}

fn a_crashed_worker_is_reported_once_with_its_jobs(fixture: &Fixture) {
    add(fixture, "crash", HookEvent::WorkerCrashed);
    let (doomed, well) = (fixture.worker("doomed"), fixture.worker("well"));
    fixture.enqueue(job("a"));
    fixture.lease(&doomed);
    fixture.reap(&doomed);
    fixture.reap(&doomed);
    let delivered = deliver_all(fixture, &well);
    assert_eq!(delivered.len(), 1);
    assert_eq!(delivered[0].1["worker"], json!({"id": "doomed", "host": "here", "jobs": ["a"]}));
    fixture.retire(&well);
    let last = fixture.worker("last");
    assert_eq!(deliver_all(fixture, &last), [], "a worker that stopped did not crash");
}

/// Adds two hooks with three pending deliveries each, and returns a worker.
fn with_pending_deliveries(fixture: &Fixture) -> WorkerId {
    add(fixture, "one", HookEvent::Success);
    add(fixture, "two", HookEvent::Success);
    let worker = fixture.worker("w");
    for id in ["a", "b", "c"] {
        fixture.enqueue(job(id));
        fixture.run(&worker, Outcome::Success);
        fixture.pass_millis(1);
    }
    assert_eq!([hook(fixture, "one").pending, hook(fixture, "two").pending], [3, 3]);
    worker
}

fn hooks_of(taken: &[Delivery]) -> Vec<&str> {
    taken.iter().map(|delivery| delivery.hook.as_str()).collect()
}

fn each_hook_has_one_delivery_in_flight(fixture: &Fixture) {
    let worker = with_pending_deliveries(fixture);
    let other = fixture.worker("other");
    let first = take(fixture, &worker, 1);
    assert_eq!(hooks_of(&first), ["one"]);
    let second = exchange_deliveries(fixture, &other, &[], 10);
    assert_eq!(hooks_of(&second.taken), ["two"], "the first hook has a delivery in flight");
    assert_eq!((take(fixture, &worker, 10), second.next_due), (vec![], None));
    assert_eq!(fixture.orders(&worker).next_delivery, None, "no delivery can be taken");
    let next =
        exchange_deliveries(fixture, &worker, &[report(&first[0], DeliveryResult::Delivered)], 10).taken;
    assert_eq!(hooks_of(&next), ["one"]);
    assert_eq!(serde_json::from_str::<Value>(&next[0].payload).expect("JSON")["job"]["id"], "b", "in order");
    assert_eq!(hook(fixture, "one").pending, 2);
    assert_eq!(hook(fixture, "one").delivered_at, Some(fixture.now()));
}

fn a_failed_delivery_is_retried_with_backoff(fixture: &Fixture) {
    add(fixture, "h", HookEvent::Success);
    let worker = fixture.worker("w");
    fixture.enqueue(job("a"));
    fixture.run(&worker, Outcome::Success);
    let mut distinct: BTreeSet<(String, String)> = BTreeSet::new();
    for delay in [1, 2, 4, 8] {
        let taken = take(fixture, &worker, 1);
        distinct.insert((taken[0].name.clone(), taken[0].payload.clone()));
        let exchanged = exchange_deliveries(fixture, &worker, &[report(&taken[0], failed())], 1);
        assert_eq!(exchanged.taken, []);
        assert_eq!(exchanged.next_due, Some(fixture.now().saturating_add(Duration::from_secs(delay))));
        let failing = hook(fixture, "h");
        assert_eq!(
            (failing.error.as_deref(), failing.failing_since.is_some()),
            (Some("connection refused"), true)
        );
        fixture.pass_secs(delay);
        assert_eq!(fixture.orders(&worker).next_delivery, Some(fixture.now()));
    }
    assert_eq!(distinct.len(), 1, "the same delivery each time: {distinct:?}");
    assert_eq!(deliver_all(fixture, &worker).len(), 1);
    let recovered = hook(fixture, "h");
    assert_eq!(
        (recovered.failing_since, recovered.error.as_deref(), recovered.pending),
        (None, Some("connection refused"), 0)
    );
}

fn a_waiting_delivery_is_tried_now_on_request(fixture: &Fixture) {
    add(fixture, "h", HookEvent::Success);
    add(fixture, "other", HookEvent::Dead);
    let worker = fixture.worker("w");
    fixture.enqueue(job("a"));
    fixture.run(&worker, Outcome::Success);
    let taken = take(fixture, &worker, 1);
    let name = taken[0].name.as_str();
    let retry = |hook, delivery: &str| {
        fixture.store.retry_delivery(&hook_name(hook), delivery, ACTOR).expect("retry_delivery")
    };
    assert_eq!(retry("h", name), DeliveryRetry::Sending);
    exchange_deliveries(fixture, &worker, &[report(&taken[0], failed())], 0);
    assert_eq!(take(fixture, &worker, 1), [], "it waits for its backoff");
    assert_eq!(retry("none", name), DeliveryRetry::NoHook);
    assert_eq!(retry("other", name), DeliveryRetry::NotWaiting, "another hook has no such delivery");
    assert_eq!(retry("h", "d-0"), DeliveryRetry::NotWaiting);
    assert_eq!(
        fixture.orders(&worker).next_delivery,
        Some(fixture.now().saturating_add(Duration::from_secs(1)))
    );
    assert_eq!(retry("h", name), DeliveryRetry::Due);
    assert_eq!(fixture.orders(&worker).next_delivery, Some(fixture.now()), "the workers learn of it");
    let again = take(fixture, &worker, 1);
    assert_eq!(again[0].name, name);
    let exchanged = exchange_deliveries(fixture, &worker, &[report(&again[0], failed())], 0);
    assert_eq!(
        exchanged.next_due,
        Some(fixture.now().saturating_add(Duration::from_secs(2))),
        "the backoff continues: the try counts"
    );
}

fn all_waiting_deliveries_of_a_hook_are_tried_now_on_request(fixture: &Fixture) {
    let worker = with_pending_deliveries(fixture);
    for _ in 0..3 {
        let taken = take(fixture, &worker, 10);
        let reports: Vec<DeliveryReport> = taken.iter().map(|delivery| report(delivery, failed())).collect();
        exchange_deliveries(fixture, &worker, &reports, 0);
    }
    assert_eq!(take(fixture, &worker, 10), [], "all wait for their backoff");
    let retry = |hook| fixture.store.retry_deliveries(&hook_name(hook), ACTOR).expect("retry_deliveries");
    assert_eq!(retry("none"), None);
    assert_eq!(retry("one"), Some(3));
    assert_eq!(retry("one"), Some(0), "they are due already");
    let mut delivered = deliver_all(fixture, &worker);
    delivered.retain(|(hook, _)| hook == "one");
    assert_eq!((delivered.len(), hook(fixture, "two").pending), (3, 3));
}

fn events_before_a_hook_was_added_are_not_delivered(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue(job("a"));
    fixture.run(&worker, Outcome::Success);
    add(fixture, "h", HookEvent::Success);
    assert_eq!(deliver_all(fixture, &worker), []);
}

fn a_failing_hook_does_not_delay_other_deliveries(fixture: &Fixture) {
    let worker = with_pending_deliveries(fixture);
    let taken = take(fixture, &worker, 10);
    let reports = [report(&taken[0], failed()), report(&taken[1], DeliveryResult::Delivered)];
    let next = exchange_deliveries(fixture, &worker, &reports, 10).taken;
    assert_eq!(
        hooks_of(&next),
        ["one", "two"],
        "other deliveries of the failing hook are not delayed either"
    );
    assert_ne!(next[0].name, taken[0].name);
}

fn a_delivery_is_given_up_after_a_day_and_counted(fixture: &Fixture) {
    add(fixture, "h", HookEvent::Success);
    let worker = fixture.worker("w");
    fixture.enqueue(job("a"));
    fixture.run(&worker, Outcome::Success);
    let mut attempts = 0;
    while let Some(due) = fixture.orders(&worker).next_delivery {
        fixture.clock.advance(due.since(fixture.now()));
        let taken = take(fixture, &worker, 1);
        let exchanged = exchange_deliveries(fixture, &worker, &[report(&taken[0], failed())], 0);
        attempts += 1;
        assert_eq!(exchanged.gave_up.is_empty(), exchanged.next_due.is_some());
        assert!(attempts < 100, "the delivery is never given up");
    }
    assert!(attempts > 20, "only {attempts} attempts");
    let given_up = hook(fixture, "h");
    assert_eq!((given_up.pending, given_up.gave_up, given_up.gave_up_at), (0, 1, Some(fixture.now())));
}

/// Each attempt may take long: with more deliveries than attempts, most would never be tried.
fn a_hook_that_always_fails_does_not_accumulate_deliveries(fixture: &Fixture) {
    add(fixture, "h", HookEvent::Success);
    let worker = fixture.worker("w");
    for at in 0..20 {
        fixture.enqueue(job(&format!("j{at}")));
        fixture.run(&worker, Outcome::Success);
    }
    let fail = || {
        let taken = take(fixture, &worker, 1);
        exchange_deliveries(fixture, &worker, &[report(&taken[0], failed())], 0)
    };
    fail();
    fixture.pass_secs(24 * 3_600 - 1);
    fixture.enqueue(job("new"));
    fixture.run(&worker, Outcome::Success);
    fail();
    assert_eq!(hook(fixture, "h").pending, 21, "the hook has failed for less than a day");
    fixture.pass_millis(1_500);
    let exchanged = fail();
    assert_eq!(exchanged.gave_up, [hook_name("h")]);
    let left = hook(fixture, "h");
    assert_eq!(
        (left.pending, left.gave_up),
        (4, 17),
        "attempted deliveries have their own deadline, and one is new"
    );
}

/// A hook command that kills its worker must not do so forever.
fn a_delivery_of_a_dead_worker_is_due_immediately_the_first_time(fixture: &Fixture) {
    let doomed = with_pending_deliveries(fixture);
    let taken = take(fixture, &doomed, 10);
    let other = fixture.worker("other");
    assert_eq!(take(fixture, &other, 10), []);
    fixture.reap(&doomed);
    assert_eq!(take(fixture, &doomed, 10), [], "a dead worker gets no deliveries");
    assert_eq!(names(&take(fixture, &other, 10)), names(&taken), "the same deliveries");
    fixture.reap(&other);
    let last = fixture.worker("last");
    assert!(names(&take(fixture, &last, 10)).is_disjoint(&names(&taken)), "other deliveries come first now");
    let failing = hook(fixture, "one");
    assert_eq!((failing.error.as_deref(), failing.pending), (Some("worker other died"), 3));
}

fn a_worker_for_one_job_without_leases_is_not_reported_as_crashed(fixture: &Fixture) {
    add(fixture, "crash", HookEvent::WorkerCrashed);
    let well = fixture.worker("well");
    let serving = |id: &str| fixture.worker_serving(id, ServedJobs::Job(job_id("a")));
    fixture.reap(&serving("done"));
    assert_eq!(deliver_all(fixture, &well), [], "it was killed before it recorded its stop");
    fixture.enqueue(job("a"));
    let doomed = serving("doomed");
    fixture.lease(&doomed);
    fixture.reap(&doomed);
    assert_eq!(deliver_all(fixture, &well).len(), 1);
}

fn names(deliveries: &[Delivery]) -> BTreeSet<&str> {
    deliveries.iter().map(|delivery| delivery.name.as_str()).collect()
}

fn a_delivery_of_a_stopped_worker_is_due_immediately(fixture: &Fixture) {
    let worker = with_pending_deliveries(fixture);
    let taken = take(fixture, &worker, 10);
    let given_back = report(&taken[0], DeliveryResult::GivenBack);
    assert!(
        exchange_deliveries(fixture, &worker, &[given_back], 0)
            .next_due
            .is_some_and(|due| due <= fixture.now())
    );
    fixture.retire(&worker);
    let other = fixture.worker("other");
    assert_eq!(names(&take(fixture, &other, 10)), names(&taken), "they are still due first");
    assert_eq!(hook(fixture, "one").failing_since, None, "no delivery failed");
}

fn a_delivery_that_takes_too_long_is_taken_by_another_worker(fixture: &Fixture) {
    let worker = with_pending_deliveries(fixture);
    take(fixture, &worker, 1);
    let other = fixture.worker("other");
    fixture.pass_secs(59);
    assert!(!hooks_of(&take(fixture, &other, 10)).contains(&"one"));
    fixture.pass_secs(2);
    assert!(
        hooks_of(&take(fixture, &other, 10)).contains(&"one"),
        "the delivery of the first worker has expired"
    );
}

fn a_late_success_report_counts_and_a_late_failure_report_does_not(fixture: &Fixture) {
    add(fixture, "h", HookEvent::Success);
    let (worker, other) = (fixture.worker("w"), fixture.worker("other"));
    fixture.enqueue(job("a"));
    fixture.run(&worker, Outcome::Success);
    let taken = take(fixture, &worker, 1);
    fixture.pass_secs(61);
    assert_eq!(take(fixture, &other, 1).len(), 1);
    exchange_deliveries(fixture, &worker, &[report(&taken[0], failed())], 0);
    assert_eq!(hook(fixture, "h").failing_since, None, "another worker holds the delivery");
    exchange_deliveries(fixture, &worker, &[report(&taken[0], DeliveryResult::Delivered)], 0);
    assert_eq!(hook(fixture, "h").pending, 0);
    exchange_deliveries(fixture, &other, &[report(&taken[0], failed())], 0);
    assert_eq!(hook(fixture, "h").failing_since, None, "the delivery was successful");
}

/// Uses the last delivery, whose number a new one would get if numbers were reused.
fn a_late_report_does_not_apply_to_another_delivery(fixture: &Fixture) {
    add(fixture, "h", HookEvent::Success);
    let (worker, other) = (fixture.worker("w"), fixture.worker("other"));
    fixture.enqueue(job("a"));
    fixture.run(&worker, Outcome::Success);
    let late = take(fixture, &worker, 1);
    fixture.pass_secs(61);
    let again = take(fixture, &other, 1);
    exchange_deliveries(fixture, &other, &[report(&again[0], DeliveryResult::Delivered)], 0);
    fixture.enqueue(job("b"));
    fixture.run(&other, Outcome::Success);
    exchange_deliveries(fixture, &worker, &[report(&late[0], DeliveryResult::Delivered)], 0);
    assert_eq!(hook(fixture, "h").pending, 1, "the delivery for `b` is still pending");
}

fn a_removed_hook_has_no_deliveries(fixture: &Fixture) {
    let worker = with_pending_deliveries(fixture);
    let taken = take(fixture, &worker, 10);
    fixture.store.remove_hook(&hook_name("one"), ACTOR).expect("remove");
    let reports = [report(&taken[0], failed()), report(&taken[1], DeliveryResult::Delivered)];
    assert_eq!(hooks_of(&exchange_deliveries(fixture, &worker, &reports, 10).taken), ["two"]);
    add(fixture, "one", HookEvent::Success);
    assert_eq!(hook(fixture, "one").pending, 0, "a new hook with the same name inherits nothing");
}

fn delivery_names_are_never_reused(fixture: &Fixture) {
    add(fixture, "h", HookEvent::Success);
    let worker = fixture.worker("w");
    let mut distinct = BTreeSet::new();
    for at in 0..20 {
        fixture.enqueue(job(&format!("j{at}")));
        fixture.run(&worker, Outcome::Success);
        for (_, event) in deliver_all(fixture, &worker) {
            distinct.insert(event["delivery"].as_str().expect("text").to_owned());
        }
    }
    assert_eq!(distinct.len(), 20);
}

fn the_last_results_and_the_waiting_deliveries_are_shown(fixture: &Fixture) {
    let worker = fixture.worker("w");
    add(fixture, "h", HookEvent::Success);
    for at in 0..25 {
        fixture.enqueue(job(&format!("j{at}")));
        fixture.run(&worker, Outcome::Success);
    }
    let shown =
        || fixture.store.deliveries(&hook_name("h"), 3).expect("deliveries").expect("the hook exists");
    assert_eq!((shown().waiting.len(), shown().results.len()), (3, 0));
    let first = take(fixture, &worker, 1).remove(0);
    let failed = DeliveryResult::Failed("refused".to_owned());
    exchange_deliveries(fixture, &worker, &[report(&first, failed)], 0);
    let results = shown().results;
    assert_eq!(
        (results[0].delivery.as_str(), results[0].error.as_deref()),
        (first.name.as_str(), Some("refused"))
    );
    fixture.pass_secs(60);
    deliver_all(fixture, &worker);
    let results = shown().results;
    assert_eq!((results.len(), shown().waiting.len()), (20, 0), "the last ones are kept");
    assert!(results.iter().all(|result| result.error.is_none() && result.at == fixture.now()));
    assert_eq!(fixture.store.deliveries(&hook_name("x"), 3).expect("deliveries"), None);
}
