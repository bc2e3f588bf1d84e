//! Examining a database: what is found, and that nothing is touched.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use domain::settings::SettingKey;
use store::sqlite::{Depth, Examination, SCHEMA_VERSION, SqliteStore, examine};
use store::{JobFilter, Page, Store, StoreError};

use super::{Home, connect};
use crate::picture::picture;
use crate::store::fixture::{Fixture, TestClock};

/// Examines it both ways, and sees to it that nothing changes.
#[track_caller]
fn look(database: &Path) -> Examination {
    let folder = database.parent().expect("a folder");
    let before = picture(folder);
    let quick = examine(database, Depth::Quick).expect("it can be examined");
    let full = examine(database, Depth::Full).expect("it can be examined closely");
    assert_eq!(quick.damage.is_empty(), full.damage.is_empty(), "{quick:?} {full:?}");
    assert!(picture(folder) == before, "something was changed");
    quick
}

#[track_caller]
fn refused(database: &Path) -> StoreError {
    let folder = database.parent().expect("a folder");
    let before = picture(folder);
    let error = examine(database, Depth::Quick).expect_err("it is refused");
    assert!(picture(folder) == before, "something was changed");
    error
}

fn with_jobs() -> Home {
    let home = Home::new();
    let fixture = home.fixture();
    fixture.enqueue("a");
    fixture.enqueue("b");
    home
}

/// A file of that name beside the database.
fn beside(home: &Home, suffix: &str) -> PathBuf {
    home.folder.path().join(format!("queue.db{suffix}"))
}

#[test]
fn a_queue_that_somebody_left_is_whole() {
    let home = with_jobs();
    let found = look(&home.database());
    assert_eq!(found.damage, Vec::<String>::new());
    assert_eq!((i64::from(found.schema), i64::from(found.newest_schema)), (SCHEMA_VERSION, SCHEMA_VERSION));
    assert!(found.log_bytes > 0 && found.log_bytes == beside(&home, "-wal").metadata().expect("a log").len());
    assert!(found.library.starts_with("3."), "{found:?}");
}

#[test]
fn what_is_only_in_the_log_is_seen_however_it_lies_there() {
    for missing in [[].as_slice(), &["-shm"], &["-shm", "-gate"]] {
        let home = with_jobs();
        connect(&home.database()).execute_batch("pragma wal_checkpoint(truncate)").expect("all in the file");
        let fixture = home.fixture();
        fixture.enqueue("c");
        drop(fixture);
        // A version that only the log knows.
        let connection = connect(&home.database());
        connection
            .set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
            .expect("the log stays");
        connection.pragma_update(None, "user_version", SCHEMA_VERSION + 1).expect("the version is set");
        drop(connection);
        for suffix in missing {
            fs::remove_file(beside(&home, suffix)).expect("it was there");
        }
        let found = look(&home.database());
        assert_eq!(i64::from(found.schema), SCHEMA_VERSION + 1, "{missing:?}");
        assert_eq!(found.damage, Vec::<String>::new(), "{missing:?}");
    }
}

#[test]
fn a_file_alone_needs_nothing_beside_it() {
    let home = with_jobs();
    connect(&home.database()).execute_batch("pragma wal_checkpoint(truncate)").expect("all in the file");
    for suffix in ["-wal", "-shm", "-gate"] {
        let _ = fs::remove_file(beside(&home, suffix));
    }
    let found = look(&home.database());
    assert_eq!((i64::from(found.schema), found.log_bytes), (SCHEMA_VERSION, 0));
    assert_eq!(fs::read_dir(home.folder.path()).expect("a folder").count(), 1);
}

#[test]
fn a_store_that_is_open_is_not_in_the_way_nor_disturbed() {
    let home = Home::new();
    let fixture = home.fixture();
    for id in ["a", "b", "c"] {
        fixture.enqueue(id);
        // No picture is taken: to read the files of a store that this process has open would drop its locks.
        let found = examine(&home.database(), Depth::Full).expect("it can be examined");
        assert_eq!(found.damage, Vec::<String>::new());
        home.fixture().enqueue(&*format!("{id}2"));
    }
}

#[test]
fn a_newer_schema_is_told_and_not_refused() {
    let home = with_jobs();
    connect(&home.database()).pragma_update(None, "user_version", SCHEMA_VERSION + 7).expect("it is set");
    assert_eq!(i64::from(look(&home.database()).schema), SCHEMA_VERSION + 7);
}

