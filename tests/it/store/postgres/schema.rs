//! The schema: when it is made, and which others are refused.

use std::sync::{Arc, Barrier};
use std::thread;

use store::postgres::{PostgresStore, SCHEMA_VERSION};
use store::{JobFilter, Store, StoreError};

use crate::store::fixture::schema::Schema;
use crate::store::fixture::{ACTOR, Fixture, TestClock};
use crate::store::jobs::causes::{EARLIER_DEAD_JOBS, assert_causes_of_earlier_jobs};
use crate::store::metrics::assert_counts_from_now_on;

fn clock() -> Arc<TestClock> {
    Arc::default()
}

#[test]
fn many_processes_may_make_the_schema_at_once() {
    let schema = Schema::new();
    let barrier = Barrier::new(8);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                barrier.wait();
                schema.open(clock()).expect("a store");
            });
        }
    });
    assert_eq!(
        schema.session().run("select version || ' ' || gate from meta"),
        [format!("{SCHEMA_VERSION} 1")]
    );
}

#[test]
fn a_reader_makes_no_schema() {
    let schema = Schema::new();
    let refused = PostgresStore::open_read_only(&schema.address, None);
    assert!(matches!(refused, Err(StoreError::NotAStore { .. })), "{refused:?}");
    let name = &schema.address.schema;
    let made = schema.session().run(&format!("select nspname from pg_namespace where nspname = '{name}'"));
    assert_eq!(made, [""; 0]);
}

#[test]
fn a_schema_of_another_program_is_left_alone() {
    let schema = Schema::new();
    let session = schema.session();
    session.run(&format!("create schema {0}; create table {0}.theirs ()", schema.address.schema));
    let refused = schema.open(clock()).expect_err("it is not ours");
    assert!(refused.to_string().contains("another program"), "{refused}");
    let tables = format!("select tablename from pg_tables where schemaname = '{}'", schema.address.schema);
    assert_eq!(session.run(&tables), ["theirs"]);
}

#[test]
fn an_empty_schema_that_exists_becomes_a_queue() {
    let schema = Schema::new();
    schema.session().run(&format!("create schema {}", schema.address.schema));
    Fixture::postgres_in(&schema, clock()).enqueue("a");
}

#[test]
fn an_older_schema_is_never_migrated_by_opening_it() {
    let schema = Schema::new();
    drop(schema.open(clock()).expect("a store"));
    let session = schema.session();
    session.run("update meta set version = 0");
    for _ in 0..2 {
        let refused = schema.open(clock());
        let is_refused = matches!(refused, Err(StoreError::TooOld { found: 0, needed: SCHEMA_VERSION }));
        assert!(is_refused, "{refused:?}");
    }
    assert_eq!(session.run("select version from meta"), ["0"]);
}

#[test]
fn a_current_schema_is_migrated_to_itself() {
    let schema = Schema::new();
    assert_eq!(PostgresStore::migrate(&schema.address).expect("made"), SCHEMA_VERSION);
    let fixture = Fixture::postgres_in(&schema, clock());
    fixture.enqueue("a");
    assert_eq!(PostgresStore::migrate(&schema.address).expect("nothing to do"), SCHEMA_VERSION);
    fixture.record("a");
}

/// The statements of each version of this program.
const VERSIONS: [&str; 4] = [
    include_str!("../../../../migrations/postgres/0001_schema.sql"),
    include_str!("../../../../migrations/postgres/0002_hosts.sql"),
    include_str!("../../../../migrations/postgres/0003_minutes.sql"),
    include_str!("../../../../migrations/postgres/0004_causes.sql"),
];

/// A schema of an earlier version with these rows.
fn schema_of_version(earlier: i64, rows: &str) -> Schema {
    let schema = Schema::new();
    let session = schema.session();
    session.run(&format!("create schema {}", schema.address.schema));
    for statements in &VERSIONS[..usize::try_from(earlier).expect("a small number")] {
        session.run(statements);
    }
    session.run(&format!(
        "insert into meta (version, gate) values ({earlier}, 1)
         on conflict (one) do update set version = excluded.version; {rows}"
    ));
    schema
}

#[test]
fn dead_jobs_of_every_earlier_version_get_their_causes() {
    for earlier in 1..4 {
        let rows =
            "insert into queues (id, name, created_at) overriding system value values (1, 'default', 1);";
        let schema = schema_of_version(earlier, &(rows.to_owned() + EARLIER_DEAD_JOBS));
        assert_eq!(PostgresStore::migrate(&schema.address).expect("migrated"), SCHEMA_VERSION);
        assert_causes_of_earlier_jobs(&Fixture::postgres_in(&schema, clock()));
    }
}

#[test]
fn a_schema_of_every_earlier_version_keeps_its_counters_and_counts_from_then_on() {
    for earlier in 1..SCHEMA_VERSION {
        let schema = schema_of_version(
            earlier,
            "insert into queues (name, created_at) values ('default', 1);
             insert into counters (queue_id, state, count) select id, 'dead', 7 from queues",
        );
        assert_eq!(PostgresStore::migrate(&schema.address).expect("migrated"), SCHEMA_VERSION);
        assert_counts_from_now_on(&Fixture::postgres_in(&schema, clock()));
    }
}

/// A migration that renames the gate waits for writers, and from then on keeps out programs that do not know it.
#[test]
fn a_newer_schema_with_another_gate_is_read_but_not_written() {
    let schema = Schema::new();
    let fixture = Fixture::postgres_in(&schema, clock());
    fixture.enqueue("a");
    schema.session().run(
        "begin; alter table gate_1 rename to gate_2; update meta set version = version + 1, gate = 2; commit",
    );
    let refused = fixture.store.note("x", ACTOR, "x").expect_err("the gate is another");
    assert!(matches!(refused, StoreError::TooNew { .. }), "{refused}");
    fixture.job("a");
    let refused = schema.open(clock()).expect_err("it is too new");
    assert!(matches!(refused, StoreError::TooNew { .. }), "{refused}");
}

/// Earlier programs can live with a newer version that has kept the gate.
#[test]
fn a_newer_schema_with_the_same_gate_is_used() {
    let schema = Schema::new();
    drop(schema.open(clock()).expect("a store"));
    schema.session().run("update meta set version = version + 1");
    Fixture::postgres_in(&schema, clock()).enqueue("a");
}

#[test]
fn the_name_of_a_schema_is_never_taken_for_sql() {
    let mut schema = Schema::new();
    schema.address.schema += r#" "x'; --\"#;
    let store = schema.open(clock()).expect("a store");
    let store: &dyn Store = &store;
    assert_eq!(store.select(&JobFilter::default(), None, 9).expect("read"), []);
}

/// Without a clock of a test the server's counts, also between two transactions.
#[test]
fn the_time_is_that_of_the_server() {
    let schema = Schema::new();
    let store = PostgresStore::open(&schema.address, None).expect("a store");
    let server = || -> i64 {
        let millis =
            schema.session().run("select cast(extract(epoch from clock_timestamp()) * 1000 as bigint)");
        millis[0].parse().expect("a number")
    };
    let before = server();
    let now = store.now().expect("the time").as_millis();
    let after = server();
    // The two clocks are read at slightly different moments.
    assert!((before - 50..=after + 50).contains(&now), "{before} <= {now} <= {after}");
}
