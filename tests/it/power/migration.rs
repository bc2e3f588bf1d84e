//! FAULTS 35: a power cut during a schema migration leaves the old queue or the new one.

use std::fs;
use std::path::Path;
use std::process::Command;

use rusqlite::Connection;

use super::recording::Recording;
use super::trial::{Plan, assert_harmless};
use crate::cli::harness::made_up_migrations;

const FIRST_SCHEMA: &str = include_str!("../../../migrations/sqlite/0001_schema.sql");
const FIRST_JOBS: &str = "
    insert into queues (id, name, created_at) values (1, 'default', 1);
    insert into jobs (seq, id, queue_id, priority, state, due_at, attempts, max_retries, created_at, updated_at, command)
    values (1, 'old-1', 1, 0, 'pending', 1, 0, 3, 1, 1, 'true'), (2, 'old-2', 1, 0, 'pending', 1, 0, 3, 1, 1, 'true');
    insert into ready values (1, 0, 1, 1), (1, 0, 1, 2);
    insert into counters values (1, 'pending', 2);
    pragma application_id = 1366648181; pragma user_version = 1;";

/// Creates a home with a schema version that knew only the first version of the schema.
fn first_home(home: &Path) {
    fs::create_dir_all(home).expect("the home is created");
    fs::write(home.join("queue.db-gate"), "queuectl\n").expect("the gate is written");
    let database = Connection::open(home.join("queue.db")).expect("the database is created");
    let properties = "pragma page_size = 2048; pragma auto_vacuum = incremental; pragma journal_mode = wal;";
    for statements in [properties, FIRST_SCHEMA, FIRST_JOBS] {
        database.execute_batch(statements).expect("the statements are valid");
    }
}

#[test]
fn fault_35_a_power_cut_during_a_migration_loses_nothing() {
    const NAME: &str = "fault_35_a_power_cut_during_a_migration_loses_nothing";
    if std::env::var_os("QUEUECTL_MIGRATIONS").is_none() {
        return run_with_made_up_migrations(NAME);
    }
    let recording = Recording::on_home(first_home, &["old-1", "old-2"]);
    let recording = recording.record(|recording| recording.enqueue("new", "true"));
    assert_harmless(recording, Plan::new(35, 40), NAME);
}

/// Runs a test of this module again in a process of its own: the checker is part of it and has to know the migrations too.
fn run_with_made_up_migrations(test: &str) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (_, module) = module_path!().split_once("::").expect("it is not the root");
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.arg("--exact").arg(format!("{module}::{test}"));
    let output =
        command.env("QUEUECTL_MIGRATIONS", made_up_migrations(folder.path())).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
