//! A database of an earlier program keeps everything when this one opens it.

use std::time::Duration;

use domain::job::life::{State, StateName};
use domain::job::outcome::Outcome;
use store::sqlite::SCHEMA_VERSION;
use store::{ServedJobs, StoreError, WorkerState};

use super::super::fixture::under_boot;
use super::{Home, value};

const FIRST_SCHEMA: &str = include_str!("../../../../migrations/sqlite/0001_foundation.sql");

/// What the first program left behind: a worker with a lease, a job that waits, and one that is over.
const FIRST_ROWS: &str = "
    insert into settings values ('max_retries', '7');
    insert into queues (id, name, created_at) values (1, 'default', 1);
    insert into workers (seq, id, host, boot_id, pid, concurrency, state, started_at, last_heartbeat)
    values (1, 'gone', 'here', 'boot-1', 4710, 1, 'stopped', 1, 2),
           (2, 'w', 'here', 'boot-1', 4711, 2, 'running', 3, 4);
    insert into jobs (seq, id, queue_id, priority, state, due_at, attempts, max_retries, worker_seq, lease_until,
                      started_at, finished_at, exit_code, created_at, updated_at, command)
    values (1, 'completed', 1, 0, 'completed', 1, 1, 3, null, null, 1, 2, 0, 1, 2, 'true'),
           (2, 'processing', 1, 0, 'processing', 1, 1, 3, 2, 5010000, 5, null, null, 1, 5, 'sleep 1'),
           (3, 'pending', 1, 0, 'pending', 1, 0, 3, null, null, null, null, null, 1, 1, 'true');
    insert into attempts (seq, number, worker_seq, started_at, finished_at, duration_ms, outcome, exit_code)
    values (1, 1, 1, 1, 2, 1, 'success', 0);
    insert into ready values (1, 0, 1, 3);
    insert into counters values (1, 'completed', 1), (1, 'processing', 1), (1, 'pending', 1);";

pub(super) fn first_database() -> Home {
    let home = Home::new();
    let connection = home.connect();
    connection
        .execute_batch(
            "pragma page_size = 2048; pragma auto_vacuum = incremental; pragma journal_mode = wal;",
        )
        .expect("the properties of the file");
    connection.execute_batch(FIRST_SCHEMA).expect("the schema");
    connection.execute_batch(FIRST_ROWS).expect("the rows");
    connection
        .execute_batch("pragma application_id = 1366648163; pragma user_version = 1;")
        .expect("the marks");
    home
}

/// The reasons for an end that were added later are taken, and no others.
#[test]
fn a_migrated_table_takes_the_new_reasons() {
    let home = first_database();
    drop(home.open().expect("it is migrated"));
    let connection = home.connect();
    let end = |state: &str, reason: &str| {
        let sql =
            format!("update jobs set state = '{state}', reason = '{reason}', finished_at = 1 where seq = 3");
        connection.execute(&sql, [])
    };
    assert_eq!(end("dead", "not_retried"), Ok(1));
    assert_eq!(end("cancelled", "replaced"), Ok(1));
    assert!(end("dead", "boredom").is_err());
    assert_eq!(value(&connection, "pragma integrity_check"), "ok");
}

#[test]
fn everything_is_still_there() {
    let home = first_database();
    let fixture = home.fixture();
    fixture.recount();
    assert_eq!(fixture.store.settings().expect("settings").len(), 1);
    assert_eq!(
        ["completed", "processing", "pending"].map(|id| fixture.state(id)),
        [StateName::Completed, StateName::Processing, StateName::Pending]
    );
    assert_eq!(fixture.outcomes("completed"), [Outcome::Success]);
    assert_eq!(fixture.record("completed").history[0].worker.as_str(), "gone");
    // What the lease clock showed then is what it shows now, but for ten seconds.
    let until = fixture.now().saturating_add(Duration::from_secs(10));
    let State::Processing(lease) = fixture.job("processing").life.state else { panic!("it is processing") };
    assert_eq!(lease.until, until);

    let [worker] = &fixture.workers()[..] else { panic!("one has not stopped") };
    assert_eq!((worker.id.as_str(), worker.running, worker.concurrency), ("w", 1, 2));
    assert_eq!((worker.state, &worker.served), (WorkerState::Running, &ServedJobs::All));
    assert_eq!((worker.lease_until, worker.overdue), (Some(until), false));
    assert_eq!(worker.origin, under_boot("boot-1"), "the first program wrote down no more than that");
    assert!(!fixture.orders(&worker.id).drain, "nobody has told it to stop");
    drop(fixture);

    let connection = home.connect();
    assert_eq!(value(&connection, "pragma user_version"), "4");
    assert_eq!(value(&connection, "pragma integrity_check"), "ok");
    assert_eq!(SCHEMA_VERSION, 4);
}

