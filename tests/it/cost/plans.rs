//! Every statement of the store finds its rows by an index.
//!
//! The statements are read from the source, so that a new statement is checked automatically.

use std::fs;
use std::path::Path;

use rusqlite::Connection;
use tempfile::TempDir;

use crate::store::fixture::Fixture;

/// The text that `select_jobs!` and `select_whole_jobs!` put before a condition, with a single column.
const SELECT_JOBS: &str = "select j.seq from jobs j left join workers w on w.seq = j.worker_seq ";

/// A placeholder for the rest of a statement that `job_query!` completes.
const PLACEHOLDER: &str = " true";

/// Tables that stay small, however many jobs there are.
const SMALL_TABLES: [&str; 10] = [
    "settings",
    "sequence",
    "queues",
    "workers",
    "counters",
    "causes",
    "hooks",
    "schedules",
    "unkillable",
    "sqlite_master",
];

/// Statements that may scan a table, because they stop at its first row.
const FIRST_ROW_ONLY: [&str; 4] = [
    "select id from jobs order by seq desc limit 1",
    "select 1 from pending_unblocks limit 1",
    "select parent_seq, failed, after_seq from pending_unblocks order by parent_seq limit 1",
    "select due_at from waiting order by due_at, seq limit 1",
];

/// Statements that may sort: their rows are output for the user, or few.
const SORTED: [&str; 4] = [
    "select id from causes where queue_id = :queue_id or :queue_id is null group by id having sum(count) > 0 \
     order by sum(count) desc, max(last_at) desc limit :limit",
    "select id, name, paused_at, paused_by, pause_reason, concurrency, rate_count, rate_period_ms, rate_tokens, \
     rate_refilled_at, limits, retry_on, no_retry_on from queues order by name",
    "select id, host, boot_id, pid, supervisor_pid, queues, concurrency, coalesce(held.count, 0) as held, state, \
     started_at, last_heartbeat, folder, held.until as lease_until, coalesce(slots, concurrency) as slots, \
     machine_id, home_id, pid_namespace, lock_device, lock_inode, beat, health from workers left join (select worker_seq, count(*) as count, \
     min(lease_until) as until from jobs where state = 'processing' group by worker_seq) held on held.worker_seq = \
     workers.seq where state <> 'stopped' and (machine_id = :machine_id or cast(:machine_id as text) is null) order by seq",
    "select j.priority, r.due_at, r.seq, r.queue_id from jobs j cross join ready r where r.queue_id = j.queue_id and r.priority = \
     j.priority and r.due_at = j.due_at and r.seq = j.seq and j.batch_id = ?1 order by j.priority desc, r.due_at, r.seq \
     limit ?2",
];

