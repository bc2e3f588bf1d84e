//! Settings that a store adopts.

use std::sync::Arc;

use super::*;
use crate::{ServedJobs, WriteError};
use domain::settings::SettingKey;
use sys::clock::SystemClock;
use sys::host::Origin;

/// SQLite's values of `synchronous`.
const FULL: i64 = 2;
const NORMAL: i64 = 1;

fn synchronous(store: &SqliteStore) -> i64 {
    let opened = store.lock();
    let pragma = opened.connection.pragma_query_value(None, "synchronous", |row| row.get(0));
    pragma.expect("a pragma")
}

fn open(folder: &tempfile::TempDir) -> SqliteStore {
    SqliteStore::open(&folder.path().join("queue.db"), Arc::new(SystemClock)).expect("a store")
}

/// The store of a worker, a second one, and the worker.
fn with_a_worker(folder: &tempfile::TempDir) -> (SqliteStore, SqliteStore, NewWorker) {
    let (store, worker) = (open(folder), worker());
    store.shared().register(&worker).expect("register");
    (store, open(folder), worker)
}

#[test]
fn a_worker_adopts_a_changed_durability_with_its_orders() {
    let folder = tempfile::tempdir().expect("a folder");
    let (store, elsewhere, worker) = with_a_worker(&folder);
    for (value, expected) in [(Some("normal"), NORMAL), (None, FULL)] {
        elsewhere.shared().set(SettingKey::Durability, value, "tester").expect("set");
        store.orders(&worker.id).expect("orders");
        assert_eq!(synchronous(&store), expected, "{value:?}");
    }
}

#[test]
fn a_worker_waits_for_locks_no_longer_than_its_lease_allows() {
    let folder = tempfile::tempdir().expect("a folder");
    let (store, elsewhere, worker) = with_a_worker(&folder);
    let set = |key, value| elsewhere.shared().set(key, Some(value), "tester").expect("set");
    set(SettingKey::HeartbeatInterval, "50ms");
    for (lease, expected) in [("2s", 500), ("200ms", 100), ("1h", 30_000), ("800ms", 200)] {
        set(SettingKey::Lease, lease);
        store.orders(&worker.id).expect("orders");
        assert_eq!(store.lock().lock_timeout.get().as_millis(), expected, "{lease}");
    }
    let opened = elsewhere.lock();
    let _pass = opened.gate.enter(opened.lock_timeout.get()).expect("it is free");
    let began = Instant::now();
    let refused = store.shared().extend(&worker.id, &[]).expect_err("the gate is held");
    assert!(refused.to_string().starts_with("the database was locked for 200ms by process "), "{refused}");
    assert!(began.elapsed().as_millis() >= 200);
}

fn worker() -> NewWorker {
    NewWorker {
        id: "w".parse().expect("a worker id"),
        host: "here".to_owned(),
        origin: Origin::default(),
        pid: 1,
        supervisor_pid: None,
        served: ServedJobs::All,
        concurrency: 1,
        folder: "/".into(),
        stop_seen: None,
    }
}

#[test]
fn the_durability_setting_takes_effect_at_once_and_on_open() {
    let folder = tempfile::tempdir().expect("a folder");
    let open = || open(&folder);
    let store = open();
    assert_eq!(synchronous(&store), FULL, "nothing is set");
    for (value, expected) in [(Some("normal"), NORMAL), (Some("full"), FULL), (Some("normal"), NORMAL)] {
        store.shared().set(SettingKey::Durability, value, "tester").expect("set");
        assert_eq!(synchronous(&store), expected, "{value:?} takes effect at once");
        assert_eq!(synchronous(&open()), expected, "and when the store is opened");
    }
    let refused = store.shared().set(SettingKey::Durability, Some("off"), "tester");
    assert!(matches!(refused, Err(WriteError::Refused(_))));
    assert_eq!(synchronous(&store), NORMAL, "a wrong value changes nothing");
    store.shared().set(SettingKey::Durability, None, "tester").expect("unset");
    assert_eq!(synchronous(&store), FULL);
}
