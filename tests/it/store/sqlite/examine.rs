//! Examining a database: the findings, and that nothing is changed.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use domain::settings::SettingKey;
use store::sqlite::{Depth, Examination, SCHEMA_VERSION, SqliteStore, examine};
use store::transfer::Line;
use store::{ExportScope, JobFilter, Page, Store, StoreError, WriteError};

use super::{Home, connect};
use crate::folder_snapshot::snapshot;
use crate::store::fixture::{Fixture, TestClock};

/// Examines the database at both depths, and asserts that nothing changes.
#[track_caller]
fn examine_unchanged(database: &Path) -> Examination {
    let folder = database.parent().expect("a folder");
    let before = snapshot(folder);
    let quick = examine(database, Depth::Quick).expect("the examination succeeds");
    let full = examine(database, Depth::Full).expect("the full examination succeeds");
    assert_eq!(quick.damage.is_empty(), full.damage.is_empty(), "{quick:?} {full:?}");
    assert!(snapshot(folder) == before, "the folder was changed");
    quick
}

#[track_caller]
fn refused(database: &Path) -> StoreError {
    let folder = database.parent().expect("a folder");
    let before = snapshot(folder);
    let error = examine(database, Depth::Quick).expect_err("the examination is refused");
    assert!(snapshot(folder) == before, "the folder was changed");
    error
}

fn with_jobs() -> Home {
    let home = Home::new();
    let fixture = home.fixture();
    fixture.enqueue("a");
    fixture.enqueue("b");
    home
}

/// The file of the database with this suffix.
fn file_with_suffix(home: &Home, suffix: &str) -> PathBuf {
    home.folder.path().join(format!("queue.db{suffix}"))
}

#[test]
fn a_closed_queue_is_intact() {
    let home = with_jobs();
    let found = examine_unchanged(&home.database());
    assert_eq!(found.damage, Vec::<String>::new());
    assert_eq!((i64::from(found.schema), i64::from(found.newest_schema)), (SCHEMA_VERSION, SCHEMA_VERSION));
    assert!(
        found.log_bytes > 0
            && found.log_bytes == file_with_suffix(&home, "-wal").metadata().expect("a log").len()
    );
    assert!(found.library.starts_with("3."), "{found:?}");
}

#[test]
fn content_of_the_log_is_read_without_its_side_files() {
    for missing in [[].as_slice(), &["-shm"], &["-shm", "-gate"]] {
        let home = with_jobs();
        connect(&home.database())
            .execute_batch("pragma wal_checkpoint(truncate)")
            .expect("the checkpoint succeeds");
        let fixture = home.fixture();
        fixture.enqueue("c");
        drop(fixture);
        // A version that is only in the log.
        let connection = connect(&home.database());
        connection
            .set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
            .expect("the log is kept");
        connection.pragma_update(None, "user_version", SCHEMA_VERSION + 1).expect("the version is set");
        drop(connection);
        for suffix in missing {
            fs::remove_file(file_with_suffix(&home, suffix)).expect("the file existed");
        }
        let found = examine_unchanged(&home.database());
        assert_eq!(i64::from(found.schema), SCHEMA_VERSION + 1, "{missing:?}");
        assert_eq!(found.damage, Vec::<String>::new(), "{missing:?}");
    }
}

#[test]
fn a_database_without_side_files_can_be_examined() {
    let home = with_jobs();
    connect(&home.database())
        .execute_batch("pragma wal_checkpoint(truncate)")
        .expect("the checkpoint succeeds");
    for suffix in ["-wal", "-shm", "-gate"] {
        let _ = fs::remove_file(file_with_suffix(&home, suffix));
    }
    let found = examine_unchanged(&home.database());
    assert_eq!((i64::from(found.schema), found.log_bytes), (SCHEMA_VERSION, 0));
    assert_eq!(fs::read_dir(home.folder.path()).expect("a folder").count(), 1);
}

#[test]
fn an_open_store_can_be_examined_and_is_not_disturbed() {
    let home = Home::new();
    let fixture = home.fixture();
    for id in ["a", "b", "c"] {
        fixture.enqueue(id);
        // No snapshot: reading the files of a store that this process has open would drop its locks.
        let found = examine(&home.database(), Depth::Full).expect("the examination succeeds");
        assert_eq!(found.damage, Vec::<String>::new());
        home.fixture().enqueue(&*format!("{id}2"));
    }
}

#[test]
fn a_newer_schema_is_reported_and_not_refused() {
    let home = with_jobs();
    connect(&home.database())
        .pragma_update(None, "user_version", SCHEMA_VERSION + 7)
        .expect("the version is set");
    assert_eq!(i64::from(examine_unchanged(&home.database()).schema), SCHEMA_VERSION + 7);
}

#[test]
fn a_path_with_uri_characters_can_be_examined() {
    let home = Home::new();
    let folder = home.folder.path().join("a b?mode=rw#ä%20;\u{1}");
    fs::create_dir(&folder).expect("a folder");
    drop(Fixture::sqlite_in(&folder));
    assert_eq!(i64::from(examine_unchanged(&folder.join("queue.db")).schema), SCHEMA_VERSION);
}

