//! Machines with different versions of queuectl on one queue.

use std::ffi::OsString;
use std::path::Path;

use serde_json::Value;
use store::postgres::SCHEMA_VERSION;

use super::Machine;
use crate::cli::harness::{Call, RunResult};
use crate::engine::harness::{UNTIL_GO, is_alive, wait_until};
use crate::store::fixture::schema::Schema;

/// Undoes the last migration.
const BACK_TO_3: &str = "drop table causes; drop index jobs_by_cause, attempts_failed;
     alter table jobs drop column cause_id; alter table hooks drop column results; update meta set version = 3";

/// Returns a schema to the version before, as a program of that version would have made it.
const BACK_TO_2: &str =
    "drop table minutes; alter table counters drop column entered; alter table queues drop column sampled;
     update meta set version = 2";
const BACK_TO_1: &str =
    "alter table workers drop column beat, drop column health, drop column listens; drop table output_parts;
     update meta set version = 1";

/// Commands that only read.
const READS: [&str; 21] = [
    "list --json",
    "status --json",
    "show a --json",
    "show failed --json",
    "logs a",
    "explain waiting",
    "graph a",
    "dlq list --json",
    "dlq list --group --json",
    "history --json",
    "queue list --json",
    "schedule list --json",
    "batch list --json",
    "batch show b --json",
    "hook list --json",
    "config list --json",
    "events --json",
    "worker list --json",
    "metrics",
    "export",
    "doctor",
];

/// Commands that write.
const WRITES: [&str; 8] = [
    "enqueue true",
    "run true",
    "cancel waiting",
    "retry failed",
    "config set lease 2m",
    "queue pause default",
    "worker run --until-empty",
    "worker start",
];

fn fill(machine: &Machine<'_>) {
    machine.enqueue("a", "echo output");
    machine.call(&["enqueue", "-q", "--id", "failed", "--max-retries", "0", "-c", "exit 3"]).run().ok();
    machine.run("enqueue -q --id waiting --delay 1h --batch b -- true").ok();
    machine.run("schedule add tick --cron @daily -- true").ok();
    machine.run("worker run -q --until-empty").ok();
}

/// Without times that pass between two calls.
fn stable(result: &RunResult) -> Vec<Value> {
    let keeps =
        |line: &&str| !line.contains("exported") && !line.contains("minute") && !line.contains("total");
    let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|_| Value::from(line));
    result.stdout.lines().filter(keeps).map(parse).collect()
}

#[test]
fn a_newer_program_reads_every_earlier_schema_and_refuses_to_write() {
    let schema = Schema::new();
    let machine = Machine::new(&schema, "near");
    fill(&machine);
    let exact = ["list --json", "show a --json", "show failed --json", "logs a", "graph a", "events --json"];
    let now: Vec<_> = exact.iter().map(|words| stable(&machine.run(words).ok())).collect();
    for (version, back) in [(3, BACK_TO_3), (2, BACK_TO_2), (1, BACK_TO_1)] {
        schema.session().run(back);
        for words in READS {
            machine.run(words).ok();
        }
        let then: Vec<_> = exact.iter().map(|words| stable(&machine.run(words).ok())).collect();
        assert_eq!(then, now, "version {version}");
        let causes = machine.run("dlq list --group --json").ok().json();
        assert_eq!(
            (&causes[0]["count"], &causes[0]["exit_code"]),
            (&1.into(), &3.into()),
            "version {version}"
        );
        machine.run("doctor").ok().shows("which this queuectl can only read");
        let info = machine.run("store info --json").ok().json();
        assert_eq!(info["schema_version"], version);
        for words in WRITES {
            let refused = machine.run(words).fails(7);
            refused.says(&format!("schema version {version}, older than")).says("queuectl store migrate");
        }
        let found = schema.session().run("select version from meta");
        assert_eq!(found, [version.to_string()], "nothing is migrated by the way");
    }
    machine.run("store migrate").ok().prints(&format!("{SCHEMA_VERSION}\n"));
    machine.enqueue("b", "true");
    let then: Vec<_> = exact[1..4].iter().map(|words| stable(&machine.run(words).ok())).collect();
    assert_eq!(then, now[1..4]);
}

/// A program that reads a schema while another migrates it keeps reading, and can write from then on.
#[test]
fn a_reader_lives_through_a_migration() {
    use store::postgres::PostgresStore;
    use store::{JobFilter, Store};

    let schema = Schema::new();
    fill(&Machine::new(&schema, "near"));
    schema.session().run(BACK_TO_3);
    schema.session().run(BACK_TO_2);
    let store = PostgresStore::open_existing(&schema.address, None).expect("it can be read");
    let store: &dyn Store = &store;
    let count = || store.select(&JobFilter::default(), None, 9).expect("jobs").len();
    assert_eq!((count(), store.queues().expect("queues").len()), (3, 1));
    let refused = store.note("x", "me", "x").expect_err("it is older");
    assert!(matches!(refused, store::StoreError::TooOld { found: 2, .. }), "{refused}");
    PostgresStore::migrate(&schema.address).expect("migrated");
    assert_eq!((count(), store.queues().expect("queues").len()), (3, 1));
    store.note("x", "me", "x").expect("it is current");
}

