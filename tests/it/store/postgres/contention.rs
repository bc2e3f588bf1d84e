//! Rows that several transactions want at the same time.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use domain::job::life::StateName;
use domain::job::outcome::Outcome;
use store::{Cursor, EnqueueError, EnqueueRefusal, EnqueueResult, Prunable, PruneStep};

use crate::store::fixture::new_job::job;
use crate::store::fixture::schema::Schema;
use crate::store::fixture::{Fixture, TestClock, settlement};

const THREADS: usize = 8;

/// Runs a function in several threads, each with a session of its own.
fn in_threads(schema: &Schema, clock: &Arc<TestClock>, work: impl Fn(&Fixture, usize) + Sync) {
    thread::scope(|scope| {
        for number in 0..THREADS {
            let (fixture, work) = (Fixture::postgres_in(schema, clock.clone()), &work);
            scope.spawn(move || work(&fixture, number));
        }
    });
}

fn queue() -> (Schema, Arc<TestClock>, Fixture) {
    let (schema, clock) = (Schema::new(), Arc::new(TestClock::default()));
    let observer = Fixture::postgres_in(&schema, clock.clone());
    (schema, clock, observer)
}

/// Settles and claims until everything is done.
fn work_off(fixture: &Fixture, name: &str, left: &AtomicUsize) {
    let worker = fixture.worker(name);
    let mut held = Vec::new();
    while left.load(Ordering::SeqCst) > 0 {
        let exchanged = fixture.exchange(&worker, &held, 3);
        assert_eq!(exchanged.stale, [], "no other worker has the lease");
        left.fetch_sub(exchanged.settled.len(), Ordering::SeqCst);
        held = exchanged.claimed.iter().map(|claim| settlement(&claim.lease, Outcome::Success)).collect();
    }
}

#[test]
fn a_dependent_that_is_enqueued_while_its_parents_finish_runs() {
    const PARENTS: usize = 60;
    let (schema, clock, observer) = queue();
    observer.enqueue_all((0..PARENTS).map(|at| job(&format!("p{at}"))));
    // Half of the threads add three dependents for each pair of parents, in crossing orders.
    let left = AtomicUsize::new(PARENTS + PARENTS * THREADS / 2);
    in_threads(&schema, &clock, |fixture, number| {
        if number < THREADS / 2 {
            for at in 0..PARENTS {
                let (first, second) = (format!("p{at}"), format!("p{}", PARENTS - 1 - at));
                let parents = if number % 2 == 0 { [&*first, &*second] } else { [&*second, &*first] };
                fixture.enqueue(job(&format!("c{number}-{at}")).after(&parents));
            }
        } else {
            work_off(fixture, &format!("w{number}"), &left);
        }
    });
    observer.recount();
    let unfinished = schema.session().run("select id from jobs where state <> 'completed'");
    assert_eq!(unfinished, [""; 0]);
}

/// Two threads delete finished jobs while others make new jobs depend on them, and take their unique keys.
#[test]
fn retention_meets_jobs_that_get_dependents_and_lose_their_keys() {
    const PARENTS: usize = 120;
    let (schema, clock, observer) = queue();
    let key = |at: usize| format!("k{at}");
    observer.enqueue_all((0..PARENTS).map(|at| job(&format!("p{at}")).unique_key(&key(at)).tags(&["t"])));
    work_off(&observer, "w", &AtomicUsize::new(PARENTS));
    observer.pass_secs(1);
    let (what, before) = (Prunable::Jobs(StateName::Completed), observer.now());
    in_threads(&schema, &clock, |fixture, number| {
        if number < 2 {
            let mut after = Some(Cursor::default());
            while let Some(from) = after {
                let step = PruneStep { what, before, after: from, limit: 7, dry_run: false };
                after = fixture.store.prune(&step).expect("a step of retention").next;
            }
            return;
        }
        for at in (0..PARENTS).rev() {
            let child = job(&format!("c{number}-{at}")).after(&[&*format!("p{at}")]);
            match fixture.try_enqueue([child]) {
                Ok(_) => {}
                Err(EnqueueError::Refused(refused)) => {
                    assert!(matches!(refused.reason, EnqueueRefusal::UnknownDependency(_)), "{refused:?}");
                }
                Err(other) => panic!("{other:?}"),
            }
            fixture.enqueue_all([job(&format!("n{number}-{at}")).unique_key(&key(at))]);
        }
    });
    observer.recount();
    let session = schema.session();
    let rows_of_missing = |table: &str, column: &str| {
        session.run(&format!(
            "select 1 from {table} t where not exists (select 1 from jobs j where j.seq = t.{column})"
        ))
    };
    assert_eq!(rows_of_missing("dependencies", "parent_seq"), [""; 0], "no link leads to a deleted job");
    assert_eq!(rows_of_missing("attempts", "seq"), [""; 0], "no attempt of a deleted job is left");
    assert_eq!(rows_of_missing("unique_keys", "seq"), [""; 0], "no key is held by a deleted job");
    assert_eq!(session.run("select count(*) from unique_keys"), [PARENTS.to_string()]);
}