#[test]
fn an_overwritten_page_is_reported_as_damage() {
    let home = with_jobs();
    let connection = connect(&home.database());
    connection.execute_batch("pragma wal_checkpoint(truncate)").expect("the checkpoint succeeds");
    let page: usize = connection
        .query_row("select rootpage from sqlite_schema where name = 'jobs'", [], |row| row.get(0))
        .expect("the table of jobs");
    let size: usize = connection.query_row("pragma page_size", [], |row| row.get(0)).expect("a size");
    drop(connection);
    let mut bytes = fs::read(home.database()).expect("the database is readable");
    bytes[(page - 1) * size..][..size].fill(0xA5);
    fs::write(home.database(), bytes).expect("the database is overwritten");
    let damage = examine_unchanged(&home.database()).damage;
    assert!(!damage.is_empty() && damage.len() < 50, "{damage:?}");
}

#[test]
fn rows_that_contradict_their_index_are_found_by_a_full_examination() {
    let home = with_jobs();
    let connection = connect(&home.database());
    connection
        .execute_batch(
            "pragma writable_schema = on;
             update sqlite_schema set sql = replace(sql, '(state, seq)', '(queue_id, seq)')
             where name = 'jobs_by_state'",
        )
        .expect("the index definition changes");
    drop(connection);
    let full = examine(&home.database(), Depth::Full).expect("the examination succeeds");
    assert!(full.damage.iter().any(|line| line.contains("jobs_by_state")), "{full:?}");
}

#[test]
fn a_file_that_is_not_a_queue_is_refused() {
    let missing = Home::new();
    assert!(matches!(refused(&missing.database()), StoreError::CannotOpen { .. }));

    let home = Home::new();
    for text in ["x", &"foreign text\n".repeat(1_000)] {
        fs::write(home.database(), text).expect("a text");
        let error = refused(&home.database());
        assert!(matches!(error, StoreError::NotAStore { .. } | StoreError::Corrupt { .. }), "{error:?}");
    }

    let home = Home::new();
    connect(&home.database()).execute_batch("create table foreign_data (x)").expect("a foreign table");
    assert!(matches!(refused(&home.database()), StoreError::NotAStore { .. }));

    let home = Home::new();
    fs::create_dir(home.database()).expect("a folder");
    assert!(matches!(refused(&home.database()), StoreError::NotAStore { .. }));

    let home = with_jobs();
    fs::write(home.database(), "").expect("the database is emptied");
    let error = refused(&home.database());
    assert!(error.to_string().ends_with("is empty, but it contained a queue before"), "{error}");
}

#[test]
fn an_empty_file_without_an_earlier_queue_has_no_schema() {
    let home = Home::new();
    fs::write(home.database(), "").expect("an empty file");
    let found = examine_unchanged(&home.database());
    assert_eq!((found.schema, found.database_bytes), (0, 0));
}

#[test]
fn a_store_opened_to_read_lists_everything_and_changes_nothing() {
    let home = with_jobs();
    let before = snapshot(home.folder.path());
    let store = SqliteStore::open_read_only(&home.database(), Arc::new(TestClock::default()))
        .expect("the store opens");
    let store: Box<dyn Store> = Box::new(store);
    let everything = Page { limit: usize::MAX, after: None };
    assert_eq!(store.list(&JobFilter::default(), &everything).expect("the jobs").len(), 2);
    let written = store.set(SettingKey::MaxRetries, Some("1"), "me");
    assert!(matches!(written, Err(WriteError::Store(StoreError::ReadOnly))), "{written:?}");
    drop(store);
    assert!(snapshot(home.folder.path()) == before, "the folder was changed");
}

#[test]
fn an_export_of_a_file_that_changes_meanwhile_fails_instead_of_repeating_lines() {
    let home = with_jobs();
    // Without the index of its log, the file is read without locks.
    fs::remove_file(home.folder.path().join("queue.db-shm")).expect("there is an index");
    let store = SqliteStore::open_read_only(&home.database(), Arc::new(TestClock::default()))
        .expect("the store opens");
    let store: Box<dyn Store> = Box::new(store);
    let mut headers = 0;
    let exported = store.export(&ExportScope::All, &mut |line| {
        if let Line::Queuectl { .. } = line {
            headers += 1;
            let file = fs::File::open(home.database()).expect("the file");
            file.set_modified(SystemTime::UNIX_EPOCH).expect("it is changed");
        }
        true
    });
    assert!(matches!(exported, Err(StoreError::Changing)), "{exported:?}");
    assert_eq!(headers, 1);
}

#[test]
fn an_older_schema_is_examined_and_not_migrated() {
    let home = with_jobs();
    connect(&home.database()).pragma_update(None, "user_version", 0).expect("the version is set");
    assert_eq!(examine_unchanged(&home.database()).schema, 0);
    let opened = SqliteStore::open_read_only(&home.database(), Arc::new(TestClock::default()));
    assert!(matches!(opened, Err(StoreError::ReadOnly)), "{opened:?}");
}
