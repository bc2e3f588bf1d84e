//! Hooks: what they are told, who tells them, and what becomes of what they could not be told.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use domain::hook::{HookEvent, Secret, Target, Trigger};
use domain::job::environment::Environment;
use domain::job::outcome::Outcome;
use domain::values::name::{HookName, WorkerId};
use serde_json::{Value, json};
use store::{
    Delivery, DeliveryExchange, DeliveryExchangeResult, DeliveryReport, DeliveryResult, Hook, NewHook,
    ServedJobs,
};

use super::fixture::{FAILURE, Fixture, SOMEBODY, every_store};
use super::new_job::{job, job_id, queue_name};

every_store!(
    a_hook_is_kept_as_it_was_added,
    a_name_is_taken_once,
    each_turn_of_a_job_is_told_to_those_who_asked_for_it,
    a_queue_narrows_it_down,
    nothing_is_told_of_what_was_cancelled_or_given_back,
    crossing_the_line_is_told_once_until_it_is_crossed_again,
    a_crowd_that_dies_at_once_crosses_the_line_once,
    a_crashed_worker_is_told_of_once_with_its_jobs,
    one_delivery_is_sent_at_a_time_for_each_hook,
    what_is_told_in_vain_is_told_again_later,
    what_was_told_before_the_hook_was_there_is_not_told,
    a_failing_hook_holds_up_no_other,
    after_a_day_it_is_given_up_and_noted,
    a_hook_that_fails_for_ever_does_not_pile_up_news_for_ever,
    what_a_dead_worker_was_sending_is_due_at_once_the_first_time,
    a_worker_for_one_job_that_held_nothing_did_not_crash,
    what_a_worker_that_ends_was_sending_is_due_at_once,
    what_takes_too_long_is_taken_by_another,
    a_late_report_of_success_counts_and_one_of_failure_does_not,
    a_late_report_is_not_taken_for_one_of_another_event,
    a_removed_hook_is_told_nothing_more,
    names_of_deliveries_are_never_used_again,
);

pub fn hook_name(name: &str) -> HookName {
    name.parse().expect("a name")
}

fn command(line: &str) -> Target {
    Target::Command { line: line.to_owned(), cwd: Some("/tmp".to_owned()), environment: None }
}

pub fn new_hook(name: &str, event: HookEvent, queue: Option<&str>, threshold: Option<u64>) -> NewHook {
    let trigger = Trigger::new(event, queue.map(queue_name), threshold).expect("they go together");
    NewHook { name: hook_name(name), trigger, target: command("true") }
}

fn add(fixture: &Fixture, name: &str, event: HookEvent) {
    add_hook(fixture, &new_hook(name, event, None, None));
}

fn add_hook(fixture: &Fixture, hook: &NewHook) {
    assert!(fixture.store.add_hook(hook, SOMEBODY).expect("it is stored"), "the name is free");
}

fn hook(fixture: &Fixture, name: &str) -> Hook {
    let hooks = fixture.store.hooks().expect("hooks");
    hooks.into_iter().find(|hook| hook.name.as_str() == name).expect("there is such a hook")
}

fn post(
    fixture: &Fixture,
    worker: &WorkerId,
    reports: &[DeliveryReport],
    want: usize,
) -> DeliveryExchangeResult {
    fixture.store.exchange_deliveries(&DeliveryExchange { worker, reports, want }).expect("post")
}

fn take(fixture: &Fixture, worker: &WorkerId, want: usize) -> Vec<Delivery> {
    post(fixture, worker, &[], want).taken
}

fn report(delivery: &Delivery, result: DeliveryResult) -> DeliveryReport {
    DeliveryReport { number: delivery.number, hook: delivery.hook.clone(), result }
}

fn failed() -> DeliveryResult {
    DeliveryResult::Failed("no luck".to_owned())
}

/// Everything that is to be told now, as hook and event; it is told.
fn told(fixture: &Fixture, worker: &WorkerId) -> Vec<(String, Value)> {
    let mut told = Vec::new();
    let mut reports = Vec::new();
    loop {
        let taken = post(fixture, worker, &reports, 10).taken;
        if taken.is_empty() {
            return told;
        }
        reports = taken.iter().map(|delivery| report(delivery, DeliveryResult::Delivered)).collect();
        for delivery in taken {
            let event: Value = serde_json::from_str(&delivery.payload).expect("JSON");
            assert_eq!(event["delivery"], delivery.name, "the event names its delivery");
            assert_eq!(event["event"], delivery.trigger.event().name());
            told.push((delivery.hook.to_string(), event));
        }
    }
}

