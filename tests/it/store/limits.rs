//! Limits of queues: concurrency and start rate.

use std::time::Duration;

use domain::job::outcome::Outcome;
use domain::values::name::WorkerId;
use store::{Exchange, ExchangeResult, LeaseRef, ServedJobs, Settlement};

use super::fixture::new_job::{job, job_id};
use super::fixture::{FAILURE, Fixture, every_store, serving, settlement};

every_store!(
    a_concurrency_limit_applies_across_all_workers,
    every_end_of_an_attempt_frees_its_capacity,
    a_full_queue_does_not_delay_other_queues,
    a_limit_below_the_running_count_only_prevents_new_starts,
    a_worker_claims_at_most_want_limited_jobs_of_limited_queues,
    a_worker_skips_a_full_preferred_queue,
    a_worker_for_one_job_waits_while_its_queue_is_full,
    a_rate_allows_one_burst_and_then_single_starts,
    an_exchange_reports_when_a_rate_allows_the_next_start,
    an_attempt_that_never_started_returns_its_token,
    earlier_starts_count_when_a_rate_changes,
    a_clock_set_back_does_not_freeze_a_rate,
    a_worker_is_not_idle_while_a_rate_delays_a_job,
    jobs_delayed_by_a_limit_are_not_counted_as_ahead,
    a_job_that_more_urgent_jobs_overtake_is_starved,
);

/// Jobs of queue `q`, named by numbers.
fn fill(fixture: &Fixture, count: usize) {
    fixture.enqueue_all((0..count).map(|at| job(&at.to_string()).queue("q")));
}

/// An exchange of a worker that accepts `limited` jobs of limited queues.
fn exchange_limited(
    fixture: &Fixture,
    worker: &WorkerId,
    settlements: &[Settlement],
    want: usize,
    limited: usize,
) -> ExchangeResult {
    let exchange = Exchange { worker, settlements, want, want_limited: limited };
    fixture.store.exchange(&exchange).expect("exchange")
}

fn ids(exchanged: &ExchangeResult) -> Vec<&str> {
    exchanged.claimed.iter().map(|claim| claim.lease.job.as_str()).collect()
}

fn a_concurrency_limit_applies_across_all_workers(fixture: &Fixture) {
    fill(fixture, 9);
    fixture.limit("q", Some(3), None);
    let [one, other] = ["one", "other"].map(|id| fixture.worker(id));
    let first = fixture.leases(&one, 2);
    assert_eq!(fixture.claim(&other, 9), ["2"], "the third job runs on another worker");
    assert_eq!(fixture.claim(&one, 9), [""; 0]);
    let settled = first.iter().map(|lease| settlement(lease, Outcome::Success)).collect::<Vec<_>>();
    assert_eq!(
        ids(&exchange_limited(fixture, &one, &settled, 9, 9)),
        ["3", "4"],
        "in the exchange that freed the capacity"
    );
    fixture.limit("q", None, None);
    assert_eq!(fixture.claim(&other, 9), ["5", "6", "7", "8"]);
}

fn every_end_of_an_attempt_frees_its_capacity(fixture: &Fixture) {
    fill(fixture, 2);
    fixture.limit("q", Some(1), None);
    let [worker, next] = ["w", "next"].map(|id| fixture.worker(id));
    for outcome in [Outcome::Released, Outcome::Lost, FAILURE] {
        let lease = fixture.lease(&worker);
        assert_eq!(fixture.claim(&next, 1), [""; 0], "{outcome:?}");
        assert!(fixture.settle(&worker, &lease, outcome));
    }
    let lease = fixture.lease(&worker);
    assert_eq!(lease.job, job_id("1"));
    fixture.reap(&worker);
    assert_eq!(fixture.claim(&next, 9), ["1"], "the job was taken back from the dead worker");
}

fn a_full_queue_does_not_delay_other_queues(fixture: &Fixture) {
    fixture.enqueue_all([job("full-1").queue("full").priority(9), job("full-2").queue("full").priority(9)]);
    fixture.enqueue_all([job("held-1").queue("held").priority(5), job("held-2").queue("held").priority(5)]);
    fixture.enqueue_all([job("plain-1"), job("plain-2")]);
    fixture.limit("full", Some(1), None);
    fixture.limit("held", None, Some("1/h"));
    let worker = fixture.worker("w");
    assert_eq!(fixture.claim(&worker, 9), ["full-1", "held-1", "plain-1", "plain-2"]);
}

fn a_limit_below_the_running_count_only_prevents_new_starts(fixture: &Fixture) {
    fill(fixture, 5);
    let worker = fixture.worker("w");
    let leases = fixture.leases(&worker, 3);
    fixture.limit("q", Some(1), None);
    for lease in &leases[..2] {
        let settled = [settlement(lease, Outcome::Success)];
        assert_eq!(ids(&exchange_limited(fixture, &worker, &settled, 9, 9)), [""; 0]);
    }
    let settled = [settlement(&leases[2], Outcome::Success)];
    assert_eq!(ids(&exchange_limited(fixture, &worker, &settled, 9, 9)), ["3"]);
}