#[test]
fn names_that_mean_something_in_an_address_are_names() {
    let home = Home::new();
    let folder = home.folder.path().join("a b?mode=rw#ä%20;\u{1}");
    fs::create_dir(&folder).expect("a folder");
    drop(Fixture::sqlite_in(&folder));
    assert_eq!(i64::from(look(&folder.join("queue.db")).schema), SCHEMA_VERSION);
}

#[test]
fn a_page_that_was_overwritten_is_damage() {
    let home = with_jobs();
    let connection = connect(&home.database());
    connection.execute_batch("pragma wal_checkpoint(truncate)").expect("all in the file");
    let page: usize = connection
        .query_row("select rootpage from sqlite_schema where name = 'jobs'", [], |row| row.get(0))
        .expect("the table of jobs");
    let size: usize = connection.query_row("pragma page_size", [], |row| row.get(0)).expect("a size");
    drop(connection);
    let mut bytes = fs::read(home.database()).expect("it is there");
    bytes[(page - 1) * size..][..size].fill(0xA5);
    fs::write(home.database(), bytes).expect("it is damaged");
    let damage = look(&home.database()).damage;
    assert!(!damage.is_empty() && damage.len() < 50, "{damage:?}");
}

#[test]
fn rows_that_contradict_their_index_are_found_by_a_close_look() {
    let home = with_jobs();
    let connection = connect(&home.database());
    connection
        .execute_batch(
            "pragma writable_schema = on;
             update sqlite_schema set sql = replace(sql, '(state, seq)', '(queue_id, seq)')
             where name = 'jobs_by_state'",
        )
        .expect("the index becomes another");
    drop(connection);
    let full = examine(&home.database(), Depth::Full).expect("it can be examined");
    assert!(full.damage.iter().any(|said| said.contains("jobs_by_state")), "{full:?}");
}

#[test]
fn what_is_no_queue_is_refused() {
    let missing = Home::new();
    assert!(matches!(refused(&missing.database()), StoreError::CannotOpen { .. }));

    let home = Home::new();
    for text in ["x", &"precious words\n".repeat(1_000)] {
        fs::write(home.database(), text).expect("a text");
        let error = refused(&home.database());
        assert!(matches!(error, StoreError::NotAStore { .. } | StoreError::Corrupt { .. }), "{error:?}");
    }

    let home = Home::new();
    connect(&home.database()).execute_batch("create table precious (x)").expect("somebody else's");
    assert!(matches!(refused(&home.database()), StoreError::NotAStore { .. }));

    let home = Home::new();
    fs::create_dir(home.database()).expect("a folder");
    assert!(matches!(refused(&home.database()), StoreError::NotAStore { .. }));

    let home = with_jobs();
    fs::write(home.database(), "").expect("it is emptied");
    let error = refused(&home.database());
    assert!(error.to_string().ends_with("is empty, but it contained a queue before"), "{error}");
}

#[test]
fn an_empty_file_where_no_queue_was_has_no_schema_yet() {
    let home = Home::new();
    fs::write(home.database(), "").expect("an empty file");
    let found = look(&home.database());
    assert_eq!((found.schema, found.database_bytes), (0, 0));
}

#[test]
fn a_store_that_is_opened_to_read_shows_all_and_changes_nothing() {
    let home = with_jobs();
    let before = picture(home.folder.path());
    let store =
        SqliteStore::open_read_only(&home.database(), Arc::new(TestClock::default())).expect("it opens");
    let everything = Page { limit: usize::MAX, after: None };
    assert_eq!(store.list(&JobFilter::default(), &everything).expect("the jobs").len(), 2);
    let written = store.set(SettingKey::MaxRetries, Some("1"), "me");
    assert!(matches!(written, Err(StoreError::ReadOnly)), "{written:?}");
    drop(store);
    assert!(picture(home.folder.path()) == before, "something was changed");
}

#[test]
fn an_older_schema_is_examined_and_not_migrated() {
    let home = with_jobs();
    connect(&home.database()).pragma_update(None, "user_version", 0).expect("it is set");
    assert_eq!(look(&home.database()).schema, 0);
    let opened = SqliteStore::open_read_only(&home.database(), Arc::new(TestClock::default()));
    assert!(matches!(opened, Err(StoreError::ReadOnly)), "{opened:?}");
}