fn a_hook_is_kept_as_it_was_added(fixture: &Fixture) {
    let environment = Some(Arc::new(Environment::from_bytes(b"A=1\0")));
    let secret = Some(Secret::new("tell nobody".to_owned()).expect("a secret"));
    let url = "https://example.org/x".parse().expect("an address");
    let targets =
        [Target::Command { line: "cat".to_owned(), cwd: None, environment }, Target::Url { url, secret }];
    for (at, target) in targets.into_iter().enumerate() {
        let new =
            NewHook { target, ..new_hook(&format!("h{at}"), HookEvent::DlqAbove, Some("mail"), Some(7)) };
        add_hook(fixture, &new);
        let kept = hook(fixture, new.name.as_str());
        assert_eq!((kept.trigger, kept.target), (new.trigger, new.target));
        assert_eq!((kept.created_at, kept.created_by.as_str()), (fixture.now(), SOMEBODY));
        assert_eq!((kept.pending, kept.gave_up, kept.error), (0, 0, None));
    }
    assert!(fixture.store.queues().expect("queues").iter().any(|queue| queue.name == queue_name("mail")));
}

fn a_name_is_taken_once(fixture: &Fixture) {
    add(fixture, "h", HookEvent::Dead);
    let again = new_hook("h", HookEvent::Success, None, None);
    assert!(!fixture.store.add_hook(&again, SOMEBODY).expect("add"));
    assert_eq!(hook(fixture, "h").trigger.event(), HookEvent::Dead, "the first is untouched");
    assert!(fixture.store.remove_hook(&hook_name("h"), SOMEBODY).expect("remove"));
    assert!(!fixture.store.remove_hook(&hook_name("h"), SOMEBODY).expect("remove"));
}

fn each_turn_of_a_job_is_told_to_those_who_asked_for_it(fixture: &Fixture) {
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
    let told = told(fixture, &worker);
    let mut short: Vec<(&str, &Value, &Value)> = told
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
    let (_, last) = told.iter().find(|(hook, _)| hook == "worst").expect("it was told");
    assert_eq!(last["job"]["reason"], "retries_exhausted");
    assert_eq!(last["at"], last["job"]["finished_at"], "told of when it happened");
}

fn a_queue_narrows_it_down(fixture: &Fixture) {
    add_hook(fixture, &new_hook("mail", HookEvent::Success, Some("mail"), None));
    let worker = fixture.worker("w");
    fixture.enqueue_all([job("a"), job("b").queue("mail")]);
    fixture.run(&worker, Outcome::Success);
    fixture.run(&worker, Outcome::Success);
    let told = told(fixture, &worker);
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].1["job"]["id"], "b");
}

fn nothing_is_told_of_what_was_cancelled_or_given_back(fixture: &Fixture) {
    for event in [HookEvent::Success, HookEvent::Failure, HookEvent::Dead] {
        add(fixture, event.name(), event);
    }
    let worker = fixture.worker("w");
    fixture.enqueue_all(["a", "b", "c"].map(job));
    fixture.cancel("a");
    fixture.run(&worker, Outcome::Released);
    fixture.run(&worker, Outcome::Cancelled);
    assert_eq!(told(fixture, &worker), []);
    assert_eq!(fixture.orders(&worker).next_delivery, None);
}