fn a_worker_claims_at_most_want_limited_jobs_of_limited_queues(fixture: &Fixture) {
    fill(fixture, 4);
    fixture.enqueue_all([job("a"), job("b")]);
    fixture.limit("q", Some(3), None);
    for (name, served) in [("all", ServedJobs::All), ("in-order", serving(&["q", "default"]))] {
        let worker = fixture.worker_serving(name, served);
        let taken = exchange_limited(fixture, &worker, &[], 9, 2);
        assert_eq!(ids(&taken), ["0", "1", "a", "b"], "{name}");
        assert!(taken.has_left_some, "{name}: a third job may run");
        assert_eq!(
            taken.claimed.iter().map(|claim| claim.is_limited).collect::<Vec<_>>(),
            [true, true, false, false]
        );
        let nothing = exchange_limited(fixture, &worker, &[], 9, 0);
        assert_eq!((ids(&nothing), nothing.has_left_some), (vec![], true), "{name}");
        let last = exchange_limited(fixture, &worker, &[], 9, 1);
        assert_eq!((ids(&last), last.has_left_some), (vec!["2"], false), "{name}: the queue is now full");
        fixture.retire(&worker);
    }
}

fn a_worker_skips_a_full_preferred_queue(fixture: &Fixture) {
    fill(fixture, 2);
    fixture.enqueue_all([job("a"), job("b")]);
    fixture.limit("q", Some(1), None);
    let worker = fixture.worker_serving("w", serving(&["q", "default"]));
    let lease = fixture.lease(&worker);
    assert_eq!(fixture.claim(&worker, 1), ["a"]);
    let settled = [settlement(&lease, Outcome::Success)];
    assert_eq!(
        ids(&exchange_limited(fixture, &worker, &settled, 2, 2)),
        ["1", "b"],
        "the preferred queue goes first again"
    );
}

fn a_worker_for_one_job_waits_while_its_queue_is_full(fixture: &Fixture) {
    fill(fixture, 2);
    fixture.limit("q", Some(1), None);
    let worker = fixture.worker("w");
    let lease = fixture.lease(&worker);
    let only = fixture.worker_serving("only", ServedJobs::Job(job_id("1")));
    assert_eq!(fixture.claim(&only, 1), [""; 0]);
    fixture.settle(&worker, &lease, Outcome::Success);
    assert_eq!(fixture.claim(&only, 1), ["1"]);
}

fn a_rate_allows_one_burst_and_then_single_starts(fixture: &Fixture) {
    fill(fixture, 9);
    fixture.limit("q", None, Some("3/m"));
    let [one, other] = ["one", "other"].map(|id| fixture.worker(id));
    assert_eq!(fixture.claim(&one, 2), ["0", "1"]);
    assert_eq!(fixture.claim(&other, 9), ["2"]);
    for id in ["3", "4", "5"] {
        fixture.clock.advance(Duration::from_millis(19_999));
        assert_eq!(fixture.claim(&one, 9), [""; 0]);
        fixture.pass_millis(1);
        assert_eq!(fixture.claim(&one, 9), [id]);
    }
    fixture.pass_secs(3_600);
    assert_eq!(fixture.claim(&one, 9), ["6", "7", "8"], "at most a full bucket");
}

fn an_exchange_reports_when_a_rate_allows_the_next_start(fixture: &Fixture) {
    fill(fixture, 3);
    fixture.enqueue(job("later").delay_secs(30));
    fixture.limit("q", None, Some("1/m"));
    let worker = fixture.worker("w");
    let begin = fixture.now();
    let after = |secs| Some(begin.saturating_add(Duration::from_secs(secs)));
    assert_eq!(fixture.exchange(&worker, &[], 9).next_due, after(30), "the earlier of both times");
    fixture.pass_secs(30);
    assert_eq!(ids(&fixture.exchange(&worker, &[], 9)), ["later"]);
    assert_eq!(fixture.exchange(&worker, &[], 9).next_due, after(60));
    fixture.pass_secs(30);
    let exchanged = fixture.exchange(&worker, &[], 9);
    assert_eq!((ids(&exchanged), exchanged.next_due), (vec!["1"], after(120)));
    fixture.pause("q");
    assert_eq!(fixture.exchange(&worker, &[], 9).next_due, None, "a paused queue has no due time");
    fixture.resume("q");
    fixture.limit("q", Some(1), Some("1/m"));
    assert_eq!(fixture.exchange(&worker, &[], 9).next_due, None, "a full queue has no due time");
}

