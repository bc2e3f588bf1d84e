//! Batches: their counters, and when they are finished.

use std::time::Duration;

use domain::job::life::StateName;
use domain::job::outcome::Outcome;
use domain::values::timestamp::Timestamp;
use proptest::collection::vec;
use proptest::prelude::{any, proptest};
use store::{Batch, EnqueueResult, JobFilter, Phase, Settlement};

use super::fixture::new_job::{batch_name, job};
use super::fixture::{FAILURE, Fixture, every_store, settlement};

every_store!(
    a_batch_is_finished_with_its_last_job,
    added_or_retried_jobs_reopen_a_batch,
    a_batch_is_deleted_with_its_last_job,
    existing_jobs_do_not_join_a_batch,
    the_newest_batches_come_first,
    the_jobs_of_a_batch_are_listed,
    the_typical_duration_comes_from_the_latest_attempts,
    the_rest_of_a_batch_is_grouped_by_queue,
    the_job_that_becomes_due_last_is_known,
    a_cancelled_dependent_counts_as_finished,
);

fn batch(fixture: &Fixture, name: &str) -> Option<Batch> {
    fixture.store.batch(&batch_name(name)).expect("batch")
}

fn finished_at(fixture: &Fixture, name: &str) -> Option<i64> {
    batch(fixture, name).expect("the batch exists").finished_at.map(Timestamp::as_millis)
}

fn a_batch_is_finished_with_its_last_job(fixture: &Fixture) {
    let worker = fixture.worker("w");
    fixture.enqueue_all([job("a").batch("b"), job("b").batch("b").max_retries(0), job("c").batch("b")]);
    fixture.enqueue(job("other"));
    let created_at = fixture.now();
    fixture.pass_secs(1);
    fixture.run(&worker, Outcome::Success);
    fixture.run(&worker, FAILURE);
    assert_eq!(finished_at(fixture, "b"), None);
    fixture.run(&worker, FAILURE);
    assert_eq!(finished_at(fixture, "b"), None, "the job will be retried");
    fixture.pass_secs(10);
    fixture.cancel("c");
    assert_eq!(finished_at(fixture, "b"), Some(fixture.now().as_millis()));
    let batch = batch(fixture, "b").expect("the batch exists");
    assert_eq!((batch.total(), batch.finished(), batch.unsuccessful()), (3, 3, 2));
    assert_eq!(batch.created_at, created_at);
}

fn added_or_retried_jobs_reopen_a_batch(fixture: &Fixture) {
    fixture.enqueue_all([job("a").batch("b"), job("b").batch("b")]);
    fixture.cancel("a");
    fixture.cancel("b");
    assert!(finished_at(fixture, "b").is_some());
    fixture.retry("a");
    assert_eq!(finished_at(fixture, "b"), None);
    fixture.cancel("a");
    assert!(finished_at(fixture, "b").is_some());
    fixture.enqueue(job("c").batch("b"));
    assert_eq!(finished_at(fixture, "b"), None);
    fixture.remove("c");
    assert!(finished_at(fixture, "b").is_some(), "the last unfinished job is removed");
}

fn a_batch_is_deleted_with_its_last_job(fixture: &Fixture) {
    fixture.enqueue_all([job("a").batch("b"), job("b").batch("b")]);
    fixture.remove("a");
    assert_eq!(batch(fixture, "b").expect("the batch exists").total(), 1);
    fixture.remove("b");
    assert_eq!(batch(fixture, "b"), None);
    fixture.enqueue(job("c").batch("b"));
    assert_eq!(batch(fixture, "b").expect("a new batch exists").total(), 1);
}

fn existing_jobs_do_not_join_a_batch(fixture: &Fixture) {
    fixture.enqueue_all([job("a"), job("u").unique_key("k")]);
    let answers = fixture.enqueue_all([job("a").batch("b").if_absent(), job("v").batch("b").unique_key("k")]);
    assert!(answers.iter().all(|answer| matches!(answer, EnqueueResult::Existing(_))));
    assert_eq!(batch(fixture, "b"), None, "the batch has no jobs");
    assert_eq!(fixture.job("a").batch, None);
}

