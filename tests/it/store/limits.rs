//! Limits of queues: how many jobs run at once, and how many start in how much time.

use std::time::Duration;

use domain::job::outcome::Outcome;
use domain::values::name::WorkerId;
use store::{Exchange, ExchangeResult, LeaseRef, ServedJobs, Settlement};

use super::fixture::{FAILURE, Fixture, every_store, serving, settlement};
use super::new_job::{job, job_id};

every_store!(
    a_limit_counts_what_runs_with_all_workers_together,
    whatever_ends_an_attempt_makes_room_for_the_next,
    what_is_full_costs_the_others_nothing,
    a_limit_below_what_runs_stops_nothing_and_starts_nothing,
    a_worker_gets_no_more_of_limited_queues_than_it_has_use_for,
    a_preferred_queue_that_is_full_lets_the_next_one_have_its_turn,
    a_worker_for_one_job_waits_for_its_queue,
    a_rate_lets_a_periods_jobs_start_and_then_one_by_one,
    a_turn_says_when_a_rate_lets_the_next_job_start,
    what_did_not_start_gives_its_token_back,
    what_has_started_counts_when_a_rate_is_changed,
    a_clock_set_back_does_not_freeze_a_rate,
    a_full_queue_keeps_a_worker_that_waits_for_the_end,
    what_its_queue_holds_back_is_not_before_others,
);

/// Jobs of queue `q`, named by numbers.
fn fill(fixture: &Fixture, count: usize) {
    fixture.enqueue_all((0..count).map(|at| job(&at.to_string()).queue("q")));
}

/// A turn of a worker that has use for so many jobs of limited queues.
fn turn(
    fixture: &Fixture,
    worker: &WorkerId,
    settlements: &[Settlement],
    want: usize,
    limited: usize,
) -> ExchangeResult {
    let exchange = Exchange { worker, settlements, want, want_limited: limited };
    fixture.store.exchange(&exchange).expect("a turn")
}

fn ids(exchanged: &ExchangeResult) -> Vec<&str> {
    exchanged.claimed.iter().map(|claim| claim.lease.job.as_str()).collect()
}

fn a_limit_counts_what_runs_with_all_workers_together(fixture: &Fixture) {
    fill(fixture, 9);
    fixture.limit("q", Some(3), None);
    let [one, other] = ["one", "other"].map(|id| fixture.worker(id));
    let first = fixture.leases(&one, 2);
    assert_eq!(fixture.claim(&other, 9), ["2"], "the third");
    assert_eq!(fixture.claim(&one, 9), [""; 0]);
    let settled = first.iter().map(|lease| settlement(lease, Outcome::Success)).collect::<Vec<_>>();
    assert_eq!(ids(&turn(fixture, &one, &settled, 9, 9)), ["3", "4"], "in the turn that made room");
    fixture.limit("q", None, None);
    assert_eq!(fixture.claim(&other, 9), ["5", "6", "7", "8"]);
}

fn whatever_ends_an_attempt_makes_room_for_the_next(fixture: &Fixture) {
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
    assert_eq!(fixture.claim(&next, 9), ["1"], "it was taken back from the dead");
}

fn what_is_full_costs_the_others_nothing(fixture: &Fixture) {
    fixture.enqueue_all([job("full-1").queue("full").priority(9), job("full-2").queue("full").priority(9)]);
    fixture.enqueue_all([job("held-1").queue("held").priority(5), job("held-2").queue("held").priority(5)]);
    fixture.enqueue_all([job("plain-1"), job("plain-2")]);
    fixture.limit("full", Some(1), None);
    fixture.limit("held", None, Some("1/h"));
    let worker = fixture.worker("w");
    assert_eq!(fixture.claim(&worker, 9), ["full-1", "held-1", "plain-1", "plain-2"]);
}

fn a_limit_below_what_runs_stops_nothing_and_starts_nothing(fixture: &Fixture) {
    fill(fixture, 5);
    let worker = fixture.worker("w");
    let leases = fixture.leases(&worker, 3);
    fixture.limit("q", Some(1), None);
    for lease in &leases[..2] {
        let settled = [settlement(lease, Outcome::Success)];
        assert_eq!(ids(&turn(fixture, &worker, &settled, 9, 9)), [""; 0]);
    }
    let settled = [settlement(&leases[2], Outcome::Success)];
    assert_eq!(ids(&turn(fixture, &worker, &settled, 9, 9)), ["3"]);
}

fn a_worker_gets_no_more_of_limited_queues_than_it_has_use_for(fixture: &Fixture) {
    fill(fixture, 4);
    fixture.enqueue_all([job("a"), job("b")]);
    fixture.limit("q", Some(3), None);
    for (name, served) in [("all", ServedJobs::All), ("in-order", serving(&["q", "default"]))] {
        let worker = fixture.worker_serving(name, served);
        let taken = turn(fixture, &worker, &[], 9, 2);
        assert_eq!(ids(&taken), ["0", "1", "a", "b"], "{name}");
        assert!(taken.has_left_some, "{name}: a third may run");
        assert_eq!(
            taken.claimed.iter().map(|claim| claim.is_limited).collect::<Vec<_>>(),
            [true, true, false, false]
        );
        let nothing = turn(fixture, &worker, &[], 9, 0);
        assert_eq!((ids(&nothing), nothing.has_left_some), (vec![], true), "{name}");
        let last = turn(fixture, &worker, &[], 9, 1);
        assert_eq!((ids(&last), last.has_left_some), (vec!["2"], false), "{name}: now it is full");
        fixture.retire(&worker);
    }
}