/// The hot statements by their beginning, and the index that each must use.
const HOT: [(&str, &str); 55] = [
    ("select content from minutes", "minutes USING INTEGER PRIMARY KEY (rowid=?)"),
    ("update minutes set content", "minutes USING INTEGER PRIMARY KEY (rowid=?)"),
    ("select id, content, 0 from minutes", "minutes USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"),
    ("select content, id from minutes", "minutes USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"),
    ("select priority, due_at from ready", "ready USING PRIMARY KEY (queue_id=? AND priority<?)"),
    ("select seq from waiting where due_at >=", "waiting USING PRIMARY KEY (due_at>?)"),
    ("select count(*) from schedules", "schedules_due"),
    ("select next_at from schedules", "schedules_due"),
    ("select id, name from schedules where next_at", "schedules_due (next_at>? AND next_at<?)"),
    (
        "select id, state, scheduled_for, created_at, finished_at from jobs where schedule_id",
        "jobs_by_schedule (schedule_id=?)",
    ),
    (
        "select id, state, scheduled_for, created_at, finished_at from jobs where state",
        "jobs_by_state (state=?)",
    ),
    ("select d.due_at, d.id from hooks", "deliveries_by_hook (hook_id=?)"),
    ("select d.due_at, d.id from hooks", "deliveries_sent (worker_seq>?)"),
    (
        "update deliveries set due_at = case when created_at < :now then created_at else :now end, worker_seq = null \
         where worker_seq = :worker_seq",
        "deliveries_sent (worker_seq=?)",
    ),
    ("update deliveries set due_at = :now where id in", "deliveries_by_hook (hook_id=? AND due_at>?)"),
    ("select id, worker_seq is not null and due_at", "deliveries_by_hook (hook_id=?)"),
    ("select queue_id from ready where queue_id >", "ready USING PRIMARY KEY (queue_id>?)"),
    ("select priority, due_at, seq from ready", "ready USING PRIMARY KEY (queue_id=?)"),
    ("delete from ready", "ready USING PRIMARY KEY (queue_id=? AND priority=? AND due_at=? AND seq=?)"),
    ("delete from waiting", "waiting USING PRIMARY KEY (due_at=? AND seq=?)"),
    ("select w.due_at, w.seq, j.queue_id, j.priority", "w USING PRIMARY KEY (due_at<?)"),
    ("select j.priority, w.due_at, w.seq", "w USING PRIMARY KEY (due_at<?)"),
    ("select j.priority, r.due_at, r.seq from ready r", "r USING PRIMARY KEY (queue_id=? AND priority"),
    ("update jobs set state", "jobs USING INTEGER PRIMARY KEY (rowid=?)"),
    ("select j.seq from jobs j left join workers w on w.seq = j.worker_seq where j.id = ?1", "(id=?)"),
    (
        "select j.seq from jobs j left join workers w on w.seq = j.worker_seq where j.seq = ?1",
        "j USING INTEGER PRIMARY KEY (rowid=?)",
    ),
    (
        "select j.seq from jobs j left join workers w on w.seq = j.worker_seq where j.state = 'processing'",
        "jobs_by_state (state=?)",
    ),
    ("select id, host, boot_id", "jobs_by_state (state=?)"),
    ("select id, host, boot_id", "workers_live"),
    ("select 1 from workers where state <> 'stopped'", "workers_live"),
    ("select r.priority, r.due_at, r.seq, r.queue_id", "j USING INDEX sqlite_autoindex_jobs_1 (id=?)"),
    (
        "select r.priority, r.due_at, r.seq, r.queue_id",
        "r USING PRIMARY KEY (queue_id=? AND priority=? AND due_at=? AND seq=?)",
    ),
    (
        "select count(*) > 0 as drain, min(kill_at) as kill_at from stops",
        "stops USING INTEGER PRIMARY KEY (rowid>?)",
    ),
    ("delete from stops", "stops USING INTEGER PRIMARY KEY (rowid<?)"),
    ("select id, attempts, cancel_requested, options from jobs", "jobs_by_state (state=?)"),
    ("select name from queues where paused_at is null", "ready USING PRIMARY KEY (queue_id=?)"),
    ("select name from queues where paused_at is null", "counters USING PRIMARY KEY (queue_id=?"),
    ("select q.name from waiting w", "w USING PRIMARY KEY (due_at<?)"),
    ("select child_seq from dependencies", "dependencies USING PRIMARY KEY (parent_seq=? AND child_seq>?)"),
    ("update dependencies", "dependencies USING PRIMARY KEY (parent_seq=? AND child_seq=?)"),
    (
        "select j.seq, j.state, j.id, j.queue_id from jobs j indexed by jobs_by_state where",
        "jobs_by_state (state=? AND seq>? AND seq<?)",
    ),
    (
        "select j.seq, j.state, j.id, j.queue_id from jobs j indexed by jobs_by_queue where",
        "jobs_by_queue (queue_id=? AND state=? AND seq>? AND seq<?)",
    ),
    (
        "select j.seq, j.state, j.id, j.queue_id from jobs j indexed by jobs_by_schedule where",
        "jobs_by_schedule (schedule_id=? AND seq>? AND seq<?)",
    ),
    (
        "select j.seq, j.state, j.id, j.queue_id from jobs j indexed by jobs_by_cause where",
        "jobs_by_cause (cause_id=? AND seq>? AND seq<?)",
    ),
    ("select id, seq, state from jobs where cause_id", "jobs_by_cause (cause_id=?)"),
    ("select a.seq, a.finished_at from attempts a", "attempts_failed ((finished_at,seq)<(?,?))"),
    ("select j.id, j.seq, j.state, j.command, q.name as queue", "attempts_failed (finished_at<?)"),
    ("select j.seq, j.state, j.id, j.reason", "jobs_by_state (state=? AND seq<?)"),
    (
        "select j.seq, j.state, j.id, j.queue_id from jobs j indexed by jobs_blocked",
        "jobs_blocked (seq>? AND seq<?)",
    ),
    (
        "select j.seq, j.state, j.id, j.queue_id from jobs j indexed by jobs_by_batch where",
        "jobs_by_batch (batch_id=? AND seq>? AND seq<?)",
    ),
    (
        "select j.seq, j.state, j.id, j.queue_id from job_tags u",
        "u USING PRIMARY KEY (tag=? AND seq>? AND seq<?)",
    ),
    ("select id from jobs where id >= :prefix", "(id>? AND id<?)"),
    ("select w.seq from waiting w", "w USING PRIMARY KEY ((due_at,seq)>(?,?))"),
    ("select at, event, by from events", "events_by_job (seq=?)"),
    ("select id from environments where fingerprint", "environments_by_fingerprint (fingerprint=?)"),
];

