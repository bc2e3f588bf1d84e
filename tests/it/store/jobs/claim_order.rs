//! The order in which jobs are claimed.

use domain::job::life::StateName;
use domain::job::outcome::Outcome;
use store::{JobFilter, LeaseRef, Phase, ServedJobs};

use crate::store::fixture::new_job::{JobBuilder, batch_name, job, job_id};
use crate::store::fixture::{FAILURE, Fixture, every_store, serving};

every_store!(
    jobs_are_claimed_by_priority_then_due_time_then_enqueue_order,
    single_and_bulk_claims_have_the_same_order,
    all_queues_share_one_order,
    named_queues_are_served_strictly_in_order,
    a_paused_queue_is_not_served_until_it_is_resumed,
    a_released_job_keeps_its_position_and_a_lost_job_loses_it,
    a_retried_job_is_ordered_by_its_new_due_time,
    a_failed_job_is_claimed_exactly_when_it_is_due,
    a_scheduled_job_is_claimed_exactly_when_it_is_due,
    a_job_is_given_to_one_worker_only,
    a_worker_for_one_job_claims_only_that_job,
    a_worker_for_one_job_waits_until_it_can_run,
    a_worker_for_a_batch_claims_only_jobs_of_that_batch,
    a_worker_for_a_batch_is_idle_when_the_batch_is_finished,
    a_worker_for_a_batch_finds_jobs_whatever_the_clock_says,
    a_clock_set_back_does_not_delay_ready_jobs,
    a_clock_set_back_delays_only_jobs_with_a_due_time,
);

fn jobs_are_claimed_by_priority_then_due_time_then_enqueue_order(fixture: &Fixture) {
    // In the expected order of claims once all are due; enqueued in another order.
    let specs = [
        job("urgent-late").priority(i32::MAX).delay_secs(5),
        job("high-1").priority(1),
        job("high-2").priority(1),
        job("high-soon").priority(1).delay_secs(1),
        job("plain-1"),
        job("plain-2"),
        job("plain-soon").delay_secs(1),
        job("plain-late").delay_secs(5),
        job("low").priority(-1),
        job("lowest").priority(i32::MIN),
    ];
    for at in [9, 7, 4, 0, 6, 1, 8, 5, 3, 2] {
        fixture.enqueue(specs[at].clone());
    }
    fixture.pass_secs(5);
    let worker = fixture.worker("w");
    assert_eq!(
        fixture.claim(&worker, 100),
        [
            "urgent-late",
            "high-1",
            "high-2",
            "high-soon",
            "plain-1",
            "plain-2",
            "plain-soon",
            "plain-late",
            "low",
            "lowest"
        ]
    );
}

/// Jobs with mixed queues, priorities and times.
fn mixture(count: u64) -> impl Iterator<Item = JobBuilder> {
    (0..count).map(|n| {
        job(&format!("j{n}"))
            .queue(["a", "b", "c"][(n * 7 % 3) as usize])
            .priority([0, 2, -1, 0, 1][(n * 3 % 5) as usize])
            .delay_secs(n * 5 % 4)
    })
}

fn single_and_bulk_claims_have_the_same_order(fixture: &Fixture) {
    fixture.enqueue_all(mixture(40));
    fixture.pass_secs(10);
    let ready = JobFilter::in_phase(Phase::Ready);
    let listed = fixture.list_by(&ready, 100);
    let worker = fixture.worker("w");
    let mut claimed = Vec::new();
    for want in [1, 1, 2, 7, 1, 100] {
        claimed.extend(fixture.claim(&worker, want));
    }
    assert_eq!(claimed.len(), 40);
    assert_eq!(claimed, listed, "the phase `ready` lists jobs in claim order");
}

fn all_queues_share_one_order(fixture: &Fixture) {
    fixture.enqueue_all([
        job("a1").queue("a"),
        job("b1").queue("b").priority(1),
        job("b2").queue("b"),
        job("a2").queue("a").priority(1),
        job("c1").queue("c"),
    ]);
    let worker = fixture.worker("w");
    assert_eq!(fixture.claim(&worker, 9), ["b1", "a2", "a1", "b2", "c1"]);
}

fn named_queues_are_served_strictly_in_order(fixture: &Fixture) {
    fixture.enqueue_all([
        job("b-urgent").queue("b").priority(9),
        job("b-plain").queue("b"),
        job("a-low").queue("a").priority(-9),
        job("c").queue("c").priority(99),
    ]);
    let worker = fixture.worker_serving("w", serving(&["a", "later", "b"]));
    assert_eq!(fixture.claim(&worker, 1), ["a-low"]);
    assert_eq!(fixture.claim(&worker, 9), ["b-urgent", "b-plain"], "only from queues that the worker serves");

    fixture.enqueue_all([job("b2").queue("b"), job("later").queue("later")]);
    assert_eq!(
        fixture.claim(&worker, 9),
        ["later", "b2"],
        "a queue created later keeps its position in the list"
    );
}

