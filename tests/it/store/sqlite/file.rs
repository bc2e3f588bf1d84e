//! The database file: how it is created, and which other files are refused.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use domain::job::NewJob;
use domain::job::outcome::Outcome;
use domain::settings::SettingKey;
use store::sqlite::{SCHEMA_VERSION, SqliteStore};
use store::{JobFilter, Search, Stop, StopScope, Store, StoreError};

use rusqlite::config::DbConfig;

use super::{Home, connect, value};
use crate::store::fixture::new_job::job;
use crate::store::fixture::{ACTOR, FAILURE, Fixture, TestClock};

/// Creates a file at the path of the database.
type CreateFile = fn(&Path);

#[test]
fn every_file_is_accessible_only_to_its_owner() {
    let home = Home::new();
    let store = home.open().expect("a new store");
    let mut names = Vec::new();
    for entry in fs::read_dir(home.folder.path()).expect("read_dir") {
        let entry = entry.expect("an entry");
        let mode = entry.metadata().expect("metadata").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{:?}", entry.file_name());
        names.push(entry.file_name().into_string().expect("a name"));
    }
    names.sort();
    assert_eq!(names, ["queue.db", "queue.db-gate", "queue.db-shm", "queue.db-wal"]);
    drop(store);
}

#[test]
fn a_new_database_has_its_identifying_pragmas() {
    let home = Home::with_queue();
    let connection = home.connect();
    for (pragma, expected) in [
        ("journal_mode", "wal"),
        ("application_id", "1366648181"),
        ("user_version", &SCHEMA_VERSION.to_string()),
        ("auto_vacuum", "2"),
        ("integrity_check", "ok"),
    ] {
        let found = value(&connection, &format!("pragma {pragma}"));
        assert_eq!(found, expected, "{pragma}");
    }
}

#[test]
fn stored_data_survives_reopening() {
    let home = Home::new();
    let fixture = home.fixture();
    fixture.enqueue(job("a").tags(&["t"]));
    fixture.set(SettingKey::MaxRetries, "7");
    let before = fixture.record("a");
    drop(fixture);
    let fixture = home.fixture();
    assert_eq!(fixture.record("a"), before);
    assert_eq!(fixture.store.settings().expect("settings").len(), 1);
}

#[test]
fn fault_35_an_interrupted_creation_is_completed() {
    let cases: [(&str, CreateFile); 3] = [
        ("an empty file", |path| fs::write(path, "").expect("write")),
        ("no table yet", |path| {
            let setup = "pragma auto_vacuum = incremental; pragma journal_mode = wal;";
            connect(path).execute_batch(setup).expect("setup");
        }),
        ("a migration that was rolled back", |path| {
            let setup = "pragma journal_mode = wal; begin immediate; create table jobs (x); rollback;";
            connect(path).execute_batch(setup).expect("setup");
        }),
    ];
    for (how, interrupt) in cases {
        let home = Home::new();
        interrupt(&home.database());
        let fixture = home.fixture();
        fixture.enqueue("a");
        drop(fixture);
        let version = value(&home.connect(), "pragma user_version");
        assert_eq!(version, SCHEMA_VERSION.to_string(), "{how}");
    }
}

#[test]
fn fault_35_a_newer_schema_is_refused_and_left_alone() {
    let home = Home::with_queue();
    let newer = SCHEMA_VERSION + 1;
    let connection = home.connect();
    connection.pragma_update(None, "user_version", newer).expect("pragma");
    drop(connection);
    let before = fs::read(home.database()).expect("read");
    let refused = home.open().expect_err("the schema is too new");
    assert!(
        matches!(refused, StoreError::TooNew { found, known } if found == newer && known == SCHEMA_VERSION),
        "{refused:?}"
    );
    assert_eq!(fs::read(home.database()).expect("read"), before, "the file is unchanged");
}