#[test]
fn every_statement_finds_its_rows_by_an_index() {
    let (_folder, connection) = new_database();
    for sql in statements() {
        assert_finds_rows_by_index(&connection, &sql);
    }
}

#[test]
fn the_hot_statements_use_their_intended_index() {
    let (_folder, connection) = new_database();
    let statements = statements();
    for (beginning, index) in HOT {
        let matching: Vec<&String> = statements.iter().filter(|sql| sql.starts_with(beginning)).collect();
        assert!(!matching.is_empty(), "no statement of the store begins with {beginning}");
        for sql in matching {
            let plan = plan(&connection, sql);
            assert!(plan.iter().any(|line| line.contains(index)), "{sql}\n{plan:#?}");
        }
    }
}

#[test]
fn the_listed_exceptions_still_exist() {
    let statements = statements();
    assert!(statements.len() > 60, "found only {} statements", statements.len());
    for sql in FIRST_ROW_ONLY.into_iter().chain(SORTED) {
        assert!(statements.iter().any(|known| known == sql), "{sql}");
    }
}

/// A new, closed store, opened by a plain SQLite connection.
fn new_database() -> (TempDir, Connection) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    drop(Fixture::sqlite_in(folder.path()));
    let connection = Connection::open(folder.path().join("queue.db")).expect("the database opens");
    (folder, connection)
}

/// Fails if a statement, given on one line, scans a table that may be large, or sorts rows that an index could return
/// in order.
#[track_caller]
pub(super) fn assert_finds_rows_by_index(connection: &Connection, sql: &str) {
    let plan = plan(connection, sql);
    for line in &plan {
        let scanned = line
            .strip_prefix("SCAN ")
            .filter(|rest| *rest != "CONSTANT ROW")
            .and_then(|rest| rest.split(' ').next());
        // A scan of a subquery's result is allowed: the subquery is checked by itself.
        let is_subquery = |table| plan.contains(&format!("CO-ROUTINE {table}"));
        let is_allowed = scanned.is_none_or(|table| SMALL_TABLES.contains(&table) || is_subquery(table));
        assert!(
            is_allowed || FIRST_ROW_ONLY.contains(&sql),
            "{sql}\nscans a table that may be large: {line}"
        );
        // An automatic index is built anew for each execution.
        let sorts = line.contains("TEMP B-TREE") || line.contains("AUTOMATIC");
        assert!(!sorts || SORTED.contains(&sql), "{sql}\nsorts: {line}");
    }
}

/// Whether an executed statement is this statement of the source.
pub(super) fn is_instance(run: &str, known: &str) -> bool {
    match known.strip_prefix(SELECT_JOBS) {
        Some(condition) => run.starts_with("select j.") && run.ends_with(condition),
        None => known.strip_suffix(PLACEHOLDER).map_or(run == known, |beginning| run.starts_with(beginning)),
    }
}

fn plan(connection: &Connection, sql: &str) -> Vec<String> {
    let explain = |sql: &str| -> rusqlite::Result<Vec<String>> {
        let mut statement = connection.prepare(&format!("explain query plan {sql}"))?;
        statement.raw_query().mapped(|row| row.get("detail")).collect()
    };
    explain(sql).unwrap_or_else(|error| panic!("{sql}: {error}"))
}