fn crossing_the_line_is_told_once_until_it_is_crossed_again(fixture: &Fixture) {
    add_hook(fixture, &new_hook("all", HookEvent::DlqAbove, None, Some(1)));
    add_hook(fixture, &new_hook("mail", HookEvent::DlqAbove, Some("mail"), Some(0)));
    let worker = fixture.worker("w");
    let counts = |kill: &str| {
        fixture.enqueue(job(kill).max_retries(0));
        fixture.run(&worker, FAILURE);
        told(fixture, &worker)
            .into_iter()
            .map(|(hook, event)| (hook, event["dlq"].clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(counts("a"), [], "one is not above one");
    let above = |count: u64| ("all".to_owned(), json!({"count": count, "threshold": 1, "queue": null}));
    assert_eq!(counts("b"), [above(2)]);
    assert_eq!(counts("c"), [], "it was above already");
    fixture.remove("a");
    fixture.retry("b");
    assert_eq!(fixture.run(&worker, Outcome::Success), "b");
    assert_eq!(counts("d"), [above(2)], "it had fallen back to one");
}

fn a_crowd_that_dies_at_once_crosses_the_line_once(fixture: &Fixture) {
    add_hook(fixture, &new_hook("all", HookEvent::DlqAbove, None, Some(2)));
    let worker = fixture.worker("w");
    fixture.enqueue_all((0..5).map(|at| job(&format!("j{at}")).max_retries(0)));
    let settlements: Vec<_> =
        fixture.leases(&worker, 5).iter().map(|lease| super::fixture::settlement(lease, FAILURE)).collect();
    fixture.exchange(&worker, &settlements, 0);
    let told = told(fixture, &worker);
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].1["dlq"]["count"], 5);
}

fn a_crashed_worker_is_told_of_once_with_its_jobs(fixture: &Fixture) {
    add(fixture, "crash", HookEvent::WorkerCrashed);
    let (doomed, well) = (fixture.worker("doomed"), fixture.worker("well"));
    fixture.enqueue(job("a"));
    fixture.lease(&doomed);
    fixture.reap(&doomed);
    fixture.reap(&doomed);
    let told = told(fixture, &well);
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].1["worker"], json!({"id": "doomed", "host": "here", "jobs": ["a"]}));
    fixture.retire(&well);
    let last = fixture.worker("last");
    assert_eq!(self::told(fixture, &last), [], "one that said goodbye did not crash");
}

