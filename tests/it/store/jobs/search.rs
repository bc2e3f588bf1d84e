//! Searching and counting jobs: every filter, every order, and pages that survive changes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use domain::job::NewJob;
use domain::job::edit::Edit;
use domain::job::environment::Environment;
use domain::job::life::StateName;
use domain::job::outcome::{Outcome, OutcomeName};
use domain::job::spec::JobSpec;
use domain::values::name::JobId;
use ops::jobs::bulk::bulk;
use ops::jobs::clone::clone;
use store::{EndReason, JobFilter, JobVerb, Order, PageStart, Phase, Search};

use crate::store::fixture::new_job::{job, job_id, queue_name};
use crate::store::fixture::{ACTOR, FAILURE, Fixture, every_store};

every_store!(
    each_filter_finds_its_jobs_and_counts_them,
    each_order_has_its_jobs,
    pages_survive_the_removal_of_the_job_that_they_follow,
    a_count_of_states_and_queues_is_the_counters,
    the_newest_failures_come_first,
    a_version_changes_with_every_commit,
    a_bulk_change_reaches_every_job_that_matches,
    a_bulk_retry_runs_dependencies_first,
    a_stopped_bulk_change_says_so,
    a_copy_of_a_job_has_its_inputs_and_none_of_its_relations,
);

/// Reads all pages of this size.
fn search_all(fixture: &Fixture, filter: &JobFilter, order: Order, limit: usize) -> Vec<String> {
    let mut search = Search { filter: filter.clone(), order, limit, ..Search::default() };
    let mut found = Vec::new();
    loop {
        let page = fixture.store.search(&search).expect("a search");
        assert!(page.is_complete && page.jobs.len() <= limit);
        found.extend(page.jobs.iter().map(|job| job.id.to_string()));
        match page.next {
            Some(next) => search.after = Some(next.to_string().parse().expect("it survives as text")),
            None => return found,
        }
    }
}

fn found(fixture: &Fixture, filter: &JobFilter) -> Vec<String> {
    let found = search_all(fixture, filter, Order::Newest, 2);
    let count = fixture.store.count(filter, None).expect("a count");
    assert!(count.is_exact);
    assert_eq!(count.count, found.len() as u64, "{filter:?}");
    assert_eq!(count.by_state.values().sum::<u64>(), count.count);
    assert_eq!(count.by_queue.values().sum::<u64>(), count.count);
    found
}

/// Two dead jobs, one that runs, one that waits for a retry, four that wait, and a cancelled one.
fn fill(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue(job("dead-1").max_retries(0).queue("mail"));
    fixture.run(&worker, FAILURE);
    fixture.pass_secs(10);
    fixture.enqueue(job("dead-2").max_retries(0));
    fixture.run(&worker, Outcome::Failure { exit_code: 7 });
    fixture.pass_secs(10);
    fixture.enqueue("retried");
    fixture.run(&worker, Outcome::Timeout);
    fixture.enqueue("running");
    fixture.lease(&worker);
    fixture.pass_secs(1);
    fixture.enqueue_all([
        job("low").tags(&["t"]),
        job("high").priority(5).queue("mail"),
        job("late").delay_secs(600),
        job("later").delay_secs(900),
    ]);
    fixture.enqueue("gone");
    fixture.cancel("gone");
}

fn each_filter_finds_its_jobs_and_counts_them(fixture: &Fixture) {
    fill(fixture);
    let any = JobFilter::default();
    let dead = fixture.store.causes(None, 9).expect("the causes");
    let of_mail = dead.iter().find(|cause| cause.queues.contains_key(&queue_name("mail"))).expect("a cause");
    let worker = Some("w".parse().expect("an id"));
    let since = Some(fixture.now().saturating_sub(Duration::from_secs(5)));
    let reason = |reason| Some(EndReason::from_name(reason).expect("a reason"));
    for (what, filter, expected) in [
        ("worker", JobFilter { worker, ..any.clone() }, vec!["running"]),
        ("unknown worker", JobFilter { worker: Some("x".parse().expect("an id")), ..any.clone() }, vec![]),
        (
            "unknown schedule",
            JobFilter { schedule: Some("x".parse().expect("a name")), ..any.clone() },
            vec![],
        ),
        ("id", JobFilter { id_prefix: Some("late".to_owned()), ..any.clone() }, vec!["later", "late"]),
        ("cause", JobFilter { cause: Some(of_mail.cause.id()), ..any.clone() }, vec!["dead-1"]),
        ("dead", JobFilter { reason: reason("retries_exhausted"), ..any.clone() }, vec!["dead-2", "dead-1"]),
        ("cancelled", JobFilter { reason: reason("user"), ..any.clone() }, vec!["gone"]),
        ("exit code", JobFilter { exit_code: Some(7), ..any.clone() }, vec!["dead-2"]),
        ("old", JobFilter { changed_before: since, ..any.clone() }, vec!["dead-2", "dead-1"]),
        (
            "both",
            JobFilter { exit_code: Some(1), queue: Some(queue_name("mail")), ..any.clone() },
            vec!["dead-1"],
        ),
        (
            "new and waiting",
            JobFilter { changed_after: since, ..JobFilter::in_phase(Phase::Ready) },
            vec!["high", "low"],
        ),
        (
            "phases that overlap",
            JobFilter {
                phases: vec![Phase::State(StateName::Pending), Phase::Ready, Phase::Scheduled],
                id_prefix: Some("l".to_owned()),
                ..any
            },
            vec!["later", "late", "low"],
        ),
    ] {
        assert_eq!(found(fixture, &filter), expected, "{what}");
    }
}