#[test]
fn fault_14_a_file_that_is_not_a_queue_is_refused_and_left_alone() {
    let cases: [(&str, CreateFile); 7] = [
        ("another program's database", |path| {
            connect(path).execute_batch("create table t (x);").expect("setup");
        }),
        ("another program's database in WAL mode", |path| {
            let setup = "pragma journal_mode = wal; create table t (x); insert into t values (1);";
            connect(path).execute_batch(setup).expect("setup");
        }),
        ("another program's application id", |path| {
            connect(path).execute_batch("pragma application_id = 42;").expect("setup");
        }),
        ("another program's version", |path| {
            connect(path).execute_batch("pragma user_version = 1;").expect("setup");
        }),
        ("a short text", |path| fs::write(path, "hello\n").expect("write")),
        ("a long text", |path| {
            fs::write(path, "hello\n".repeat(10_000)).expect("write");
        }),
        ("zeros", |path| fs::write(path, [0; 8_192]).expect("write")),
    ];
    for (what, create) in cases {
        let home = Home::new();
        create(&home.database());
        let before = fs::read(home.database()).expect("read");
        let refused = home.open().expect_err(what);
        assert!(
            matches!(refused, StoreError::NotAStore { .. } | StoreError::Corrupt { .. }),
            "{what}: {refused:?}"
        );
        let after = fs::read(home.database()).expect("read");
        assert!(after == before, "{what} is unchanged");
    }
}

#[test]
fn a_folder_is_refused() {
    let home = Home::new();
    fs::create_dir(home.database()).expect("create_dir");
    let refused = home.open().expect_err("a folder is not a database");
    assert!(matches!(refused, StoreError::NotAStore { .. }), "{refused:?}");
    assert_eq!(fs::read_dir(home.database()).expect("read_dir").count(), 0);
}

#[test]
fn a_missing_folder_is_reported() {
    let home = Home::new();
    let path = home.folder.path().join("missing/queue.db");
    let opened = SqliteStore::open(&path, Arc::new(TestClock::default()));
    let refused = opened.expect_err("the folder does not exist");
    assert!(matches!(refused, StoreError::CannotOpen { .. }), "{refused:?}");
}

#[test]
fn an_empty_file_in_place_of_a_queue_is_refused() {
    let home = Home::with_queue();
    // Also if the creating process died before it wrote this to the gate file.
    fs::write(home.folder.path().join("queue.db-gate"), "").expect("write");
    drop(home.open().expect("a store"));
    for side_file in ["queue.db-wal", "queue.db-shm"] {
        let _ = fs::remove_file(home.folder.path().join(side_file));
    }
    fs::write(home.database(), "").expect("write");
    let refused = home.open().expect_err("the queue is lost");
    assert!(matches!(refused, StoreError::NotAStore { .. }), "{refused:?}");
    assert_eq!(fs::read(home.database()).expect("read"), b"", "the file is still empty");
}

#[test]
fn fault_30_many_threads_can_open_a_new_path_at_once() {
    const OPENERS: usize = 20;
    for round in 0..3 {
        let home = Home::new();
        let start = Barrier::new(OPENERS);
        std::thread::scope(|scope| {
            let openers = (0..OPENERS).map(|n| {
                let (home, start) = (&home, &start);
                scope.spawn(move || {
                    start.wait();
                    let store = home.open().unwrap_or_else(|error| panic!("round {round}: {error:?}"));
                    let store: &dyn Store = &store;
                    store.enqueue(&[job(&format!("j{n}")).into()]).expect("enqueue");
                })
            });
            // Starts all threads before joining the first.
            for opener in openers.collect::<Vec<_>>() {
                opener.join().expect("the thread does not panic");
            }
        });
        let fixture = home.fixture();
        fixture.recount();
        let jobs = fixture.list_by(&JobFilter::default(), 100);
        assert_eq!(jobs.len(), OPENERS, "round {round}");
    }
}