/// A worker, and two hooks that are to be told of three jobs each.
fn with_news(fixture: &Fixture) -> WorkerId {
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

fn one_delivery_is_sent_at_a_time_for_each_hook(fixture: &Fixture) {
    let worker = with_news(fixture);
    let other = fixture.worker("other");
    let first = take(fixture, &worker, 1);
    assert_eq!(hooks_of(&first), ["one"]);
    let second = post(fixture, &other, &[], 10);
    assert_eq!(hooks_of(&second.taken), ["two"], "the first hook is being told something");
    assert_eq!((take(fixture, &worker, 10), second.next_due), (vec![], None));
    assert_eq!(fixture.orders(&worker).next_delivery, None, "nobody need try");
    let next = post(fixture, &worker, &[report(&first[0], DeliveryResult::Delivered)], 10).taken;
    assert_eq!(hooks_of(&next), ["one"]);
    assert_eq!(serde_json::from_str::<Value>(&next[0].payload).expect("JSON")["job"]["id"], "b", "in order");
    assert_eq!(hook(fixture, "one").pending, 2);
    assert_eq!(hook(fixture, "one").delivered_at, Some(fixture.now()));
}

fn what_is_told_in_vain_is_told_again_later(fixture: &Fixture) {
    add(fixture, "h", HookEvent::Success);
    let worker = fixture.worker("w");
    fixture.enqueue(job("a"));
    fixture.run(&worker, Outcome::Success);
    let mut known: BTreeSet<(String, String)> = BTreeSet::new();
    for pause in [1, 2, 4, 8] {
        let taken = take(fixture, &worker, 1);
        known.insert((taken[0].name.clone(), taken[0].payload.clone()));
        let posted = post(fixture, &worker, &[report(&taken[0], failed())], 1);
        assert_eq!(posted.taken, []);
        assert_eq!(posted.next_due, Some(fixture.now().saturating_add(Duration::from_secs(pause))));
        let failing = hook(fixture, "h");
        assert_eq!((failing.error.as_deref(), failing.failing_since.is_some()), (Some("no luck"), true));
        fixture.pass_secs(pause);
        assert_eq!(fixture.orders(&worker).next_delivery, Some(fixture.now()));
    }
    assert_eq!(known.len(), 1, "the same each time: {known:?}");
    assert_eq!(told(fixture, &worker).len(), 1);
    let well = hook(fixture, "h");
    assert_eq!((well.failing_since, well.error.as_deref(), well.pending), (None, Some("no luck"), 0));
}

fn what_was_told_before_the_hook_was_there_is_not_told(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue(job("a"));
    fixture.run(&worker, Outcome::Success);
    add(fixture, "h", HookEvent::Success);
    assert_eq!(told(fixture, &worker), []);
}

fn a_failing_hook_holds_up_no_other(fixture: &Fixture) {
    let worker = with_news(fixture);
    let taken = take(fixture, &worker, 10);
    let reports = [report(&taken[0], failed()), report(&taken[1], DeliveryResult::Delivered)];
    let next = post(fixture, &worker, &reports, 10).taken;
    assert_eq!(hooks_of(&next), ["one", "two"], "what else the first is to be told is not held up either");
    assert_ne!(next[0].name, taken[0].name);
}

fn after_a_day_it_is_given_up_and_noted(fixture: &Fixture) {
    add(fixture, "h", HookEvent::Success);
    let worker = fixture.worker("w");
    fixture.enqueue(job("a"));
    fixture.run(&worker, Outcome::Success);
    let mut tries = 0;
    while let Some(due) = fixture.orders(&worker).next_delivery {
        fixture.clock.advance(due.since(fixture.now()));
        let taken = take(fixture, &worker, 1);
        let posted = post(fixture, &worker, &[report(&taken[0], failed())], 0);
        tries += 1;
        assert_eq!(posted.gave_up.is_empty(), posted.next_due.is_some());
        assert!(tries < 100, "it is tried for ever");
    }
    assert!(tries > 20, "it was tried {tries} times");
    let given_up = hook(fixture, "h");
    assert_eq!((given_up.pending, given_up.gave_up, given_up.gave_up_at), (0, 1, Some(fixture.now())));
}

/// Each try may take long: with more news than tries, most of it would never have its turn.
fn a_hook_that_fails_for_ever_does_not_pile_up_news_for_ever(fixture: &Fixture) {
    add(fixture, "h", HookEvent::Success);
    let worker = fixture.worker("w");
    for at in 0..20 {
        fixture.enqueue(job(&format!("j{at}")));
        fixture.run(&worker, Outcome::Success);
    }
    let fail = || {
        let taken = take(fixture, &worker, 1);
        post(fixture, &worker, &[report(&taken[0], failed())], 0)
    };
    fail();
    fixture.pass_secs(24 * 3_600 - 1);
    fixture.enqueue(job("new"));
    fixture.run(&worker, Outcome::Success);
    fail();
    assert_eq!(hook(fixture, "h").pending, 21, "it is not a day yet");
    fixture.pass_millis(1_500);
    let posted = fail();
    assert_eq!(posted.gave_up, [hook_name("h")]);
    let left = hook(fixture, "h");
    assert_eq!((left.pending, left.gave_up), (4, 17), "what was tried has its own time, and one is new");
}

/// A command that kills its worker must not do so for ever.
fn what_a_dead_worker_was_sending_is_due_at_once_the_first_time(fixture: &Fixture) {
    let doomed = with_news(fixture);
    let taken = take(fixture, &doomed, 10);
    let other = fixture.worker("other");
    assert_eq!(take(fixture, &other, 10), []);
    fixture.reap(&doomed);
    assert_eq!(take(fixture, &doomed, 10), [], "the dead get nothing");
    assert_eq!(names(&take(fixture, &other, 10)), names(&taken), "the same, with the same names");
    fixture.reap(&other);
    let last = fixture.worker("last");
    assert!(names(&take(fixture, &last, 10)).is_disjoint(&names(&taken)), "now others have their turn first");
    let failing = hook(fixture, "one");
    assert_eq!((failing.error.as_deref(), failing.pending), (Some("worker other died"), 3));
}

fn a_worker_for_one_job_that_held_nothing_did_not_crash(fixture: &Fixture) {
    add(fixture, "crash", HookEvent::WorkerCrashed);
    let well = fixture.worker("well");
    let serving = |id: &str| fixture.worker_serving(id, ServedJobs::Job(job_id("a")));
    fixture.reap(&serving("done"));
    assert_eq!(told(fixture, &well), [], "it was killed before it could say goodbye");
    fixture.enqueue(job("a"));
    let doomed = serving("doomed");
    fixture.lease(&doomed);
    fixture.reap(&doomed);
    assert_eq!(told(fixture, &well).len(), 1);
}

fn names(deliveries: &[Delivery]) -> BTreeSet<&str> {
    deliveries.iter().map(|delivery| delivery.name.as_str()).collect()
}

fn what_a_worker_that_ends_was_sending_is_due_at_once(fixture: &Fixture) {
    let worker = with_news(fixture);
    let taken = take(fixture, &worker, 10);
    let given_back = report(&taken[0], DeliveryResult::GivenBack);
    assert!(post(fixture, &worker, &[given_back], 0).next_due.is_some_and(|due| due <= fixture.now()));
    fixture.retire(&worker);
    let other = fixture.worker("other");
    assert_eq!(names(&take(fixture, &other, 10)), names(&taken), "they are still the first in line");
    assert_eq!(hook(fixture, "one").failing_since, None, "nothing failed");
}

fn what_takes_too_long_is_taken_by_another(fixture: &Fixture) {
    let worker = with_news(fixture);
    take(fixture, &worker, 1);
    let other = fixture.worker("other");
    fixture.pass_secs(59);
    assert!(!hooks_of(&take(fixture, &other, 10)).contains(&"one"));
    fixture.pass_secs(2);
    assert!(hooks_of(&take(fixture, &other, 10)).contains(&"one"), "whoever holds it has had its time");
}

fn a_late_report_of_success_counts_and_one_of_failure_does_not(fixture: &Fixture) {
    add(fixture, "h", HookEvent::Success);
    let (worker, other) = (fixture.worker("w"), fixture.worker("other"));
    fixture.enqueue(job("a"));
    fixture.run(&worker, Outcome::Success);
    let taken = take(fixture, &worker, 1);
    fixture.pass_secs(61);
    assert_eq!(take(fixture, &other, 1).len(), 1);
    post(fixture, &worker, &[report(&taken[0], failed())], 0);
    assert_eq!(hook(fixture, "h").failing_since, None, "another is at it");
    post(fixture, &worker, &[report(&taken[0], DeliveryResult::Delivered)], 0);
    assert_eq!(hook(fixture, "h").pending, 0);
    post(fixture, &other, &[report(&taken[0], failed())], 0);
    assert_eq!(hook(fixture, "h").failing_since, None, "it has arrived");
}

/// The last one of all, so that the next would be the first to get its number.
fn a_late_report_is_not_taken_for_one_of_another_event(fixture: &Fixture) {
    add(fixture, "h", HookEvent::Success);
    let (worker, other) = (fixture.worker("w"), fixture.worker("other"));
    fixture.enqueue(job("a"));
    fixture.run(&worker, Outcome::Success);
    let late = take(fixture, &worker, 1);
    fixture.pass_secs(61);
    let again = take(fixture, &other, 1);
    post(fixture, &other, &[report(&again[0], DeliveryResult::Delivered)], 0);
    fixture.enqueue(job("b"));
    fixture.run(&other, Outcome::Success);
    post(fixture, &worker, &[report(&late[0], DeliveryResult::Delivered)], 0);
    assert_eq!(hook(fixture, "h").pending, 1, "nobody was told of b");
}

fn a_removed_hook_is_told_nothing_more(fixture: &Fixture) {
    let worker = with_news(fixture);
    let taken = take(fixture, &worker, 10);
    fixture.store.remove_hook(&hook_name("one"), SOMEBODY).expect("remove");
    let reports = [report(&taken[0], failed()), report(&taken[1], DeliveryResult::Delivered)];
    assert_eq!(hooks_of(&post(fixture, &worker, &reports, 10).taken), ["two"]);
    add(fixture, "one", HookEvent::Success);
    assert_eq!(hook(fixture, "one").pending, 0, "a new one of that name is a new one");
}

fn names_of_deliveries_are_never_used_again(fixture: &Fixture) {
    add(fixture, "h", HookEvent::Success);
    let worker = fixture.worker("w");
    let mut known = BTreeSet::new();
    for at in 0..20 {
        fixture.enqueue(job(&format!("j{at}")));
        fixture.run(&worker, Outcome::Success);
        for (_, event) in told(fixture, &worker) {
            known.insert(event["delivery"].as_str().expect("text").to_owned());
        }
    }
    assert_eq!(known.len(), 20);
}