fn a_preferred_queue_that_is_full_lets_the_next_one_have_its_turn(fixture: &Fixture) {
    fill(fixture, 2);
    fixture.enqueue_all([job("a"), job("b")]);
    fixture.limit("q", Some(1), None);
    let worker = fixture.worker_serving("w", serving(&["q", "default"]));
    let lease = fixture.lease(&worker);
    assert_eq!(fixture.claim(&worker, 1), ["a"]);
    let settled = [settlement(&lease, Outcome::Success)];
    assert_eq!(ids(&turn(fixture, &worker, &settled, 2, 2)), ["1", "b"], "it goes first again");
}

fn a_worker_for_one_job_waits_for_its_queue(fixture: &Fixture) {
    fill(fixture, 2);
    fixture.limit("q", Some(1), None);
    let worker = fixture.worker("w");
    let lease = fixture.lease(&worker);
    let only = fixture.worker_serving("only", ServedJobs::Job(job_id("1")));
    assert_eq!(fixture.claim(&only, 1), [""; 0]);
    fixture.settle(&worker, &lease, Outcome::Success);
    assert_eq!(fixture.claim(&only, 1), ["1"]);
}

fn a_rate_lets_a_periods_jobs_start_and_then_one_by_one(fixture: &Fixture) {
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
    assert_eq!(fixture.claim(&one, 9), ["6", "7", "8"], "no more than the bucket holds");
}

fn a_turn_says_when_a_rate_lets_the_next_job_start(fixture: &Fixture) {
    fill(fixture, 3);
    fixture.enqueue(job("later").delay_secs(30));
    fixture.limit("q", None, Some("1/m"));
    let worker = fixture.worker("w");
    let begin = fixture.now();
    let after = |secs| Some(begin.saturating_add(Duration::from_secs(secs)));
    assert_eq!(fixture.exchange(&worker, &[], 9).next_due, after(30), "what comes first");
    fixture.pass_secs(30);
    assert_eq!(ids(&fixture.exchange(&worker, &[], 9)), ["later"]);
    assert_eq!(fixture.exchange(&worker, &[], 9).next_due, after(60));
    fixture.pass_secs(30);
    let exchanged = fixture.exchange(&worker, &[], 9);
    assert_eq!((ids(&exchanged), exchanged.next_due), (vec!["1"], after(120)));
    fixture.pause("q");
    assert_eq!(fixture.exchange(&worker, &[], 9).next_due, None, "a paused queue waits for somebody");
    fixture.resume("q");
    fixture.limit("q", Some(1), Some("1/m"));
    assert_eq!(fixture.exchange(&worker, &[], 9).next_due, None, "a full one for an end");
}

fn what_did_not_start_gives_its_token_back(fixture: &Fixture) {
    fill(fixture, 4);
    fixture.limit("q", None, Some("2/h"));
    let worker = fixture.worker("w");
    let leases = fixture.leases(&worker, 9);
    assert_eq!(leases.len(), 2);
    fixture.exchange(&worker, &[Settlement::never_started(leases[0].clone())], 0);
    assert_eq!(fixture.claim(&worker, 9), ["0"], "its place and its token");
    let killed = Settlement { duration: Duration::from_secs(1), ..settlement(&leases[1], Outcome::Released) };
    fixture.exchange(&worker, &[killed], 0);
    assert_eq!(fixture.claim(&worker, 9), [""; 0], "this one had started");
    let doomed = fixture.worker("doomed");
    fixture.pass_secs(1_800);
    let held: Vec<LeaseRef> = fixture.leases(&doomed, 9);
    assert_eq!(held.len(), 1);
    fixture.reap_started(&doomed, &[]);
    assert_eq!(fixture.claim(&worker, 9), ["1"], "what a dead worker had not started");
}

fn what_has_started_counts_when_a_rate_is_changed(fixture: &Fixture) {
    fill(fixture, 9);
    fixture.limit("q", None, Some("4/h"));
    let worker = fixture.worker("w");
    assert_eq!(fixture.claim(&worker, 3).len(), 3);
    for rate in ["4/h", "3/h", "9/h"] {
        fixture.limit("q", None, Some(rate));
    }
    assert_eq!(fixture.claim(&worker, 9), ["3"], "setting it again fills nothing");
    fixture.limit("q", None, None);
    fixture.limit("q", None, Some("2/h"));
    assert_eq!(fixture.claim(&worker, 9), ["4", "5"], "a new rate begins full");
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

fn a_full_queue_keeps_a_worker_that_waits_for_the_end(fixture: &Fixture) {
    fill(fixture, 2);
    fixture.limit("q", None, Some("1/h"));
    let worker = fixture.worker("w");
    let lease = fixture.lease(&worker);
    fixture.settle(&worker, &lease, Outcome::Success);
    assert!(!fixture.orders(&worker).idle, "its rate will let the other start");
    fixture.pause("q");
    assert!(fixture.orders(&worker).idle, "nobody knows when somebody lets it go on");
}

fn what_its_queue_holds_back_is_not_before_others(fixture: &Fixture) {
    fill(fixture, 5);
    fixture.enqueue(job("last").queue("other"));
    let ahead = || {
        let seen = fixture.store.explain_facts(&job_id("last")).expect("what surrounds it").expect("a job");
        (seen.ahead_elsewhere.least, seen.ahead_in_queue.least)
    };
    assert_eq!(ahead(), (5, 0));
    fixture.limit("q", None, Some("2/h"));
    assert_eq!(ahead(), (2, 0), "two may start");
    let worker = fixture.worker("w");
    assert_eq!(fixture.claim(&worker, 1), ["0"]);
    assert_eq!(ahead(), (1, 0));
    fixture.limit("q", Some(1), Some("2/h"));
    assert_eq!(ahead(), (0, 0), "it is full");
    fixture.limit("q", Some(3), None);
    assert_eq!(ahead(), (2, 0));
}
