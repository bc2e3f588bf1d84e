//! Where very much is old, a step of forgetting it is as short as where little is.

use domain::job::outcome::Outcome;
use domain::settings::SettingKey;
use rusqlite::{Connection, params};
use store::retention::RetentionPass;
use store::settings;
use tempfile::TempDir;

use super::tape;
use crate::store::fixture::Fixture;

const FEW: usize = 1_000;
const MANY: usize = 100_000;
/// How many jobs a step forgets at most.
const STEP: usize = 250;
/// How many steps are looked at.
const STEPS: usize = 3;
/// In percent: which branches of a tree are merged is not the same each time.
const TOLERANCE: u64 = 10;
const EIGHT_DAYS: u64 = 8 * 24 * 3_600;

/// The steps of SQLite's machine in the costliest of the first steps, where so many jobs are old.
fn cost_of_a_step(old: usize) -> u64 {
    let folder = tempfile::tempdir().expect("a temporary folder");
    tape::start();
    let fixture = Fixture::sqlite_in(folder.path());
    tape::stop();
    fixture.set(SettingKey::Durability, "normal");
    finish(&fixture, &folder, old);
    fixture.pass_secs(EIGHT_DAYS);
    let settings = settings::in_force(fixture.store.as_ref()).expect("the settings");
    let mut walk = RetentionPass::by_settings(&settings, fixture.now(), "/nowhere".as_ref());
    let step = |_| {
        tape::start();
        assert!(walk.step(fixture.store.as_ref()).expect("a step"), "there is more");
        let runs = tape::take();
        tape::stop();
        let count = |beginning: &str| runs.iter().filter(|run| run.sql.starts_with(beginning)).count();
        assert_eq!((count("begin "), count("delete from jobs ")), (1, STEP), "a short transaction");
        runs.iter().map(|run| u64::from(run.steps)).sum()
    };
    (0..STEPS).map(step).max().expect("a step")
}

/// Finishes a job, and makes so many of it: to run them all would be a matter of half a minute.
fn finish(fixture: &Fixture, folder: &TempDir, count: usize) {
    let worker = fixture.worker("worker");
    fixture.enqueue("old");
    fixture.run(&worker, Outcome::Success);
    let database = Connection::open(folder.path().join("queue.db")).expect("the database opens");
    multiply(&database, "jobs", "id", "'old-' || n", count);
    multiply(&database, "attempts", "number", "number", count);
    let counted = "update counters set count = ?1 where state = 'completed'";
    database.execute(counted, params![count]).expect("it is counted");
}

/// Copies the row of the one job that there is, under other numbers. One column has a value of its own.
fn multiply(database: &Connection, table: &str, column: &str, value: &str, count: usize) {
    let others: String = database
        .query_row(
            "select group_concat(name, ', ') from pragma_table_info(?1) where name not in ('seq', ?2)",
            params![table, column],
            |row| row.get(0),
        )
        .expect("the columns of the table");
    let copy = format!(
        "insert into {table} (seq, {column}, {others})
         with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n + 1 < ?1)
         select seq + n, {value}, {others} from {table} cross join numbers"
    );
    assert_eq!(database.execute(&copy, params![count]), Ok(count - 1));
}

#[test]
fn with_a_hundred_thousand_old_jobs_a_step_of_forgetting_them_takes_no_longer() {
    let (few, many) = (cost_of_a_step(FEW), cost_of_a_step(MANY));
    assert!(many <= few + few * TOLERANCE / 100, "{few} steps became {many}");
}
