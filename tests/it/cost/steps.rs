//! The cost of a verb of the store does not depend on the number of jobs.
//!
//! The cost is counted in steps of SQLite's virtual machine: a few for each row that a statement reads, the same on
//! every machine. A table scan, or a loop over its rows in the store, shows as a sum that grows with the table.

use std::collections::BTreeMap;

use rusqlite::Connection;
use tempfile::TempDir;

use super::{plans, scenario, tape};
use crate::store::fixture::Fixture;

/// Jobs of each kind: enough for a difference, and few enough to be fast.
const FEW_JOBS: usize = 60;
const MANY_JOBS: usize = 600;
/// In percent: the order of leases, and which B-tree pages are split, vary between runs.
const TOLERANCE_PERCENT: u64 = 10;

/// Statements that read or change rows. Statements that begin and end transactions are not checked.
const CHECKED_STATEMENTS: [&str; 4] = ["select ", "insert ", "update ", "delete "];

/// Statements that read more rows when there are more jobs, because the user asked for them.
const GROWING: [(&str, &str); 6] = [
    ("select j.queue_id, w.due_at from waiting w", "due jobs that no worker has made ready, up to a bound"),
    ("select queue_id, state, due_at from jobs where batch_id", "the newest jobs of a batch, up to a bound"),
    (
        "select finished_at, attempts, options from jobs where state = 'dead'",
        "a few hundred dead jobs at most",
    ),
    ("select seq, finished_at from jobs where cause_id", "the dead jobs of a cause, until a time is over"),
    ("select seq, environment_id from jobs", "a periodic pass over all jobs, a few in each step"),
    (
        "select count(*) from (select 1 from ready where queue_id = :queue_id and priority =",
        "the jobs ahead of a job, up to a bound",
    ),
];

/// The steps of each statement while every verb was used, and the home of the store.
struct StatementCosts {
    folder: TempDir,
    steps: BTreeMap<String, Steps>,
}

/// The steps of all executions of a statement, and of the longest one.
#[derive(Clone, Copy, Debug, Default)]
struct Steps {
    sum: u64,
    most: u64,
}

impl Steps {
    fn add(&mut self, steps: u64) {
        self.sum += steps;
        self.most = self.most.max(steps);
    }

    fn has_grown_since(self, before: Self) -> bool {
        let has_grown = |now: u64, before: u64| now > before + before * TOLERANCE_PERCENT / 100;
        has_grown(self.sum, before.sum) || has_grown(self.most, before.most)
    }
}

fn use_every_verb(jobs_of_each_kind: usize) -> StatementCosts {
    let folder = tempfile::tempdir().expect("a temporary folder");
    tape::start();
    let fixture = Fixture::sqlite_in(folder.path());
    scenario::fill(&fixture, jobs_of_each_kind);
    tape::take();
    scenario::use_every_verb(&fixture);
    let runs = tape::take();
    tape::stop();
    fixture.recount();
    drop(fixture);
    let mut steps: BTreeMap<String, Steps> = BTreeMap::new();
    for run in runs.into_iter().filter(|run| CHECKED_STATEMENTS.iter().any(|verb| run.sql.starts_with(verb)))
    {
        steps.entry(run.sql).or_default().add(run.steps.into());
    }
    StatementCosts { folder, steps }
}

#[test]
fn with_ten_times_the_jobs_no_verb_takes_more_steps() {
    let (few, many) = (use_every_verb(FEW_JOBS), use_every_verb(MANY_JOBS));
    let mut grown = Vec::new();
    for (sql, steps) in &many.steps {
        let before = few.steps.get(sql).unwrap_or_else(|| panic!("executed only with many jobs: {sql}"));
        let is_exempt = GROWING.iter().any(|(beginning, _)| sql.starts_with(beginning));
        if !is_exempt && steps.has_grown_since(*before) {
            grown.push(format!("{before:?} became {steps:?}: {sql}"));
        }
    }
    assert!(grown.is_empty(), "{grown:#?}");
    for (beginning, why) in GROWING {
        let [few, many] = [&few, &many].map(|costs| costs.of(beginning));
        assert!(many.sum > 2 * few.sum, "no longer grows, so remove its exemption ({why}): {beginning}");
    }
}

impl StatementCosts {
    fn of(&self, beginning: &str) -> Steps {
        let found = self.steps.iter().find(|(sql, _)| sql.starts_with(beginning));
        *found.unwrap_or_else(|| panic!("not executed: {beginning}")).1
    }
}

#[test]
fn every_executed_statement_finds_its_rows_by_an_index() {
    let costs = use_every_verb(FEW_JOBS);
    let connection = Connection::open(costs.folder.path().join("queue.db")).expect("the database opens");
    for sql in costs.steps.keys() {
        plans::assert_finds_rows_by_index(&connection, sql);
    }
    // Plans that depend on table statistics would change with the data.
    let statistics: u32 = connection
        .query_row("select count(*) from sqlite_schema where name like 'sqlite_stat%'", [], |row| row.get(0))
        .expect("the schema is read");
    assert_eq!(statistics, 0, "the store has no table statistics");
}

#[test]
fn the_scenario_executes_every_statement() {
    let costs = use_every_verb(FEW_JOBS);
    let is_run = |known: &String| costs.steps.keys().any(|sql| plans::is_instance(sql, known));
    let missing: Vec<String> = plans::statements().into_iter().filter(|known| !is_run(known)).collect();
    assert!(missing.is_empty(), "the scenario does not execute these statements: {missing:#?}");
}
