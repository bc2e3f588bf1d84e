//! The database file: how it is made, and what is refused in its place.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{Arc, Barrier};

use domain::job::NewJob;
use domain::job::outcome::Outcome;
use domain::settings::SettingKey;
use store::sqlite::{SCHEMA_VERSION, SqliteStore};
use store::{JobFilter, Stop, Store, StoreError};

use rusqlite::config::DbConfig;

use super::{Home, connect, value};
use crate::store::fixture::{FAILURE, Fixture, ACTOR, TestClock};
use crate::store::new_job::job;

/// Puts something where the database is to be.
type Put = fn(&Path);

#[test]
fn every_file_is_for_its_owner_only() {
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
fn a_new_database_says_what_it_is() {
    let home = Home::with_queue();
    let connection = home.connect();
    for (pragma, expected) in [
        ("journal_mode", "wal"),
        ("application_id", "1366648163"),
        ("user_version", &SCHEMA_VERSION.to_string()),
        ("auto_vacuum", "2"),
        ("integrity_check", "ok"),
    ] {
        let found = value(&connection, &format!("pragma {pragma}"));
        assert_eq!(found, expected, "{pragma}");
    }
}

#[test]
fn what_was_stored_is_there_when_it_is_opened_again() {
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
    let cases: [(&str, Put); 3] = [
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
    let refused = home.open().expect_err("it is too new");
    assert!(
        matches!(refused, StoreError::TooNew { found, known } if found == newer && known == SCHEMA_VERSION),
        "{refused:?}"
    );
    assert_eq!(fs::read(home.database()).expect("read"), before, "byte for byte");
}

#[test]
fn fault_14_what_is_no_queue_is_refused_and_left_alone() {
    let cases: [(&str, Put); 7] = [
        ("another program's database", |path| {
            connect(path).execute_batch("create table t (x);").expect("setup");
        }),
        ("another program's database in WAL mode", |path| {
            let setup = "pragma journal_mode = wal; create table t (x); insert into t values (1);";
            connect(path).execute_batch(setup).expect("setup");
        }),
        ("another program's mark", |path| {
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
    for (what, put) in cases {
        let home = Home::new();
        put(&home.database());
        let before = fs::read(home.database()).expect("read");
        let refused = home.open().expect_err(what);
        assert!(
            matches!(refused, StoreError::NotAStore { .. } | StoreError::Corrupt { .. }),
            "{what}: {refused:?}"
        );
        let after = fs::read(home.database()).expect("read");
        assert!(after == before, "{what} is left as it was");
    }
}

#[test]
fn a_folder_is_refused() {
    let home = Home::new();
    fs::create_dir(home.database()).expect("create_dir");
    let refused = home.open().expect_err("a folder is no database");
    assert!(matches!(refused, StoreError::NotAStore { .. }), "{refused:?}");
    assert_eq!(fs::read_dir(home.database()).expect("read_dir").count(), 0);
}

#[test]
fn a_folder_that_is_not_there_is_told() {
    let home = Home::new();
    let path = home.folder.path().join("missing/queue.db");
    let opened = SqliteStore::open(&path, Arc::new(TestClock::default()));
    let refused = opened.expect_err("there is no such folder");
    assert!(matches!(refused, StoreError::CannotOpen { .. }), "{refused:?}");
}

#[test]
fn an_empty_file_where_a_queue_was_is_refused() {
    let home = Home::with_queue();
    // Also when whoever made the queue died before that was noted.
    fs::write(home.folder.path().join("queue.db-gate"), "").expect("write");
    drop(home.open().expect("a store"));
    for beside in ["queue.db-wal", "queue.db-shm"] {
        let _ = fs::remove_file(home.folder.path().join(beside));
    }
    fs::write(home.database(), "").expect("write");
    let refused = home.open().expect_err("the queue is lost");
    assert!(matches!(refused, StoreError::NotAStore { .. }), "{refused:?}");
    assert_eq!(fs::read(home.database()).expect("read"), b"", "and still empty");
}

#[test]
fn fault_30_many_can_open_a_new_path_at_once() {
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
                    store.enqueue(&[job(&format!("j{n}")).into()]).expect("enqueue");
                })
            });
            // All are started before the first is waited for.
            for opener in openers.collect::<Vec<_>>() {
                opener.join().expect("an opener");
            }
        });
        let fixture = home.fixture();
        fixture.recount();
        let jobs = fixture.list_by(&JobFilter::default(), 100);
        assert_eq!(jobs.len(), OPENERS, "round {round}");
    }
}

