//! A program with more migrations than this one brings a database of this one up to date, and nothing is lost.

use std::process::{Command, Stdio};
use std::sync::OnceLock;

use domain::job::life::StateName;
use domain::job::outcome::Outcome;
use store::sqlite::SCHEMA_VERSION;
use store::{JobVerb, StoreError};

use super::{Home, value};
use crate::cli::harness::{MADE_UP_VERSION, PROGRAM, made_up_migrations};
use crate::store::fixture::new_job::job;
use crate::store::fixture::{FAILURE, change_all};
use crate::store::jobs::causes::{EARLIER_DEAD_JOBS, assert_causes_of_earlier_jobs};
use crate::store::metrics::assert_counts_from_now_on;

/// A database as this program leaves it, with jobs in several states, which no process has open.
pub(super) fn first_database() -> Home {
    let home = Home::new();
    let fixture = home.fixture();
    let worker = fixture.worker("w");
    for (id, outcome) in [("completed", Outcome::Success), ("dead", FAILURE)] {
        fixture.enqueue(job(id).max_retries(0));
        fixture.run(&worker, outcome);
    }
    fixture.enqueue_all([job("pending"), job("cancelled")]);
    fixture.cancel("cancelled");
    drop(fixture);
    home
}

/// The program, which brings the database up to date before it lists the jobs.
pub(super) fn list(home: &Home) -> Command {
    program(home, &["list", "--json"])
}

/// The program, which creates a queue and prints an empty list of jobs.
pub(super) fn create(home: &Home) -> Command {
    program(home, &["enqueue", "--json", "[]"])
}

fn program(home: &Home, args: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.arg("--home").arg(home.folder.path()).args(args);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The same by a program that knows newer versions of the schema.
pub(super) fn list_by_newer(home: &Home) -> Command {
    by_newer(home, list(home))
}

fn by_newer(home: &Home, mut command: Command) -> Command {
    command.env("QUEUECTL_MIGRATIONS", made_up_migrations(home.folder.path()));
    command
}

/// All entries of a schema.
type Schema = Vec<[Option<String>; 4]>;

pub(super) fn schema(home: &Home) -> Schema {
    let connection = home.connect();
    let mut select = connection
        .prepare("select type, name, tbl_name, sql from sqlite_schema order by type, name")
        .expect("the schema");
    let rows = select.query_map([], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?]));
    rows.expect("the schema").collect::<Result<Vec<_>, _>>().expect("the schema")
}

pub(super) fn version(home: &Home) -> i64 {
    value(&home.connect(), "pragma user_version").parse().expect("a number")
}

/// The database has the old schema or the new one. The next program brings it up to date, and everything is there.
#[track_caller]
pub(super) fn assert_intact(home: &Home) {
    let found = version(home);
    assert!(found == SCHEMA_VERSION || found == MADE_UP_VERSION, "there is no version {found}");
    let listed = list_by_newer(home).output().expect("it runs");
    assert!(listed.status.success(), "{listed:?}");
    assert_eq!(version(home), MADE_UP_VERSION);
    let connection = home.connect();
    let states = "select group_concat(id || ' ' || state || ' ' || attempts order by seq) from jobs";
    assert_eq!(
        value(&connection, states),
        "completed completed 1,dead dead 1,pending pending 0,cancelled cancelled 0"
    );
    let copied = "select count(*) from jobs join made_up using (seq, state) where jobs.doubled = 2 * seq";
    assert_eq!(value(&connection, copied), "4", "the added migrations are complete");
    assert_eq!(value(&connection, "select count(*) from attempts"), "2");
    assert_eq!(value(&connection, "select sum(count) from counters"), "4");
    assert_eq!(value(&connection, "pragma integrity_check"), "ok");
    drop(connection);
    assert_eq!(schema(home), *newest_schema());
    let refused = list(home).output().expect("it runs");
    assert_eq!(refused.status.code(), Some(7), "this program does not know that version: {refused:?}");
}

/// The schema of a database that has had the newest version from the beginning.
fn newest_schema() -> &'static Schema {
    static NEWEST: OnceLock<Schema> = OnceLock::new();
    NEWEST.get_or_init(|| {
        let home = Home::new();
        assert!(by_newer(&home, create(&home)).output().expect("it runs").status.success());
        schema(&home)
    })
}

#[test]
fn an_older_database_is_migrated_and_is_then_like_a_new_one() {
    assert_intact(&first_database());
}

/// The statements of each version of this program.
const VERSIONS: [&str; 4] = [
    include_str!("../../../../migrations/sqlite/0001_schema.sql"),
    include_str!("../../../../migrations/sqlite/0002_hosts.sql"),
    include_str!("../../../../migrations/sqlite/0003_minutes.sql"),
    include_str!("../../../../migrations/sqlite/0004_causes.sql"),
];

