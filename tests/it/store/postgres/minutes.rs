//! Several workers count in the same minute: each in a row of its own, and nothing is lost.

use std::sync::{Arc, Barrier};
use std::thread;

use domain::job::outcome::Outcome;

use crate::store::fixture::new_job::job;
use crate::store::fixture::schema::Schema;
use crate::store::fixture::{Fixture, TestClock};

const WORKERS: usize = 6;
const JOBS_PER_WORKER: usize = 20;

fn started(fixture: &Fixture) -> u64 {
    let queues = fixture.store.total_metrics().expect("the totals");
    queues.iter().map(|queue| queue.activity.started).sum()
}

/// All rows of the table, as `resolution minute shard`.
fn shards(schema: &Schema) -> Vec<String> {
    schema.session().run(
        "select (id >> 61) || ' ' || ((id >> 31) & 1073741823) || ' ' || shard from minutes order by id, shard",
    )
}

#[test]
fn workers_count_in_rows_of_their_own_which_become_one_when_the_minute_is_over() {
    let schema = Schema::new();
    let clock = Arc::new(TestClock::default());
    let observer = Fixture::postgres_in(&schema, clock.clone());
    let jobs = WORKERS * JOBS_PER_WORKER;
    observer.enqueue_all((0..jobs).map(|number| job(&format!("j-{number}"))));
    let barrier = Barrier::new(WORKERS);
    thread::scope(|scope| {
        for number in 0..WORKERS {
            let fixture = Fixture::postgres_in(&schema, clock.clone());
            let barrier = &barrier;
            scope.spawn(move || {
                let worker = fixture.worker(&format!("w{number}"));
                barrier.wait();
                for _ in 0..JOBS_PER_WORKER {
                    fixture.run(&worker, Outcome::Success);
                }
            });
        }
    });
    let rows = shards(&schema);
    assert_eq!(rows.len(), WORKERS, "{rows:?}");
    assert!(rows.iter().all(|row| !row.ends_with(" 0")), "{rows:?}");
    assert_eq!(started(&observer), jobs as u64);
    observer.pass_secs(60);
    assert!(observer.store.sample_depth().expect("a sample"));
    let rows = shards(&schema);
    assert_eq!(rows.len(), 2, "the minute before, and the sample of this one: {rows:?}");
    assert!(rows.iter().all(|row| row.ends_with(" 0")), "{rows:?}");
    assert_eq!(started(&observer), jobs as u64);
}

/// A worker whose session was lost may take a turn while the server still runs the one before.
#[test]
fn turns_of_one_worker_in_two_sessions_count_every_job() {
    let schema = Schema::new();
    let clock = Arc::new(TestClock::default());
    let observer = Fixture::postgres_in(&schema, clock.clone());
    let worker = &observer.worker("w");
    let jobs = WORKERS * JOBS_PER_WORKER;
    observer.enqueue_all((0..jobs).map(|number| job(&format!("j-{number}"))));
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            let fixture = Fixture::postgres_in(&schema, clock.clone());
            scope.spawn(move || {
                for _ in 0..JOBS_PER_WORKER {
                    fixture.run(worker, Outcome::Success);
                }
            });
        }
    });
    assert_eq!(shards(&schema).len(), 1, "{:?}", shards(&schema));
    assert_eq!(started(&observer), jobs as u64);
}

/// Without a sampler for a long time, the rows stay apart until they get coarser. A step may end between two of them.
#[test]
fn rows_that_were_never_gathered_are_folded_too() {
    let schema = Schema::new();
    let fixture = Fixture::postgres_in(&schema, Arc::new(TestClock::default()));
    for number in 0..3 {
        let worker = fixture.worker(&format!("w{number}"));
        fixture.enqueue(job(&format!("j-{number}")));
        fixture.run(&worker, Outcome::Success);
    }
    fixture.pass_secs(3 * 24 * 3_600);
    assert_eq!(shards(&schema).len(), 3);
    for left in [3, 2, 1] {
        let what = store::Prunable::Minutes { retain: None };
        let step = store::PruneStep {
            what,
            before: fixture.now(),
            after: store::Cursor::default(),
            limit: 1,
            dry_run: false,
        };
        fixture.store.prune(&step).expect("a step");
        let rows = shards(&schema);
        assert_eq!(rows.len(), left, "{rows:?}");
        assert_eq!(started(&fixture), 3);
    }
    assert!(shards(&schema)[0].starts_with("1 "), "{:?}", shards(&schema));
}