fn an_attempt_that_never_started_returns_its_token(fixture: &Fixture) {
    fill(fixture, 4);
    fixture.limit("q", None, Some("2/h"));
    let worker = fixture.worker("w");
    let leases = fixture.leases(&worker, 9);
    assert_eq!(leases.len(), 2);
    fixture.exchange(&worker, &[Settlement::never_started(leases[0].clone())], 0);
    assert_eq!(fixture.claim(&worker, 9), ["0"], "the job gets back its position and its token");
    let killed = Settlement { duration: Duration::from_secs(1), ..settlement(&leases[1], Outcome::Released) };
    fixture.exchange(&worker, &[killed], 0);
    assert_eq!(fixture.claim(&worker, 9), [""; 0], "this attempt had started");
    let doomed = fixture.worker("doomed");
    fixture.pass_secs(1_800);
    let held: Vec<LeaseRef> = fixture.leases(&doomed, 9);
    assert_eq!(held.len(), 1);
    fixture.reap_started(&doomed, &[]);
    assert_eq!(fixture.claim(&worker, 9), ["1"], "the dead worker had not started the job");
}

fn earlier_starts_count_when_a_rate_changes(fixture: &Fixture) {
    fill(fixture, 9);
    fixture.limit("q", None, Some("4/h"));
    let worker = fixture.worker("w");
    assert_eq!(fixture.claim(&worker, 3).len(), 3);
    for rate in ["4/h", "3/h", "9/h"] {
        fixture.limit("q", None, Some(rate));
    }
    assert_eq!(fixture.claim(&worker, 9), ["3"], "setting the same rate does not refill the bucket");
    fixture.limit("q", None, None);
    fixture.limit("q", None, Some("2/h"));
    assert_eq!(fixture.claim(&worker, 9), ["4", "5"], "a new rate starts with a full bucket");
}

fn a_clock_set_back_does_not_freeze_a_rate(fixture: &Fixture) {
    fill(fixture, 3);
    fixture.limit("q", None, Some("1/s"));
    let worker = fixture.worker("w");
    assert_eq!(fixture.claim(&worker, 9), ["0"]);
    fixture.clock.jump(-86_400_000);
    assert_eq!(fixture.claim(&worker, 9), [""; 0]);
    let next = fixture.exchange(&worker, &[], 9).next_due.expect("a time");
    assert!(next.since(fixture.now()) <= Duration::from_secs(1), "{next}");
    for id in ["1", "2"] {
        fixture.pass_secs(1);
        assert_eq!(fixture.claim(&worker, 9), [id], "a second later, not a day");
    }
}

fn a_worker_is_not_idle_while_a_rate_delays_a_job(fixture: &Fixture) {
    fill(fixture, 2);
    fixture.limit("q", None, Some("1/h"));
    let worker = fixture.worker("w");
    let lease = fixture.lease(&worker);
    fixture.settle(&worker, &lease, Outcome::Success);
    assert!(!fixture.is_idle(&worker), "the rate will allow the other job to start");
    fixture.pause("q");
    assert!(fixture.is_idle(&worker), "a paused queue may never be resumed");
}

fn jobs_delayed_by_a_limit_are_not_counted_as_ahead(fixture: &Fixture) {
    fill(fixture, 5);
    fixture.enqueue(job("last").queue("other"));
    let ahead = || {
        let facts =
            fixture.store.explain_facts(&job_id("last")).expect("the facts for explain").expect("a job");
        (facts.ahead.least - facts.ahead_in_queue.least, facts.ahead_in_queue.least)
    };
    assert_eq!(ahead(), (5, 0));
    fixture.limit("q", None, Some("2/h"));
    assert_eq!(ahead(), (2, 0), "two may start");
    let worker = fixture.worker("w");
    assert_eq!(fixture.claim(&worker, 1), ["0"]);
    assert_eq!(ahead(), (1, 0));
    fixture.limit("q", Some(1), Some("2/h"));
    assert_eq!(ahead(), (0, 0), "the queue is full");
    fixture.limit("q", Some(3), None);
    assert_eq!(ahead(), (2, 0));
}

fn a_job_that_more_urgent_jobs_overtake_is_starved(fixture: &Fixture) {
    let worker = fixture.worker("w");
    let starved = || {
        let found = fixture.store.starved(fixture.now()).expect("the starved jobs");
        found.into_iter().map(|(job, since)| (job.id.to_string(), since)).collect::<Vec<_>>()
    };
    let overtaken = |id: &str| {
        let facts = fixture.store.explain_facts(&job_id(id)).expect("the facts for explain").expect("a job");
        facts.overtaken_since
    };
    fixture.enqueue_all([job("first").priority(1), job("waits"), job("waits-too")]);
    let since = fixture.job("waits").life.due_at;
    assert_eq!(fixture.claim(&worker, 1), ["first"]);
    assert_eq!(starved(), [], "`first` was there before it");
    fixture.pass_secs(60);
    fixture.enqueue(job("urgent").priority(9));
    assert_eq!(starved(), [], "no job has overtaken it yet");
    assert_eq!(fixture.claim(&worker, 1), ["urgent"]);
    assert_eq!(starved(), [("waits".to_owned(), since)]);
    assert_eq!((overtaken("waits"), overtaken("urgent")), (Some(since), None));
    assert_eq!(fixture.store.starved(since).expect("the starved jobs"), [], "not for long enough");
    assert_eq!(fixture.claim(&worker, 9), ["waits", "waits-too"]);
    assert_eq!(starved(), []);
}