#[test]
fn one_of_several_enqueues_gets_a_unique_key() {
    const KEYS: usize = 20;
    let (schema, clock, observer) = queue();
    let holders: Mutex<BTreeMap<usize, Vec<String>>> = Mutex::default();
    in_threads(&schema, &clock, |fixture, number| {
        for key in 0..KEYS {
            let new = job(&format!("j{number}-{key}")).unique_key(&format!("k{key}"));
            let holder = match &fixture.enqueue_all([new])[0] {
                EnqueueResult::Created(id) | EnqueueResult::Existing(id) => id.to_string(),
            };
            holders.lock().expect("no thread panicked").entry(key).or_default().push(holder);
        }
    });
    for (key, holders) in holders.into_inner().expect("no thread panicked") {
        assert!(holders.iter().all(|holder| *holder == holders[0]), "key {key}: {holders:?}");
    }
    assert_eq!(schema.session().run("select count(*) from jobs"), [KEYS.to_string()]);
    observer.recount();
}

#[test]
fn several_enqueues_make_each_queue_and_batch_once() {
    const EACH: usize = 20;
    let (schema, clock, observer) = queue();
    in_threads(&schema, &clock, |fixture, number| {
        for at in 0..EACH {
            let new = job(&format!("j{number}-{at}")).queue(&format!("q{at}")).batch(&format!("b{at}"));
            fixture.enqueue(new);
        }
    });
    observer.recount();
    let session = schema.session();
    for table in ["queues", "batches"] {
        assert_eq!(session.run(&format!("select count(*) from {table}")), [EACH.to_string()], "{table}");
    }
    let counted = session.run("select count(*) from batch_counters where state = 'pending' and count = 8");
    assert_eq!(counted, [EACH.to_string()]);
}

#[test]
fn several_enqueues_of_one_id_store_one_job() {
    const IDS: usize = 20;
    let (schema, clock, observer) = queue();
    let created = AtomicUsize::new(0);
    in_threads(&schema, &clock, |fixture, _| {
        for at in 0..IDS {
            let answers = fixture.enqueue_all([job(&format!("j{at}")).if_absent().batch("b")]);
            created.fetch_add(answers.iter().filter(|answer| answer.is_created()).count(), Ordering::SeqCst);
        }
    });
    assert_eq!(created.into_inner(), IDS);
    observer.recount();
}

#[test]
fn a_rate_is_exact_while_several_claim() {
    const RATE: usize = 10;
    let (schema, clock, observer) = queue();
    observer.limit("rated", None, Some(&format!("{RATE}/h")));
    observer.enqueue_all((0..60).map(|at| job(&format!("r-{at}")).queue("rated")));
    observer.enqueue_all((0..60).map(|at| job(&format!("o-{at}"))));
    let started = AtomicUsize::new(0);
    in_threads(&schema, &clock, |fixture, number| {
        let worker = fixture.worker(&format!("w{number}"));
        for _ in 0..12 {
            let claimed = fixture.claims(&worker, 2);
            let rated = claimed.iter().filter(|claim| claim.queue.as_str() == "rated").count();
            started.fetch_add(rated, Ordering::SeqCst);
            let settlements: Vec<_> =
                claimed.iter().map(|claim| settlement(&claim.lease, Outcome::Success)).collect();
            fixture.exchange(&worker, &settlements, 0);
        }
    });
    assert_eq!(started.into_inner(), RATE, "the bucket was full, and no time passed");
    let completed = schema.session().run("select count(*) from jobs where state = 'completed'");
    assert_eq!(completed, [(60 + RATE).to_string()], "the queue without a rate was worked off");
    observer.recount();
    assert_eq!(observer.state("r-59"), StateName::Pending);
}