fn each_order_has_its_jobs(fixture: &Fixture) {
    fill(fixture);
    let worker = fixture.worker("v");
    fixture.lease(&worker);
    fixture.enqueue(job("urgent").priority(9));
    let any = JobFilter::default();
    for limit in [1, 2, 100] {
        let listed = |order, filter: &JobFilter| search_all(fixture, filter, order, limit);
        assert_eq!(listed(Order::Claim, &any), ["urgent", "low"]);
        assert_eq!(listed(Order::Claim, &JobFilter { tag: Some("t".to_owned()), ..any.clone() }), ["low"]);
        assert_eq!(listed(Order::Soonest, &any), ["late", "later"]);
        assert_eq!(listed(Order::LongestRunning, &any), ["running", "high"]);
        assert_eq!(listed(Order::LastFailed, &any), ["retried", "dead-2", "dead-1"]);
        let dead = JobFilter::in_phase(Phase::State(StateName::Dead));
        assert_eq!(listed(Order::LastFailed, &dead), ["dead-2", "dead-1"]);
        let mail = JobFilter { queue: Some(queue_name("mail")), ..any.clone() };
        assert_eq!(listed(Order::LongestRunning, &mail), ["high"]);
        assert_eq!(listed(Order::Newest, &mail), ["high", "dead-1"]);
        assert_eq!(listed(Order::Oldest, &mail), ["dead-1", "high"]);
        assert_eq!(listed(Order::Oldest, &any).first().map(String::as_str), Some("dead-1"));
        assert_eq!(listed(Order::Oldest, &any).len(), 10);
    }
}

fn pages_survive_the_removal_of_the_job_that_they_follow(fixture: &Fixture) {
    fill(fixture);
    let mut search = Search { limit: 3, ..Search::default() };
    let page = fixture.store.search(&search).expect("a search");
    let last = page.jobs.last().expect("a job").id.to_string();
    fixture.remove(&last);
    search.after = page.next;
    let page = fixture.store.search(&search).expect("the next page");
    let ids: Vec<&str> = page.jobs.iter().map(|job| job.id.as_str()).collect();
    assert_eq!(ids, ["high", "low", "running"]);
    search.after = Some(PageStart::Job(job_id("low")));
    let page = fixture.store.search(&search).expect("a page after a job");
    assert_eq!(page.jobs.first().map(|job| job.id.to_string()), Some("running".to_owned()));
}

fn a_count_of_states_and_queues_is_the_counters(fixture: &Fixture) {
    fill(fixture);
    let all = fixture.store.count(&JobFilter::default(), Some(Duration::ZERO)).expect("a count");
    assert_eq!((all.count, all.is_exact), (9, true));
    assert_eq!(all.by_queue, BTreeMap::from([(queue_name("default"), 7), (queue_name("mail"), 2)]));
    let dead =
        JobFilter { queue: Some(queue_name("mail")), ..JobFilter::in_phase(Phase::State(StateName::Dead)) };
    let dead = fixture.store.count(&dead, Some(Duration::ZERO)).expect("a count");
    assert_eq!((dead.count, dead.by_state), (1, BTreeMap::from([(StateName::Dead, 1)])));
    let none = JobFilter { queue: Some(queue_name("x")), ..JobFilter::default() };
    assert_eq!(fixture.store.count(&none, None).expect("a count").count, 0);
}