/// Whatever can happen, at random, for a while.
fn bustle(fixture: &Fixture, seed: u64) {
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

/// Statements that count what must not be.
const CONTRADICTIONS: [(&str, &str); 6] = [
    (
        "a job that waits for a slot or its time stands in exactly one line, and no other job in any",
        "select count(*) from jobs j
         where (select count(*) from ready r where r.seq = j.seq) + (select count(*) from waiting w where w.seq = j.seq)
            <> (j.state = 'failed' or (j.state = 'pending' and j.blocked_by = 0))",
    ),
    (
        "a line holds no job that is gone, and each with its own rank",
        "select (select count(*) from ready r left join jobs j using (seq, queue_id, priority, due_at) where j.id is null)
              + (select count(*) from waiting w left join jobs j using (seq, due_at) where j.id is null)",
    ),
    (
        "a job is blocked by as many as it waits for",
        "select count(*) from jobs j
         where j.blocked_by <> (select count(*) from dependencies d where d.child_seq = j.seq and d.blocks = 1)",
    ),
    (
        "nobody waits for what is finished or gone",
        "select count(*) from dependencies d left join jobs j on j.seq = d.parent_seq
         where d.blocks = 1 and (j.seq is null or j.finished_at is not null)",
    ),
    (
        "every attempt but the running one has its row",
        "select count(*) from jobs j
         where j.attempts - (j.state = 'processing') <> (select count(*) from attempts a where a.seq = j.seq)",
    ),
    (
        "nothing is kept of a job that is gone",
        "select (select count(*) from attempts where seq not in (select seq from jobs))
              + (select count(*) from job_tags where seq not in (select seq from jobs))
              + (select count(*) from events where seq not in (select seq from jobs))
              + (select count(*) from dependencies where parent_seq not in (select seq from jobs)
                                                      or child_seq not in (select seq from jobs))
              + (select count(*) from unique_keys where seq not in (select seq from jobs))",
    ),
];

#[test]
fn a_busy_database_is_whole_and_free_of_contradictions() {
    for seed in 0..3 {
        let home = Home::new();
        let fixture = home.fixture();
        bustle(&fixture, seed);
        fixture.recount();
        drop(fixture);
        let connection = home.connect();
        assert_eq!(value(&connection, "pragma integrity_check"), "ok");
        let busy: usize = value(&connection, "select count(*) from attempts").parse().expect("a count");
        assert!(busy > 50, "much has happened: {busy}");
        for (what, sql) in CONTRADICTIONS {
            assert_eq!(value(&connection, sql), "0", "seed {seed}: {what}");
        }
    }
}

#[test]
fn a_number_in_the_order_of_enqueuing_is_never_used_twice() {
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
fn orders_to_stop_do_not_pile_up() {
    let home = Home::new();
    let fixture = home.fixture();
    fixture.set(SettingKey::Durability, "normal");
    for _ in 0..1_100 {
        fixture.store.stop(&Stop { home: None, kill_at: None }, ACTOR).expect("stop");
    }
    drop(fixture);
    let connection = home.connect();
    assert_eq!(value(&connection, "select count(*) from stops"), "1000");
    assert_eq!(value(&connection, "select max(id) from stops"), "1100", "the newest are kept");
}

/// Pages of the log that whoever opens the store alone has to read.
fn pages_to_read(home: &Home) -> i64 {
    let connection = connect(&home.database());
    connection
        .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
        .expect("the log stays as it is");
    connection.query_row("pragma wal_checkpoint(noop)", [], |row| row.get(1)).expect("wal_checkpoint")
}

#[test]
fn the_log_stays_short_while_processes_come_and_go() {
    let home = Home::with_queue();
    for n in 0..40 {
        home.open().expect("a store").enqueue(&[job(&format!("j{n}")).into()]).expect("enqueue");
        assert!(pages_to_read(&home) < 64, "{} pages after {n} processes", pages_to_read(&home));
    }
}

#[test]
fn a_large_commit_leaves_no_long_log_behind() {
    let home = Home::with_queue();
    let store = home.open().expect("a store");
    for chunk in 0..4 {
        let many: Vec<NewJob> = (0..5_000).map(|n| job(&format!("c{chunk}-{n}")).into()).collect();
        store.enqueue(&many).expect("enqueue");
    }
    drop(store);
    assert_eq!(pages_to_read(&home), 0);
}