/// The code for copies of a whole queue, which reads everything, or another file, that for another database, and migrations,
/// each of which runs once.
const UNCHECKED: [&str; 7] = ["backup", "migrate", "postgres", "record", "recount", "shards", "transfer"];

/// All statements of the store that read or change rows, each on one line.
pub(super) fn statements() -> Vec<String> {
    let mut left = vec![Path::new(crate::REPOSITORY).join("crates/store/src")];
    let mut statements = Vec::new();
    while let Some(path) = left.pop() {
        if UNCHECKED.iter().any(|name| path.file_stem().is_some_and(|stem| stem == *name)) {
            continue;
        }
        if path.is_dir() {
            let entries = fs::read_dir(&path).expect("the source folder is readable");
            left.extend(entries.map(|entry| entry.expect("an entry").path()));
            continue;
        }
        let source = fs::read_to_string(&path).expect("a source file is UTF-8");
        statements.extend(literals(&source).iter().filter_map(|literal| statement(literal)));
    }
    statements
}

fn statement(literal: &str) -> Option<String> {
    let one_line = literal.split_whitespace().collect::<Vec<_>>().join(" ");
    let is_part =
        one_line.contains("j.loss_boot, w.id") || one_line.starts_with("select count(*) from sqlite_schema");
    let begins = |word: &&str| one_line.starts_with(word);
    if one_line.starts_with("where j.") {
        return Some(format!("{SELECT_JOBS}{one_line}"));
    }
    let is_whole = ["select ", "update ", "delete from "].iter().any(begins);
    let rest = if one_line.ends_with(" and") { PLACEHOLDER } else { "" };
    (is_whole && !is_part).then(|| one_line + rest)
}

/// The string literals of a source file, without those in comments. Those that `wording!` or `job_query!` puts together are
/// one, in the words of SQLite; the last part of a `job_query!`, its order, is left out.
fn literals(source: &str) -> Vec<String> {
    let code: Vec<&str> =
        source.lines().map(|line| line.split_once("//").map_or(line, |(code, _)| code)).collect();
    let code = code.join("\n");
    let mut found = Vec::new();
    let mut statement: Option<Parts> = None;
    for (at, part) in code.split('"').enumerate() {
        match &mut statement {
            Some(parts) if at % 2 == 1 => parts.add(part),
            None if at % 2 == 1 => found.push(part.to_owned()),
            Some(_) | None => read_code(part, &mut statement, &mut found),
        }
    }
    found
}

/// The parts of a statement inside a macro that has not ended yet.
#[derive(Default)]
struct Parts {
    literals: Vec<String>,
    /// How many parentheses are open.
    depth: usize,
    /// The next literal is in the words of another database.
    is_foreign: bool,
    has_order: bool,
}

impl Parts {
    fn add(&mut self, literal: &str) {
        if !std::mem::take(&mut self.is_foreign) {
            self.literals.push(literal.to_owned());
        }
    }

    fn joined(mut self) -> String {
        if self.has_order {
            self.literals.pop();
        }
        self.literals.concat()
    }
}

/// Follows the code between two literals: where a statement begins and ends.
fn read_code(mut code: &str, statement: &mut Option<Parts>, found: &mut Vec<String>) {
    while !code.is_empty() {
        let Some(parts) = statement else {
            let begins =
                ["wording!(", "job_query!("].into_iter().filter_map(|name| Some((code.find(name)?, name)));
            let Some((at, name)) = begins.min() else {
                return;
            };
            *statement = Some(Parts { depth: 1, has_order: name == "job_query!(", ..Parts::default() });
            code = &code[at + name.len()..];
            continue;
        };
        match code.as_bytes()[0] {
            b'(' => parts.depth += 1,
            b')' => parts.depth -= 1,
            b'|' => parts.is_foreign = true,
            _ => {}
        }
        code = code.split_at_checked(1).map_or("", |(_, rest)| rest);
        if parts.depth == 0 {
            found.extend(statement.take().map(Parts::joined));
        }
    }
}
