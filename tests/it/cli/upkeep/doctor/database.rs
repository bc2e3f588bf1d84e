//! Databases that are damaged, of another version, missing, or not databases.

use std::fs;

use rusqlite::Connection;
use store::sqlite::SCHEMA_VERSION;

use super::{Diagnosis, tamper};
use crate::cli::harness::Home;

#[test]
fn fault_14_a_file_that_is_not_a_queue_is_reported() {
    for (text, message) in
        [("x", "is not a database"), (&*"precious words\n".repeat(1_000), "file is not a database")]
    {
        let home = Home::new();
        home.file("home/queue.db", text);
        Diagnosis::of(&home).code(7).finds("database", "error", message);
    }
    let home = Home::new();
    home.file("home/queue.db/precious", "precious");
    Diagnosis::of(&home).code(7).finds("database", "error", "is not a file");

    let home = Home::new();
    fs::create_dir(home.path()).expect("a folder");
    let connection = Connection::open(home.database()).expect("a database");
    connection.execute_batch("create table precious (x)").expect("a table");
    drop(connection);
    Diagnosis::of(&home).code(7).finds("database", "error", "but not a queuectl queue").advises("--store");
}

#[test]
fn fault_14_an_emptied_database_is_reported() {
    let home = Home::with_jobs(&["a"]);
    fs::write(home.database(), "").expect("it is emptied");
    Diagnosis::of(&home).code(7).finds("database", "error", "is empty, but it contained a queue before");
}

#[test]
fn a_missing_database_is_reported() {
    let home = Home::with_jobs(&["a"]);
    tamper(&home, "select 1");
    fs::remove_file(home.database()).expect("it was there");
    Diagnosis::of(&home).code(0).finds("database", "warning", "is missing although a queue existed");
    assert!(!home.database().exists());
}

#[test]
fn fault_35_a_newer_schema_is_reported() {
    let home = Home::with_jobs(&["a"]);
    let newer = SCHEMA_VERSION + 1;
    tamper(&home, &format!("pragma user_version = {newer}"));
    Diagnosis::of(&home)
        .code(7)
        .finds("schema", "error", &format!("schema version {newer}, newer than the {SCHEMA_VERSION}"))
        .finds("database", "ok", "intact")
        .advises("use the version of queuectl that last opened it");
}

#[cfg(debug_assertions)] // Released builds take no migrations from tests.
#[test]
fn an_older_schema_is_reported_and_not_migrated() {
    use crate::cli::harness::{MADE_UP_VERSION, made_up_migrations};
    use crate::folder_snapshot::snapshot;

    let home = Home::with_jobs(&["a"]);
    let migrations = made_up_migrations(home.folder());
    let before = snapshot(home.folder());
    let ran = home.call(["doctor", "--json"]).env("QUEUECTL_MIGRATIONS", migrations).run();
    assert!(snapshot(home.folder()) == before, "something was changed: {ran}");
    let said = format!("version {SCHEMA_VERSION}; the next command upgrades it to {MADE_UP_VERSION}");
    Diagnosis { ran }.code(0).finds("schema", "ok", &said).finds_no("workers");
}

#[test]
fn an_overwritten_page_is_found() {
    let home = Home::with_jobs(&["a"]);
    tamper(&home, "select 1");
    let connection = Connection::open(home.database()).expect("the database opens");
    let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, usize>(0)).expect(sql);
    let page = number("select rootpage from sqlite_schema where name = 'events'");
    let size = number("pragma page_size");
    drop(connection);
    let mut bytes = fs::read(home.database()).expect("it is there");
    bytes[(page - 1) * size..][..size].fill(0xA5);
    fs::write(home.database(), bytes).expect("it is damaged");
    // Verbs that do not read this page notice nothing.
    home.run(["list"]).ok();
    Diagnosis::of(&home)
        .code(7)
        .finds("database", "error", "the store is corrupt (")
        .advises("copy the whole home directory to a safe place");
    home.run(["doctor", "-q"]).fails(7).prints("").says("(database: the store is corrupt (");
}

#[test]
fn a_store_outside_the_home_is_checked() {
    let home = Home::with_jobs(&["a"]);
    home.file("elsewhere.db", "precious words");
    home.run(["doctor", "--store", "elsewhere.db"]).fails(7).shows("`elsewhere.db` is not a database");
    home.run(["doctor", "--store", "nowhere/queue.db"]).ok().shows("does not exist yet");
    home.run(["doctor", "--store", "postgres:///db?host=/nowhere"]).fails(5).shows("there is no such socket");
}