/// A migration after which the programs of today cannot write.
fn newer_program(folder: &Path) -> OsString {
    let path = folder.join("newer.sql");
    let statements = "alter table gate_1 rename to gate_2; alter table jobs add column made_up bigint";
    std::fs::write(&path, statements).expect("a migration is written");
    path.into_os_string()
}

struct Fleet<'a> {
    old: Machine<'a>,
    new: Machine<'a>,
    migrations: OsString,
}

impl<'a> Fleet<'a> {
    fn of(schema: &'a Schema) -> Self {
        let (old, new) = (Machine::new(schema, "old"), Machine::new(schema, "new"));
        let migrations = newer_program(new.home.folder());
        Self { old, new, migrations }
    }

    fn newer(&self, words: &str) -> Call {
        self.new.call(&words.split(' ').collect::<Vec<_>>()).env("QUEUECTL_MIGRATIONS", &self.migrations)
    }

    fn state(&self, id: &str) -> String {
        let job = self.newer(&format!("show {id} --json")).run().ok().json();
        job["state"].as_str().expect("a state").to_owned()
    }
}

#[test]
fn a_migration_waits_for_workers_that_do_not_know_it() {
    let schema = Schema::new();
    let fleet = Fleet::of(&schema);
    fleet.old.enqueue("slow", UNTIL_GO);
    fleet.old.enqueue("later", "true");
    let pool = fleet.old.worker();
    fleet.old.wait_for("slow", "processing");
    let late = fleet.newer("store migrate --timeout 1s").run().fails(124);
    late.says("the schema was not changed").says("(on ").says("--now");
    assert_eq!(fleet.state("later"), "pending", "the worker claims nothing more");
    assert_eq!(schema.session().run("select gate from meta"), ["1"]);

    let mut migrating = fleet.newer("store migrate --json").into_command();
    let migrating = migrating.stdout(std::process::Stdio::piped()).spawn().expect("it runs");
    fleet.old.home.file("go", "");
    let migrated = migrating.wait_with_output().expect("it ends");
    let answer: Value = serde_json::from_slice(&migrated.stdout).expect("JSON");
    assert_eq!((&answer["before"], &answer["changed"]), (&SCHEMA_VERSION.into(), &true.into()), "{answer}");
    let job = fleet.newer("show slow --json").run().ok().json();
    let outcomes: Vec<_> =
        job["history"].as_array().expect("attempts").iter().map(|a| &a["outcome"]).collect();
    assert_eq!(outcomes, ["success"], "it was not interrupted");
    drop(pool);
    fleet.old.run("list").fails(7).says("newer than the");
    fleet.newer("worker run --until-empty -q").run().ok();
    assert_eq!(fleet.state("later"), "completed");
}

#[test]
fn a_migration_at_once_ends_older_workers_and_their_jobs_run_elsewhere() {
    let schema = Schema::new();
    let fleet = Fleet::of(&schema);
    fleet.old.shorten_leases();
    fleet.old.enqueue("a", "echo $$ > running; [ $QUEUECTL_ATTEMPT = 2 ] || exec sleep 600");
    let _pool = fleet.old.worker();
    fleet.old.wait_for("a", "processing");
    let command = fleet.old.home.wait_for_pid("running");
    let workers = fleet.old.run("worker list --json").ok().json();
    let supervisor =
        workers[0]["supervisor_pid"].as_u64().and_then(|pid| u32::try_from(pid).ok()).expect("a pid");
    fleet.newer("store migrate --now").run().ok();
    let status = fleet.newer("status --json").run().ok().json();
    let problems = status["problems"].as_array().expect("problems");
    let outdated = problems.iter().find(|problem| problem["problem"] == "outdated_worker");
    let message = outdated.unwrap_or_else(|| panic!("{status}"))["message"].as_str().expect("a message");
    assert!(message.contains("older than the schema"), "{message}");
    wait_until("its command is dead", || !is_alive(command));
    wait_until("its supervisor has ended", || !is_alive(supervisor));
    assert!(fleet.old.home.journal().contains("newer than the"), "{}", fleet.old.home.journal());
    fleet.newer("worker run --until-empty -q").run().ok();
    let job = fleet.newer("show a --json").run().ok().json();
    assert_eq!((&job["state"], &job["attempts"]), (&"completed".into(), &2.into()), "{job}");
    assert_eq!(fleet.newer("status --json").run().ok().json()["problems"], Value::Array(Vec::new()));
}

/// Workers of an earlier version can live with a migration that keeps the gate.
#[test]
fn a_migration_that_keeps_the_gate_stops_no_worker() {
    let schema = Schema::new();
    let fleet = Fleet::of(&schema);
    let pool = fleet.old.worker();
    std::fs::write(&fleet.migrations, "alter table jobs add column made_up bigint").expect("a migration");
    fleet.newer("store migrate").run().ok().prints(&format!("{}\n", SCHEMA_VERSION + 1));
    fleet.old.enqueue("a", "true");
    fleet.old.wait_for("a", "completed");
    drop(pool);
}