fn a_paused_queue_is_not_served_until_it_is_resumed(fixture: &Fixture) {
    fixture.enqueue_all([job("a").queue("a").priority(5), job("b").queue("b")]);
    fixture.pause("a");
    let all = fixture.worker("all");
    let ordered = fixture.worker_serving("ordered", serving(&["a", "b"]));
    assert_eq!(fixture.claim(&ordered, 9), ["b"], "the worker claims from the next queue");
    assert_eq!(fixture.claim(&all, 9), [""; 0]);

    // A job that becomes due in a paused queue waits as well.
    fixture.enqueue(job("later").queue("a").delay_secs(1));
    fixture.pass_secs(1);
    assert_eq!(fixture.claim(&all, 9), [""; 0]);
    fixture.resume("a");
    assert_eq!(fixture.claim(&all, 9), ["a", "later"]);
}

fn a_released_job_keeps_its_position_and_a_lost_job_loses_it(fixture: &Fixture) {
    let names = ["a", "b", "c", "d"];
    for name in names {
        fixture.enqueue(name);
        fixture.pass_millis(10);
    }
    let (first, second) = (fixture.worker("w1"), fixture.worker("w2"));
    let a = fixture.lease(&first);
    let b = fixture.lease(&second);
    assert!(fixture.settle(&second, &b, Outcome::Released));
    assert_eq!(fixture.reap(&first), [a]);
    fixture.pass_millis(10);
    fixture.enqueue("later");
    assert_eq!(
        fixture.claim(&second, 9),
        ["b", "c", "d", "a", "later"],
        "a lost job goes last, because it may have crashed its worker"
    );
}

fn a_retried_job_is_ordered_by_its_new_due_time(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue_all([job("again").priority(1).max_retries(0)]);
    fixture.run(&worker, FAILURE);
    assert_eq!(fixture.state("again"), StateName::Dead);
    fixture.enqueue(job("before").priority(1));
    fixture.pass_millis(1);
    fixture.retry("again");
    fixture.pass_millis(1);
    fixture.enqueue(job("after").priority(1));
    assert_eq!(fixture.claim(&worker, 9), ["before", "again", "after"]);
}

fn a_failed_job_is_claimed_exactly_when_it_is_due(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue("a");
    fixture.run(&worker, FAILURE);
    fixture.pass_millis(500);
    fixture.enqueue("before");
    fixture.pass_millis(1_499);
    assert_eq!(fixture.claim(&worker, 1), ["before"], "the backoff is not over");
    assert_eq!(fixture.claim(&worker, 1), [""; 0]);
    fixture.pass_millis(1);
    assert_eq!(fixture.state("a"), StateName::Failed, "the state changes when the job is claimed");
    assert_eq!(fixture.claim(&worker, 1), ["a"]);
}

fn a_scheduled_job_is_claimed_exactly_when_it_is_due(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue(job("a").priority(9).delay_secs(2));
    fixture.pass_millis(1_999);
    assert_eq!(fixture.claim(&worker, 1), [""; 0]);
    fixture.pass_millis(1);
    assert_eq!(fixture.claim(&worker, 1), ["a"]);
}

fn a_job_is_given_to_one_worker_only(fixture: &Fixture) {
    fixture.enqueue_all((0..10).map(|n| job(&format!("j{n}"))));
    let workers = ["w1", "w2", "w3"].map(|id| fixture.worker(id));
    let mut claimed = Vec::new();
    for round in 0..4 {
        for worker in &workers {
            claimed.extend(fixture.claim(worker, round % 2 + 1));
        }
    }
    let mut distinct = claimed.clone();
    distinct.sort();
    distinct.dedup();
    assert_eq!((claimed.len(), distinct.len()), (10, 10), "{claimed:?}");
}

const DAY_MILLIS: i64 = 24 * 3_600 * 1_000;

fn a_worker_for_one_job_claims_only_that_job(fixture: &Fixture) {
    fixture.enqueue_all([job("urgent").priority(9), job("mine").queue("q").priority(-9), job("other")]);
    let worker = fixture.worker_serving("w", ServedJobs::Job(job_id("mine")));
    assert_eq!(fixture.claim(&worker, 0), [""; 0]);
    assert_eq!(fixture.claim(&worker, 9), ["mine"], "despite jobs ahead of it");
    assert_eq!(fixture.claim(&worker, 9), [""; 0]);
    fixture.extend(&worker, &LeaseRef { job: job_id("mine"), attempt: 1 });
    fixture.cancel("mine");
    assert_eq!(fixture.claim(&worker, 9), [""; 0]);
}

