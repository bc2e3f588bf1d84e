//! Jobs as lines of JSON: a file is refused at its first bad line, and an accepted file is stored completely.

use std::cell::RefCell;
use std::sync::Arc;

use domain::job::spec::JobSpec;
use domain::settings::SettingKey;
use domain::values::name::JobId;
use ops::OpError;
use ops::jobs::enqueue::lines;
use ops::jobs::enqueue::lines::LineFormat;
use ops::jobs::enqueue::{Caller, Enqueuer};
use store::sqlite::SqliteStore;
use store::{EnqueueResult, JobVerb, Store};
use sys::clock::SystemClock;
use tempfile::TempDir;

use super::message;
use crate::store::fixture::change_all;

pub const TOKENS: &[&str] = &[
    "\n",
    "\r\n",
    "\n\n",
    " ",
    "{\"command\":\"x\"}\n",
    "{\"id\":\"a\",\"command\":\"x\"}\n",
    "{\"id\":\"b\",\"command\":\"x\",\"depends_on\":[\"a\"]}\n",
    "\"depends_on\":[\"b\"],",
    "\"unique_key\":\"k\",",
    "\"max_attempts\":1,",
    "\"max_retries\":1,",
    "\"id\":\"c\",",
    "[",
    "null\n",
    "{}",
    "\0",
    "\u{feff}",
    ",",
];

/// Larger inputs are not stored, so that each input takes little time.
const MAX_STORED_JOBS: u64 = 50;

thread_local! {
    static STORE: RefCell<Option<(TempDir, Box<dyn Store>)>> = const { RefCell::new(None) };
}

pub fn run(data: &[u8]) {
    STORE.with_borrow_mut(|store| {
        let (_, store) = store.get_or_insert_with(open);
        check(data, store.as_ref());
    });
}

fn open() -> (TempDir, Box<dyn Store>) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = SqliteStore::open(&folder.path().join("queue.db"), Arc::new(SystemClock)).expect("a store");
    let store: Box<dyn Store> = Box::new(store);
    store.set(SettingKey::Durability, Some("normal"), "test").expect("the value is valid");
    (folder, store)
}

fn check(data: &[u8], store: &dyn Store) {
    let text = data.strip_prefix("\u{feff}".as_bytes()).unwrap_or(data);
    let numbered = text.split(|byte| *byte == b'\n').zip(1_u64..);
    let lines: Vec<(&[u8], u64)> = numbered.filter(|(line, _)| !line.trim_ascii().is_empty()).collect();
    let first_bad = lines.iter().find(|(line, _)| serde_json::from_slice::<JobSpec>(line).is_err());
    let mut checked = 0;
    match lines::check(&mut enqueuer(store), data, LineFormat::Json, |lines| checked += lines) {
        Ok(total) => {
            assert_eq!(first_bad, None, "a line that is not a job was accepted");
            assert_eq!((total, checked), (lines.len() as u64, total));
            if total <= MAX_STORED_JOBS {
                check_stored(data, store, total);
            }
        }
        Err(error) => {
            let OpError::BadLine { line, .. } = &error else { panic!("unexpected error: {error}") };
            assert!(lines.iter().any(|(_, number)| number == line), "line {line} is blank");
            assert!(
                first_bad.is_none_or(|(_, number)| line <= number),
                "line {line} is not the first bad line"
            );
            assert!(error.to_string().contains(&line.to_string()));
            message::check(&error, data);
        }
    }
}

/// Stores all checked jobs, then removes them, children first.
fn check_stored(data: &[u8], store: &dyn Store, total: u64) {
    let mut ids: Vec<JobId> = Vec::new();
    let note = |answers: &[EnqueueResult]| ids.extend(answers.iter().map(|answer| answer.id().clone()));
    let has_more_now = |rest: &&[u8]| !rest.is_empty();
    let stored = lines::store(&mut enqueuer(store), data, LineFormat::Json, has_more_now, note)
        .expect("the lines were checked");
    assert_eq!((stored.created + stored.existing, ids.len() as u64), (total, total));
    ids.reverse();
    assert_eq!(store.existing_ids(&ids).expect("the ids are looked up").len(), ids.len());
    change_all(store, JobVerb::Remove, &ids, "test").expect("the jobs are removed");
    assert_eq!(store.existing_ids(&ids).expect("the ids are looked up"), []);
}

fn enqueuer(store: &dyn Store) -> Enqueuer<'_> {
    let caller = Caller { cwd: Some("/".into()), ..Caller::default() };
    Enqueuer::new(store, caller).expect("settings are read")
}
