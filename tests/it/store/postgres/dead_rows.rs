//! The cost of claims where the server cannot remove the dead rows of earlier ones, counted in entries of the index.

use std::sync::Arc;

use domain::values::name::WorkerId;

use crate::store::fixture::new_job::job;
use crate::store::fixture::schema::Schema;
use crate::store::fixture::{FAILURE, Fixture, TestClock};

const DEAD: u64 = 200_000;
const CLAIMS: usize = 20;

/// How many entries of the index of `ready` were read since the schema was made. The numbers of a session are complete when
/// it has ended.
fn entries_read(schema: &Schema) -> u64 {
    let read = schema.session().run(&format!(
        "select idx_tup_read from pg_stat_user_indexes
         where schemaname = '{}' and indexrelname = 'ready_order'",
        schema.address.schema
    ));
    read[0].parse().expect("a number")
}

/// How many entries these claims read.
fn entries_of_claims(schema: &Schema, clock: &Arc<TestClock>, worker: &WorkerId, count: usize) -> u64 {
    let before = entries_read(schema);
    let fixture = Fixture::postgres_in(schema, clock.clone());
    for _ in 0..count {
        assert_eq!(fixture.claims(worker, 1).len(), 1);
    }
    drop(fixture);
    entries_read(schema) - before
}

#[test]
fn dead_rows_that_an_old_snapshot_keeps_cost_a_claim_nothing() {
    let (schema, clock) = (Schema::new(), Arc::new(TestClock::default()));
    let worker = {
        let fixture = Fixture::postgres_in(&schema, clock.clone());
        fixture.enqueue_all((0..4 * CLAIMS).map(|at| job(&format!("j{at}"))));
        fixture.worker("w")
    };
    let analyst = schema.session();
    analyst.run("begin isolation level repeatable read; select 1 from ready limit 1");
    let clean = entries_of_claims(&schema, &clock, &worker, CLAIMS);
    // As if so many jobs of the queue had been claimed before these.
    schema.session().run(&format!(
        "insert into ready select queue_id, -1, due_at, -number from generate_series(1, {DEAD}) number
                                  cross join (select queue_id, due_at from ready limit 1) r;
         delete from ready where seq < 0; delete from floors"
    ));
    let first = entries_of_claims(&schema, &clock, &worker, 1);
    assert!(first >= DEAD, "without a floor a claim reads {first} entries, so they are still there");
    clock.advance(std::time::Duration::from_secs(2));
    // Its first claim raises the floors.
    entries_of_claims(&schema, &clock, &worker, 1);
    let dead = entries_of_claims(&schema, &clock, &worker, CLAIMS);
    assert!(dead <= 2 * clean, "{dead} entries for {CLAIMS} claims, and {clean} without dead rows");
    drop(analyst);
}

/// A floor that is too high would hide a job. Everything that makes a job ready lowers it.
#[test]
fn a_job_that_becomes_ready_below_the_floor_is_claimed() {
    let schema = Schema::new();
    let fixture = Fixture::postgres_in(&schema, Arc::new(TestClock::default()));
    let worker = fixture.worker("w");
    fixture.enqueue_all([job("dead").max_retries(0), job("later").delay_secs(5)]);
    fixture.run(&worker, FAILURE);
    // As if the floor had been raised while the job was becoming due.
    let raise = "update floors set rank = 0, due_at = due_at + 3600000, seq = 0";
    for (make_ready, claimed) in [
        (Box::new(|| fixture.pass_secs(6)) as Box<dyn Fn()>, "later"),
        (Box::new(|| drop(fixture.retry("dead"))), "dead"),
        (Box::new(|| fixture.enqueue(job("new"))), "new"),
        (Box::new(|| fixture.enqueue(job("key").unique_key("k"))), "key"),
    ] {
        schema.session().run(raise);
        make_ready();
        assert_eq!(fixture.claim(&worker, 5), [claimed]);
    }
    fixture.recount();
}