fn a_worker_for_one_job_waits_until_it_can_run(fixture: &Fixture) {
    let worker = fixture.worker_serving("w", ServedJobs::Job(job_id("mine")));
    assert_eq!(fixture.claim(&worker, 1), [""; 0], "the job does not exist yet");
    fixture.enqueue_all([job("parent"), job("mine").after(&["parent"])]);
    assert_eq!(fixture.claim(&worker, 1), [""; 0], "the job is blocked");
    let other = fixture.worker("other");
    fixture.run(&other, Outcome::Success);
    fixture.pause("default");
    assert_eq!(fixture.claim(&worker, 1), [""; 0], "its queue is paused");
    fixture.resume("default");
    fixture.run(&worker, FAILURE);
    assert_eq!(fixture.claim(&worker, 1), [""; 0], "the job waits for its retry");
    fixture.pass_secs(2);
    assert_eq!(fixture.claim(&worker, 1), ["mine"]);
}

fn a_worker_for_a_batch_claims_only_jobs_of_that_batch(fixture: &Fixture) {
    let worker = fixture.worker_serving("w", ServedJobs::Batch(batch_name("mine")));
    assert_eq!(fixture.claim(&worker, 9), [""; 0], "the batch does not exist yet");
    fixture.enqueue_all([job("other"), job("others").batch("other")]);
    fixture.pass_secs(1);
    fixture.enqueue_all((1..=3).map(|at| job(&format!("mine-{at}")).batch("mine")));
    assert_eq!(fixture.claim(&worker, 2), ["mine-1", "mine-2"], "despite jobs ahead of them");
    assert!(!fixture.is_idle(&worker));
    fixture.enqueue_all([
        job("urgent").batch("mine").priority(9),
        job("elsewhere").batch("mine").queue("q"),
        job("blocked").batch("mine").after(&["other"]),
    ]);
    assert_eq!(
        fixture.claim(&worker, 9),
        ["urgent", "mine-3", "elsewhere"],
        "in any queue, with any priority"
    );
    assert_eq!(fixture.claim(&worker, 9), [""; 0]);
}

fn a_worker_for_a_batch_is_idle_when_the_batch_is_finished(fixture: &Fixture) {
    fixture.enqueue_all([job("a").batch("mine").max_retries(1), job("other")]);
    let worker = fixture.worker_serving("w", ServedJobs::Batch(batch_name("mine")));
    fixture.pause("default");
    assert_eq!(fixture.claim(&worker, 9), [""; 0], "its queue is paused");
    fixture.resume("default");
    fixture.run(&worker, FAILURE);
    assert_eq!((fixture.claim(&worker, 9), fixture.is_idle(&worker)), (vec![], false));
    fixture.pass_secs(2);
    fixture.run(&worker, Outcome::Success);
    assert!(fixture.is_idle(&worker));
    fixture.remove("a");
    assert!(fixture.is_idle(&worker), "the batch is gone");
}

fn a_worker_for_a_batch_finds_jobs_whatever_the_clock_says(fixture: &Fixture) {
    fixture.enqueue(job("first").batch("mine"));
    fixture.clock.jump(-DAY_MILLIS);
    fixture.enqueue(job("second").batch("mine"));
    let worker = fixture.worker_serving("w", ServedJobs::Batch(batch_name("mine")));
    assert_eq!(fixture.claim(&worker, 9), ["second", "first"]);
}

fn a_clock_set_back_does_not_delay_ready_jobs(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue_all([job("released"), job("a"), job("b").priority(1).max_retries(0)]);
    fixture.run(&worker, FAILURE);
    fixture.retry("b");
    let lease = fixture.lease(&worker);
    fixture.settle(&worker, &lease, Outcome::Released);

    fixture.clock.jump(-DAY_MILLIS);
    fixture.enqueue("new");
    assert_eq!(fixture.claim(&worker, 9), ["b", "new", "released", "a"], "ordered by due time");
}

fn a_clock_set_back_delays_only_jobs_with_a_due_time(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue(job("backoff").priority(9));
    fixture.run(&worker, FAILURE);
    fixture.enqueue_all([job("timed").priority(9).delay_secs(2), job("plain")]);
    fixture.pass_secs(2);
    // Promotes all three.
    fixture.exchange(&worker, &[], 0);

    fixture.clock.jump(-DAY_MILLIS);
    assert_eq!(fixture.claim(&worker, 1), ["plain"], "jobs that are not due again are skipped");
    assert_eq!(fixture.claim(&worker, 9), [""; 0]);
    fixture.clock.jump(DAY_MILLIS);
    assert_eq!(fixture.claim(&worker, 9), ["backoff", "timed"]);
}