/// Random operations of every kind.
fn run_random_operations(fixture: &Fixture, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let outcomes = [Outcome::Success, FAILURE, Outcome::Lost, Outcome::Released];
    let workers = ["w1", "w2"].map(|id| fixture.worker(id));
    for n in 0..150 {
        let parent = format!("j{}", random.usize(0..=n));
        let mut spec = job(&format!("j{n}")).priority(random.i32(-1..2)).tags(&["t"]);
        if random.bool() {
            spec = spec.delay_secs(random.u64(0..5));
        }
        if random.bool() {
            spec = spec.after(&[&parent]);
        }
        let _ = fixture.try_enqueue([spec]);
        let worker = random.choice(&workers).expect("a worker");
        for lease in fixture.leases(worker, random.usize(0..3)) {
            if random.u8(0..4) > 0 {
                fixture.settle(worker, &lease, outcomes[random.usize(0..4)]);
            }
        }
        match random.u8(0..8) {
            0 => drop(fixture.cancel(&parent)),
            1 => drop(fixture.retry(&parent)),
            2 => drop(fixture.remove(&parent)),
            _ => fixture.pass_millis(random.u64(0..2_000)),
        }
    }
}

/// Statements that count violated invariants.
const INVARIANTS: [(&str, &str); 6] = [
    (
        "a ready or scheduled job is in exactly one of `ready` and `waiting`, and no other job is in either",
        "select count(*) from jobs j
         where (select count(*) from ready r where r.seq = j.seq) + (select count(*) from waiting w where w.seq = j.seq)
            <> (j.state = 'failed' or (j.state = 'pending' and j.blocked_by = 0))",
    ),
    (
        "`ready` and `waiting` contain only existing jobs, with the job's own position",
        "select (select count(*) from ready r left join jobs j using (seq, queue_id, priority, due_at) where j.id is null)
              + (select count(*) from waiting w left join jobs j using (seq, due_at) where j.id is null)",
    ),
    (
        "a job's `blocked_by` equals its number of blocking dependencies",
        "select count(*) from jobs j
         where j.blocked_by <> (select count(*) from dependencies d where d.child_seq = j.seq and d.blocks = 1)",
    ),
    (
        "no job is blocked by a finished or removed job",
        "select count(*) from dependencies d left join jobs j on j.seq = d.parent_seq
         where d.blocks = 1 and (j.seq is null or j.finished_at is not null)",
    ),
    (
        "every attempt except the running one has its row",
        "select count(*) from jobs j
         where j.attempts - (j.state = 'processing') <> (select count(*) from attempts a where a.seq = j.seq)",
    ),
    (
        "no table has rows of a removed job",
        "select (select count(*) from attempts where seq not in (select seq from jobs))
              + (select count(*) from job_tags where seq not in (select seq from jobs))
              + (select count(*) from events where seq not in (select seq from jobs))
              + (select count(*) from dependencies where parent_seq not in (select seq from jobs)
                                                      or child_seq not in (select seq from jobs))
              + (select count(*) from unique_keys where seq not in (select seq from jobs))",
    ),
];

#[test]
fn a_busy_database_is_intact_and_consistent() {
    for seed in 0..3 {
        let home = Home::new();
        let fixture = home.fixture();
        run_random_operations(&fixture, seed);
        fixture.recount();
        drop(fixture);
        let connection = home.connect();
        assert_eq!(value(&connection, "pragma integrity_check"), "ok");
        let busy: usize = value(&connection, "select count(*) from attempts").parse().expect("a count");
        assert!(busy > 50, "too few attempts: {busy}");
        for (what, sql) in INVARIANTS {
            assert_eq!(value(&connection, sql), "0", "seed {seed}: {what}");
        }
    }
}

#[test]
fn a_sequence_number_is_never_reused() {
    let home = Home::new();
    let fixture = home.fixture();
    for _ in 0..3 {
        fixture.enqueue("a");
        fixture.remove("a");
    }
    fixture.enqueue("b");
    drop(fixture);
    assert_eq!(value(&home.connect(), "select seq from jobs where id = 'b'"), "4");
}

