//! A step that prunes old jobs takes as long with very many of them as with few.

use domain::job::outcome::Outcome;
use domain::settings::SettingKey;
use rusqlite::{Connection, params};
use store::retention::RetentionPass;
use store::settings;
use tempfile::TempDir;

use super::tape;
use crate::store::fixture::Fixture;

const FEW_JOBS: usize = 1_000;
const MANY_JOBS: usize = 100_000;
/// The most jobs that a step deletes.
const JOBS_PER_STEP: usize = 250;
/// The number of steps measured.
const MEASURED_STEPS: usize = 3;
/// In percent: which B-tree pages are merged varies between runs.
const TOLERANCE_PERCENT: u64 = 10;
const EIGHT_DAYS: u64 = 8 * 24 * 3_600;

/// The virtual machine steps of the most expensive of the first prune steps, with this number of old jobs.
fn max_step_cost(old: usize) -> u64 {
    let folder = tempfile::tempdir().expect("a temporary folder");
    tape::start();
    let fixture = Fixture::sqlite_in(folder.path());
    tape::stop();
    fixture.set(SettingKey::Durability, "normal");
    add_finished(&fixture, &folder, old);
    fixture.pass_secs(EIGHT_DAYS);
    let settings = settings::in_force(fixture.store.as_ref()).expect("the settings");
    let mut walk = RetentionPass::by_settings(&settings, fixture.now(), "/nowhere".as_ref());
    let step = |_| {
        tape::start();
        assert!(walk.step(fixture.store.as_ref()).expect("a step"), "more jobs remain");
        let runs = tape::take();
        tape::stop();
        let count = |beginning: &str| runs.iter().filter(|run| run.sql.starts_with(beginning)).count();
        assert_eq!((count("begin "), count("delete from jobs ")), (1, JOBS_PER_STEP), "a short transaction");
        runs.iter().map(|run| u64::from(run.steps)).sum()
    };
    (0..MEASURED_STEPS).map(step).max().expect("a step")
}

/// Finishes a job and copies it `count` times: running them all would take half a minute.
fn add_finished(fixture: &Fixture, folder: &TempDir, count: usize) {
    let worker = fixture.worker("worker");
    fixture.enqueue("old");
    fixture.run(&worker, Outcome::Success);
    let database = Connection::open(folder.path().join("queue.db")).expect("the database opens");
    multiply(&database, "jobs", "id", "'old-' || n", count);
    multiply(&database, "attempts", "number", "number", count);
    let counted = "update counters set count = ?1 where state = 'completed'";
    database.execute(counted, params![count]).expect("the counter is updated");
}

/// Copies the row of the only job under other sequence numbers. One column gets its own value.
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
fn a_prune_step_takes_no_longer_with_a_hundred_thousand_old_jobs() {
    let (few, many) = (max_step_cost(FEW_JOBS), max_step_cost(MANY_JOBS));
    assert!(many <= few + few * TOLERANCE_PERCENT / 100, "{few} steps became {many}");
}