#[test]
fn the_queue_goes_on() {
    let home = first_database();
    let fixture = home.fixture();
    let old = "w".parse().expect("a worker id");
    let new = fixture.worker("new");
    assert_eq!(fixture.claim(&new, 9), ["pending"]);
    assert_eq!(fixture.reap(&old).len(), 1);
    assert_eq!(fixture.claim(&new, 9), ["processing"]);
}

#[test]
fn who_depended_on_whom_is_found_and_who_waits_goes_on_waiting() {
    let home = first_database();
    home.connect()
        .execute_batch(
            r#"insert into jobs (seq, id, queue_id, priority, state, blocked_by, due_at, attempts, max_retries,
                                 finished_at, created_at, updated_at, command, depends_on)
               values (4, 'over', 1, 0, 'completed', 0, 1, 1, 3, 2, 1, 2, 'true', '["completed","removed"]'),
                      (5, 'waits', 1, 0, 'pending', 1, 1, 0, 3, null, 1, 1, 'true', '["completed","pending"]');
               insert into attempts (seq, number, worker_seq, started_at, finished_at, duration_ms, outcome, exit_code)
               values (4, 1, 1, 1, 2, 1, 'success', 0);
               insert into dependencies values (3, 5);
               update counters set count = 2 where state = 'completed' or state = 'pending';"#,
        )
        .expect("more rows");
    let fixture = home.fixture();
    fixture.recount();
    let graph = fixture.store.graph(&"completed".parse().expect("an id"), 9).expect("a graph");
    let ids: Vec<String> = graph.expect("a job").nodes.iter().map(|node| node.id.to_string()).collect();
    assert_eq!(ids, ["completed", "over", "waits"]);
    let worker = fixture.worker("new");
    assert_eq!(fixture.run(&worker, Outcome::Success), "pending");
    assert_eq!(fixture.claim(&worker, 9), ["waits"]);
}

/// Everything that the schema is made of.
pub(super) fn schema(home: &Home) -> Vec<[Option<String>; 4]> {
    let connection = home.connect();
    let mut select = connection
        .prepare("select type, name, tbl_name, sql from sqlite_schema order by type, name")
        .expect("the schema");
    let rows = select.query_map([], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?]));
    rows.expect("the schema").collect::<Result<Vec<_>, _>>().expect("the schema")
}

#[test]
fn a_migrated_database_is_like_a_new_one() {
    let migrated = first_database();
    drop(migrated.open().expect("it is migrated"));
    assert_eq!(schema(&migrated), schema(&Home::with_queue()));
}

#[test]
fn fault_35_who_has_it_open_writes_no_more_once_a_newer_program_has_migrated_it() {
    let home = Home::new();
    let fixture = home.fixture();
    fixture.enqueue("before");
    let newer = SCHEMA_VERSION + 1;
    home.connect().pragma_update(None, "user_version", newer).expect("pragma");
    let refused =
        fixture.store.cancel(&["before".parse().expect("an id")], "tester").expect_err("it is newer");
    assert!(matches!(refused, StoreError::TooNew { found, .. } if found == newer), "{refused}");
    assert_eq!(fixture.state("before"), StateName::Pending, "nothing changed, and it can still be read");
}