fn the_newest_failures_come_first(fixture: &Fixture) {
    fill(fixture);
    let failures = fixture.store.newest_failures(None, 2).expect("the failures");
    let shown: Vec<_> = failures
        .iter()
        .map(|failed| (failed.job.as_str(), failed.attempt, failed.outcome, failed.exit_code, failed.state))
        .collect();
    assert_eq!(
        shown,
        [
            ("retried", 1, OutcomeName::Timeout, None, StateName::Failed),
            ("dead-2", 1, OutcomeName::Failure, Some(7), StateName::Dead),
        ]
    );
    let earlier = fixture.store.newest_failures(Some(failures[1].finished_at), 9).expect("the failures");
    assert_eq!(earlier.iter().map(|failed| failed.job.as_str()).collect::<Vec<_>>(), ["dead-1"]);
}

fn a_version_changes_with_every_commit(fixture: &Fixture) {
    let version = || fixture.store.version().expect("a version");
    let empty = version();
    fixture.enqueue("a");
    let one = version();
    assert_ne!(empty, one);
    fixture.cancel("a");
    assert_ne!(one, version());
}

fn a_bulk_change_reaches_every_job_that_matches(fixture: &Fixture) {
    fixture.enqueue_all((0..2_500).map(|at| {
        let plain = job(&format!("j{at}"));
        if at % 5 == 0 { plain } else { plain.tags(&["t"]) }
    }));
    let tagged =
        JobFilter { tag: Some("t".to_owned()), ..JobFilter::in_phase(Phase::State(StateName::Pending)) };
    let mut processed = 0;
    let tally = bulk(
        fixture.store.as_ref(),
        JobVerb::CANCEL,
        &tagged,
        ACTOR,
        |more| {
            if processed == 0 {
                fixture.enqueue(job("new").tags(&["t"]));
            }
            processed += more;
        },
        || false,
    );
    let tally = tally.expect("a change");
    assert_eq!((tally.done, tally.skipped, processed, tally.was_stopped), (2_000, 0, 2_000, false));
    assert_eq!(fixture.state("new"), StateName::Pending, "it was enqueued after the change began");
    assert_eq!(fixture.store.count(&tagged, None).expect("a count").count, 1);
}

fn a_bulk_retry_runs_dependencies_first(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue_all([
        job("b").max_retries(0),
        job("c").max_retries(0).after(&["b"]),
        job("d").after(&["c"]),
    ]);
    fixture.run(&worker, FAILURE);
    // A dependency with a higher number than its dependent.
    fixture.remove("b");
    fixture.enqueue(job("b").max_retries(0));
    fixture.run(&worker, FAILURE);
    let ended = [StateName::Dead, StateName::Cancelled].map(Phase::State).to_vec();
    let filter = JobFilter { phases: ended, ..JobFilter::default() };
    let tally =
        bulk(fixture.store.as_ref(), JobVerb::Retry, &filter, ACTOR, |_| {}, || false).expect("a retry");
    assert_eq!((tally.done, tally.skipped), (3, 0));
    assert_eq!(fixture.claim(&worker, 9), ["b"], "the others wait for it");
}

fn a_stopped_bulk_change_says_so(fixture: &Fixture) {
    fixture.enqueue_all([job("a"), job("b")]);
    let all = JobFilter::default();
    let tally =
        bulk(fixture.store.as_ref(), JobVerb::CANCEL, &all, ACTOR, |_| {}, || true).expect("a change");
    assert_eq!((tally.done, tally.was_stopped), (0, true));
    assert_eq!(fixture.state("a"), StateName::Pending);
}

fn a_copy_of_a_job_has_its_inputs_and_none_of_its_relations(fixture: &Fixture) {
    let worker = fixture.worker("w");
    let original = job("a").command("x").tags(&["t"]).batch("b").unique_key("k").max_retries(0).priority(3);
    let mut original: NewJob = original.into();
    original.environment = Some(Arc::new(Environment::capture([("SECRET".into(), "1".into())])));
    original.stdin = Some(b"input"[..].into());
    original.options.stdin_bytes = 5;
    fixture.store.enqueue(&[original]).expect("it is stored");
    fixture.run(&worker, FAILURE);
    let set = JobSpec { priority: Some(7), ..JobSpec::default() };
    let edit = Edit { set, ..Edit::default() };
    let copy = clone(fixture.store.as_ref(), &job_id("a"), &edit).expect("a copy");
    assert_eq!((copy.command.as_str(), copy.priority, copy.life.attempts), ("x", 7, 0));
    assert_eq!((copy.tags, copy.batch, copy.unique_key), (vec!["t".to_owned()], None, None));
    let inputs = |id: &JobId| fixture.store.inputs(id).expect("inputs").expect("it exists");
    assert_eq!(inputs(&copy.id), inputs(&job_id("a")));
    assert_eq!(inputs(&copy.id).stdin.as_deref(), Some(&b"input"[..]));
    assert!(clone(fixture.store.as_ref(), &job_id("x"), &Edit::default()).is_err());
}