/// A database of an earlier version with these rows.
fn database_of_version(earlier: i64, rows: &str) -> Home {
    let home = Home::new();
    let connection = home.connect();
    for statements in &VERSIONS[..usize::try_from(earlier).expect("a small number")] {
        connection.execute_batch(statements).expect("a migration");
    }
    connection.execute_batch(rows).expect("rows of the earlier version");
    connection.pragma_update(None, "application_id", 0x5175_6575).expect("the mark of a queue");
    connection.pragma_update(None, "user_version", earlier).expect("the version is set");
    home
}

#[test]
fn dead_jobs_of_every_earlier_version_get_their_causes() {
    for earlier in 1..4 {
        let rows = "insert into queues (id, name, created_at) values (1, 'default', 1);".to_owned();
        let home = database_of_version(earlier, &(rows + EARLIER_DEAD_JOBS));
        assert_causes_of_earlier_jobs(&home.fixture());
    }
}

#[test]
fn a_database_of_every_earlier_version_keeps_its_counters_and_counts_from_then_on() {
    let newest = schema(&Home::with_queue());
    for earlier in 1..SCHEMA_VERSION {
        let home = database_of_version(
            earlier,
            "insert into queues (id, name, created_at) values (1, 'default', 1);
             insert into counters (queue_id, state, count) values (1, 'dead', 7);",
        );
        let fixture = home.fixture();
        assert_counts_from_now_on(&fixture);
        drop(fixture);
        assert_eq!((version(&home), schema(&home)), (SCHEMA_VERSION, newest.clone()));
    }
}

#[test]
fn a_migration_that_fails_changes_nothing() {
    let home = first_database();
    let before = schema(&home);
    let broken = home.folder.path().join("broken.sql");
    std::fs::write(&broken, "create table half (done integer); insert into nowhere values (1);")
        .expect("a file");
    let refused = list(&home).env("QUEUECTL_MIGRATIONS", &broken).output().expect("it runs");
    assert!(!refused.status.success(), "{refused:?}");
    assert_eq!((version(&home), schema(&home)), (SCHEMA_VERSION, before));
    assert!(list(&home).output().expect("it runs").status.success(), "this program still reads it");
    assert_intact(&home);
}

#[test]
fn a_worker_finishes_only_under_migrations_that_all_allow_it() {
    let home = Home::new();
    let fixture = home.fixture();
    let worker = fixture.worker("w");
    fixture.enqueue("a");
    let lease = fixture.lease(&worker);
    assert!(fixture.store.finish_under_newer_schema().expect("asked"), "the schema is the one that it knows");
    let migrate = |statements: &str| {
        home.connect().execute_batch(statements).expect("migrated");
    };
    let is_refused = || {
        let heartbeat = fixture.store.extend(&worker, std::slice::from_ref(&lease));
        matches!(heartbeat, Err(StoreError::TooNew { .. }))
    };
    let (next, last) = (SCHEMA_VERSION + 1, SCHEMA_VERSION + 2);
    migrate(&format!("pragma user_version = {next}"));
    assert!(is_refused() && !fixture.store.finish_under_newer_schema().expect("asked"), "nothing allows it");
    migrate(&format!(
        "create table finishable_versions (version integer primary key) strict;
         insert into finishable_versions values ({next})"
    ));
    assert!(is_refused(), "only a worker that finishes may write");
    assert!(fixture.store.finish_under_newer_schema().expect("asked"));
    assert!(!is_refused());
    migrate(&format!("pragma user_version = {last}"));
    assert!(
        is_refused() && !fixture.store.finish_under_newer_schema().expect("asked"),
        "the second says nothing"
    );
    migrate(&format!("insert into finishable_versions values ({last})"));
    assert!(fixture.store.finish_under_newer_schema().expect("asked"));
    assert!(fixture.settle(&worker, &lease, Outcome::Success));
    migrate(&format!("pragma user_version = {SCHEMA_VERSION}"));
}

#[test]
fn fault_35_an_open_store_refuses_to_write_after_a_newer_program_migrated_it() {
    let home = Home::new();
    let fixture = home.fixture();
    fixture.enqueue("before");
    assert!(list_by_newer(&home).output().expect("it runs").status.success());
    let refused =
        change_all(fixture.store.as_ref(), JobVerb::CANCEL, &["before".parse().expect("an id")], "tester")
            .expect_err("the schema is newer");
    assert!(matches!(refused, StoreError::TooNew { found: MADE_UP_VERSION, .. }), "{refused}");
    assert_eq!(
        fixture.state("before"),
        StateName::Pending,
        "nothing changed, and the store can still be read"
    );
}
