//! What a verb of the store costs does not depend on how many jobs there are.
//!
//! The cost is counted in steps of SQLite's machine: a few for each row that a statement looks at, the same on every
//! machine. A walk over a table, or a loop over its rows in the store, shows as a sum that grows with the table.

use std::collections::BTreeMap;

use rusqlite::Connection;
use tempfile::TempDir;

use super::{plans, scenario, tape};
use crate::store::fixture::Fixture;

/// Jobs of each kind: enough for a difference, and few enough to be quick.
const FEW: usize = 60;
const MANY: usize = 600;
/// In percent, for what is not the same each time: the order of leases, and which branch of a tree is split.
const TOLERANCE: u64 = 10;

/// Statements that read or change rows; what begins and ends transactions costs what it costs.
const VERBS: [&str; 4] = ["select ", "insert ", "update ", "delete "];

/// Statements that look at more rows where there are more jobs, because that is what somebody asks for.
const GROWING: [(&str, &str); 5] = [
    ("select queue_id, state from jobs where batch_id", "the newest jobs of a batch, up to a bound"),
    ("select finished_at from jobs where state = 'dead'", "a few hundred dead jobs at most"),
    ("select reason, error, count(*)", "an overview of all dead jobs"),
    ("select seq, environment_id from jobs", "now and then all jobs are walked along, a few in each step"),
    (
        "select count(*) from (select 1 from ready where queue_id = ?1 and priority =",
        "who is before a job, up to a bound",
    ),
];

/// What each statement took while every verb was used, and the home in which that happened.
struct Used {
    folder: TempDir,
    steps: BTreeMap<String, Steps>,
}

/// The steps of all runs of a statement, and of the longest one.
#[derive(Clone, Copy, Debug, Default)]
struct Steps {
    sum: u64,
    most: u64,
}

impl Steps {
    fn note(&mut self, steps: u64) {
        self.sum += steps;
        self.most = self.most.max(steps);
    }

    fn has_grown_since(self, before: Self) -> bool {
        let has_grown = |now: u64, before: u64| now > before + before * TOLERANCE / 100;
        has_grown(self.sum, before.sum) || has_grown(self.most, before.most)
    }
}

fn use_every_verb(jobs_of_each_kind: usize) -> Used {
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
    for run in runs.into_iter().filter(|run| VERBS.iter().any(|verb| run.sql.starts_with(verb))) {
        steps.entry(run.sql).or_default().note(run.steps.into());
    }
    Used { folder, steps }
}

#[test]
fn with_ten_times_the_jobs_no_verb_takes_more_steps() {
    let (few, many) = (use_every_verb(FEW), use_every_verb(MANY));
    let mut grown = Vec::new();
    for (sql, steps) in &many.steps {
        let before =
            few.steps.get(sql).unwrap_or_else(|| panic!("only run where there are many jobs: {sql}"));
        let is_known = GROWING.iter().any(|(beginning, _)| sql.starts_with(beginning));
        if !is_known && steps.has_grown_since(*before) {
            grown.push(format!("{before:?} became {steps:?}: {sql}"));
        }
    }
    assert!(grown.is_empty(), "{grown:#?}");
    for (beginning, why) in GROWING {
        let [few, many] = [&few, &many].map(|used| used.of(beginning));
        assert!(many.sum > 2 * few.sum, "it grows no more, so it needs no excuse ({why}): {beginning}");
    }
}

impl Used {
    fn of(&self, beginning: &str) -> Steps {
        let found = self.steps.iter().find(|(sql, _)| sql.starts_with(beginning));
        *found.unwrap_or_else(|| panic!("it is not run: {beginning}")).1
    }
}

#[test]
fn whatever_is_run_finds_its_rows_by_an_index() {
    let used = use_every_verb(FEW);
    let connection = Connection::open(used.folder.path().join("queue.db")).expect("the database opens");
    for sql in used.steps.keys() {
        plans::finds_rows_by_index(&connection, sql);
    }
    // Plans that depend on what is counted in a table are others tomorrow.
    let statistics: u32 = connection
        .query_row("select count(*) from sqlite_schema where name like 'sqlite_stat%'", [], |row| row.get(0))
        .expect("the schema is read");
    assert_eq!(statistics, 0, "nobody has counted what is in the tables");
}

#[test]
fn every_statement_is_among_those_that_are_run() {
    let used = use_every_verb(FEW);
    let is_run = |known: &String| used.steps.keys().any(|sql| plans::is_instance(sql, known));
    let missing: Vec<String> = plans::statements().into_iter().filter(|known| !is_run(known)).collect();
    assert!(missing.is_empty(), "the scenario leaves these out: {missing:#?}");
}