fn the_newest_batches_come_first(fixture: &Fixture) {
    fixture.enqueue_all([job("a").batch("x"), job("b").batch("y"), job("c").batch("x"), job("d").batch("z")]);
    let names = |limit| {
        let batches = fixture.store.batches(limit).expect("batches");
        batches.iter().map(|batch| batch.name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(names(usize::MAX), ["z", "y", "x"]);
    assert_eq!(names(1), ["z"]);
    assert_eq!(names(0), [""; 0]);
}

fn the_jobs_of_a_batch_are_listed(fixture: &Fixture) {
    fixture.enqueue_all([
        job("a").batch("b").queue("q"),
        job("b"),
        job("c").batch("b").tags(&["t"]).priority(1),
        job("d").batch("b").delay_secs(9),
    ]);
    let all = JobFilter { batch: Some(batch_name("b")), ..JobFilter::default() };
    let in_phase = |phase| JobFilter { phases: vec![phase], ..all.clone() };
    for (filter, expected) in [
        (all.clone(), vec!["d", "c", "a"]),
        (JobFilter { tag: Some("t".to_owned()), ..all.clone() }, vec!["c"]),
        (in_phase(Phase::Ready), vec!["c", "a"]),
        (in_phase(Phase::Scheduled), vec!["d"]),
        (in_phase(Phase::State(StateName::Pending)), vec!["d", "c", "a"]),
        (in_phase(Phase::State(StateName::Dead)), vec![]),
    ] {
        assert_eq!(fixture.list_by(&filter, 1), expected, "{filter:?}");
    }
    assert_eq!(fixture.job("a").batch, Some(batch_name("b")));
}

fn the_typical_duration_comes_from_the_latest_attempts(fixture: &Fixture) {
    let typical = || fixture.store.eta_facts(&batch_name("none")).expect("the ETA facts").typical;
    assert_eq!(typical(), None);
    let worker = fixture.worker("w");
    for (id, millis) in [("a", 100), ("b", 300)] {
        fixture.enqueue(id);
        let lease = fixture.lease(&worker);
        let took = Duration::from_millis(millis);
        let settled = Settlement { duration: took, ..settlement(&lease, Outcome::Success) };
        fixture.exchange(&worker, &[settled], 0);
    }
    assert_eq!(typical(), Some(Duration::from_millis(200)));
}

fn the_rest_of_a_batch_is_grouped_by_queue(fixture: &Fixture) {
    let queue_samples = || fixture.store.eta_facts(&batch_name("b")).expect("the ETA facts").queue_samples;
    assert_eq!(queue_samples(), []);
    fixture.enqueue_all(["1", "2", "3"].map(|id| job(id).batch("b").queue("slow")));
    fixture.enqueue_all([job("4").batch("b").queue("open"), job("5").queue("open")]);
    fixture.limit("slow", Some(2), Some("10/m"));
    fixture.lease(&fixture.worker("w"));
    fixture.cancel("3");
    let seen: Vec<_> = queue_samples()
        .iter()
        .map(|sample| (sample.unfinished, sample.waiting, sample.queue.running))
        .collect();
    assert_eq!(seen, [(2, 1, 1), (1, 1, 0)], "only unfinished jobs of the batch");
    assert_eq!(
        queue_samples().iter().map(|sample| sample.queue.concurrency).collect::<Vec<_>>(),
        [Some(2), None]
    );
    assert_eq!(queue_samples()[0].queue.meter.map(|meter| meter.rate.to_string()).as_deref(), Some("10/m"));
}

fn the_job_that_becomes_due_last_is_known(fixture: &Fixture) {
    let last_due_at = || fixture.store.eta_facts(&batch_name("b")).expect("the ETA facts").last_due_at;
    assert_eq!(last_due_at(), None);
    fixture.enqueue_all([job("1").batch("b"), job("2").batch("b").delay_secs(60)]);
    assert_eq!(last_due_at(), Some(fixture.now().saturating_add(Duration::from_secs(60))));
    fixture.cancel("2");
    assert_eq!(last_due_at(), Some(fixture.now()));
}

fn a_cancelled_dependent_counts_as_finished(fixture: &Fixture) {
    fixture.enqueue_all([job("parent"), job("child").batch("b").after(&["parent"])]);
    fixture.cancel("parent");
    assert!(finished_at(fixture, "b").is_some());
}

proptest! {
    #![proptest_config(proptest::test_runner::Config { cases: 24, ..Default::default() })]

    /// The counters are correct after each step.
    #[test]
    fn counters_stay_correct(steps in vec((0..7_u8, any::<u8>()), 1..40)) {
        let fixture = Fixture::sqlite();
        let worker = fixture.worker("w");
        let mut count = 0_usize;
        for (step, die) in steps {
            let some = format!("j{}", usize::from(die) % count.max(1));
            match step {
                0 | 1 => {
                    let batch = ["x", "y"][usize::from(die) % 2];
                    fixture.enqueue(job(&format!("j{count}")).batch(batch).max_retries(u32::from(die) % 2));
                    count += 1;
                }
                2 | 3 => {
                    let outcome = if die % 2 == 0 { Outcome::Success } else { FAILURE };
                    let leases = fixture.leases(&worker, 2);
                    for lease in leases {
                        fixture.settle(&worker, &lease, outcome);
                    }
                }
                4 => drop(fixture.cancel(&some)),
                5 => drop(fixture.retry(&some)),
                _ => drop(fixture.remove(&some)),
            }
            fixture.recount();
        }
    }
}