#[test]
fn stop_orders_do_not_accumulate() {
    let home = Home::new();
    let fixture = home.fixture();
    fixture.set(SettingKey::Durability, "normal");
    for _ in 0..1_100 {
        fixture.store.stop(&Stop { scope: StopScope::Everywhere, kill_at: None }, ACTOR).expect("stop");
    }
    drop(fixture);
    let connection = home.connect();
    assert_eq!(value(&connection, "select count(*) from stops"), "1000");
    assert_eq!(value(&connection, "select max(id) from stops"), "1100", "the newest are kept");
}

/// The pages of the log that the next process to open the store must read.
fn pages_to_read(home: &Home) -> i64 {
    let connection = connect(&home.database());
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).expect("the log is kept");
    connection.query_row("pragma wal_checkpoint(noop)", [], |row| row.get(1)).expect("wal_checkpoint")
}

#[test]
fn the_log_stays_short_across_many_short_processes() {
    let home = Home::with_queue();
    for n in 0..40 {
        let store: Box<dyn Store> = Box::new(home.open().expect("a store"));
        store.enqueue(&[job(&format!("j{n}")).into()]).expect("enqueue");
        drop(store);
        assert!(pages_to_read(&home) < 64, "{} pages after {n} processes", pages_to_read(&home));
    }
}

#[test]
fn a_large_commit_leaves_no_long_log() {
    let home = Home::with_queue();
    let store: Box<dyn Store> = Box::new(home.open().expect("a store"));
    for chunk in 0..4 {
        let many: Vec<NewJob> = (0..5_000).map(|n| job(&format!("c{chunk}-{n}")).into()).collect();
        store.enqueue(&many).expect("enqueue");
    }
    drop(store);
    assert_eq!(pages_to_read(&home), 0);
}

/// Numbers have gaps, so a few jobs are enough for several windows.
#[test]
fn a_search_without_time_says_how_far_it_came_and_continues_from_there() {
    let home = Home::with_queue();
    let fixture = home.fixture();
    fixture.enqueue("first");
    home.connect().execute_batch("update sequence set next_seq = 250001").expect("a gap");
    fixture.enqueue("last");
    let filter = JobFilter { id_prefix: Some("first".to_owned()), ..JobFilter::default() };
    let mut search = Search { filter, limit: 9, budget: Some(Duration::ZERO), ..Search::default() };
    let (mut searched, mut pages) = (0, 0);
    let found = loop {
        let page = fixture.store.search(&search).expect("a search");
        (searched, pages) = (searched + page.searched, pages + 1);
        if page.is_complete {
            break page.jobs;
        }
        assert!(page.jobs.is_empty());
        search.after = page.next;
    };
    assert_eq!((found.len(), searched, pages), (1, 250_001, 3));
    let count = |budget| fixture.store.count(&search.filter, budget).expect("a count");
    assert_eq!((count(Some(Duration::ZERO)).count, count(Some(Duration::ZERO)).is_exact), (0, false));
    assert_eq!((count(None).count, count(None).is_exact), (1, true));
}

/// Another process that writes, and one that has locked out all others.
#[test]
fn a_store_waits_for_a_lock_no_longer_than_its_caller_says() {
    const BOUND: Duration = Duration::from_millis(50);
    let home = Home::with_queue();
    let open = || SqliteStore::open_within(&home.database(), Arc::new(TestClock::default()), BOUND);
    let assert_busy = |failed: Result<(), StoreError>| {
        assert!(matches!(failed, Err(StoreError::Busy { waited: BOUND, .. })), "{failed:?}");
    };
    let other = home.connect();
    let began = Instant::now();
    other.execute_batch("pragma locking_mode = exclusive; begin exclusive").expect("locked");
    assert_busy(open().map(drop));
    drop(other);
    let other = home.connect();
    let store = open().expect("a store");
    let write = |store: &SqliteStore| (store as &dyn Store).note("test", ACTOR, "written").map(drop);
    other.execute_batch("begin immediate").expect("locked");
    assert_busy(write(&store));
    let patient = home.open().expect("a store");
    patient.wait_at_most(BOUND).expect("bounded");
    assert_busy(write(&patient));
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    other.execute_batch("rollback").expect("unlocked");
    write(&patient).expect("it can write again");
}
