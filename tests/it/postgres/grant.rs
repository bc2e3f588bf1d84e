//! `store grant`: what a role of each part can do, and what it cannot.

use rustix::process::{Pid, Signal, kill_process};

use super::cluster::Cluster;
use crate::cli::harness::Home;
use crate::cli::harness::background::Background;
use crate::cli::harness::working_home::wait_until;

/// A queue of the role `keeper`, and a role with this part.
fn queue_with(part: &str) -> (Cluster, Home) {
    let cluster = Cluster::start("");
    let home = Home::new();
    let owner = cluster.socket_url("keeper");
    home.run(["store", "migrate", "--store", &owner]).ok();
    home.run(["enqueue", "-q", "--id", "secret", "--env-capture", "--store", &owner, "--", "echo", "hidden"])
        .ok();
    cluster.sql("postgres", "create role \"O'Neil \"\"x\" login");
    let sql = home.run(["store", "grant", "O'Neil \"x", "--as", part, "--store", &owner]).ok().stdout;
    // The owner may grant rights to tables; only an administrator membership in a role.
    let granting = if part == "admin" { "postgres" } else { "keeper" };
    let granted = cluster.try_sql(granting, "jobs", &sql);
    assert!(granted.status.success(), "{}", String::from_utf8_lossy(&granted.stderr));
    (cluster, home)
}

/// Whether the role can run a statement in the schema.
fn can(cluster: &Cluster, statement: &str) -> bool {
    let ran = cluster.try_sql(
        "O'Neil \"x",
        "jobs",
        &format!("set search_path = queuectl; begin; {statement}; rollback"),
    );
    let said = String::from_utf8_lossy(&ran.stderr);
    let is_refused = said.contains("permission denied") || said.contains("must be owner");
    assert!(ran.status.success() || is_refused, "{statement}: {said}");
    ran.status.success()
}

const ADD_JOB: &str =
    "insert into jobs (id, queue_id, priority, state, due_at, max_retries, created_at, updated_at, command)
                       values ('new', 1, 0, 'pending', 0, 0, 0, 0, 'true') returning seq";
const ENTER_GATE: &str = "lock table gate_1 in row exclusive mode";
const CLOSE_GATE: &str = "lock table gate_1 in share row exclusive mode";
const READ_COMMANDS: &str = "select command from jobs";
const READ_ENVIRONMENTS: &str = "select variables from environments";
const READ_OUTPUT: &str = "select content from outputs";
const READ_HOOK_SECRETS: &str = "select secret from hooks";
const DELETE_JOB: &str = "delete from jobs";
const CHANGE_COMMAND: &str = "update jobs set command = 'true'";
const CHANGE_SETTING: &str = "insert into settings values ('lease', '60s')";
const CHANGE_VERSION: &str = "update meta set version = 99";
const MIGRATE: &str = "alter table gate_1 rename to gate_2";

#[test]
fn an_enqueuer_adds_jobs_and_reads_none() {
    let (cluster, _) = queue_with("enqueuer");
    for allowed in [
        ADD_JOB,
        ENTER_GATE,
        "select id, state from jobs",
        "insert into ready values (1, 0, 0, 7)",
        "insert into waiting values (0, 7)",
        "insert into dependencies values (1, 7)",
        "insert into job_tags values ('t', 7)",
        "insert into unique_keys values ('k', 7) on conflict (key) do update set seq = excluded.seq",
        "insert into batches (name, created_at) values ('b', 0)",
        "insert into queues (name, created_at) values ('q', 0)",
        "insert into environments (fingerprint, variables) values (1, '')",
        "insert into counters values (1, 'pending', -1, 1) on conflict (queue_id, state, shard) do update set count = counters.count + 1, entered = counters.entered + 1",
        "select seq from jobs for share",
        "select key, value from settings",
    ] {
        assert!(can(&cluster, allowed), "{allowed}");
    }
    for refused in [
        READ_COMMANDS,
        READ_ENVIRONMENTS,
        READ_OUTPUT,
        READ_HOOK_SECRETS,
        DELETE_JOB,
        CHANGE_COMMAND,
        CHANGE_SETTING,
        CHANGE_VERSION,
        CLOSE_GATE,
        MIGRATE,
        "delete from ready",
        "select * from events",
    ] {
        assert!(!can(&cluster, refused), "{refused}");
    }
}

/// Every kind of job that needs more than a row in `jobs`.
#[test]
fn an_enqueuer_enqueues() {
    let (cluster, home) = queue_with("enqueuer");
    let (url, owner) = (cluster.socket_url("O%27Neil%20%22x"), cluster.socket_url("keeper"));
    let enqueue = |args: &[&str]| {
        home.run([&["enqueue", "--store", &url][..], args, &["--", "cat"]].concat()).ok().stdout
    };
    enqueue(&["--id", "plain"]);
    enqueue(&["--id", "plain", "--if-absent"]);
    enqueue(&["--id", "other", "--queue", "new-queue", "--tag", "t", "--delay", "1h"]);
    enqueue(&["--id", "holder", "--unique-key", "k"]);
    assert_eq!(enqueue(&["--id", "another", "--unique-key", "k"]), "holder\n");
    assert_eq!(enqueue(&["--id", "json", "--json"]), "{\"id\":\"json\",\"existing\":false}\n");
    enqueue(&["--id", "child", "--after", "plain", "--after", "holder"]);
    enqueue(&["--id", "member", "--batch", "b"]);
    enqueue(&["--id", "second", "--batch", "b"]);
    enqueue(&["--id", "second", "--batch", "unused", "--if-absent"]);
    enqueue(&["--id", "captured", "--env-capture"]);
    enqueue(&["--id", "captured-again", "--env-capture"]);
    home.call(["enqueue", "-q", "--stdin", "--id", "fed", "--store", &url, "--", "cat"])
        .with_stdin("in")
        .run()
        .ok();
    home.run(["enqueue", "-q", "--id", "plain", "--store", &url, "--", "true"]).fails(4).says("plain");
    home.run(["enqueue", "-q", "--after", "missing", "--store", &url, "--", "true"]).fails(3);

    home.run(["worker", "run", "--until-empty", "-q", "--store", &owner]).ok();
    // A dependency that is met blocks nothing.
    enqueue(&["--id", "late-child", "--after", "plain"]);
    home.run(["worker", "run", "--until-empty", "-q", "--store", &owner]).ok();
    let completed = "select string_agg(id, ' ' order by id) from queuectl.jobs where state = 'completed'";
    let completed = String::from_utf8(cluster.try_sql("keeper", "jobs", completed).stdout).expect("text");
    assert!(
        completed
            .contains("captured captured-again child fed holder json late-child member plain second secret"),
        "{completed}"
    );

    for refused in [
        &["cancel", "child"][..],
        &["retry", "child"],
        &["remove", "child"],
        &["show", "child"],
        &["list"],
        &["logs", "child"],
        &["config", "set", "lease", "60s"],
        &["queue", "pause", "default"],
    ] {
        let ran = home.run([refused, &["--store", &url]].concat());
        assert_ne!(ran.status.code(), Some(0), "{refused:?}: {}", ran.stdout);
    }
    for start in [&["worker", "run", "--until-empty"][..], &["worker", "start"]] {
        let refused = home.run([start, &["--store", &url]].concat()).fails(5);
        refused
            .says("it lacks the right to select on the table `attempts`")
            .says("store grant ROLE --as worker");
    }
}

#[test]
fn a_reader_looks_and_changes_nothing() {
    let (cluster, home) = queue_with("reader");
    for allowed in [READ_COMMANDS, READ_OUTPUT, "select * from events", "select name, url from hooks"] {
        assert!(can(&cluster, allowed), "{allowed}");
    }
    for refused in [
        READ_ENVIRONMENTS,
        READ_HOOK_SECRETS,
        ADD_JOB,
        ENTER_GATE,
        CLOSE_GATE,
        DELETE_JOB,
        CHANGE_COMMAND,
        CHANGE_SETTING,
        CHANGE_VERSION,
        MIGRATE,
    ] {
        assert!(!can(&cluster, refused), "{refused}");
    }
    let url = cluster.socket_url("O%27Neil%20%22x");
    home.run(["cancel", "secret", "--store", &url]).fails(5);
}

#[test]
fn a_worker_does_everything_but_migrations() {
    let (cluster, home) = queue_with("worker");
    for allowed in [
        ADD_JOB,
        ENTER_GATE,
        CLOSE_GATE,
        READ_COMMANDS,
        READ_ENVIRONMENTS,
        READ_OUTPUT,
        DELETE_JOB,
        CHANGE_COMMAND,
        CHANGE_SETTING,
    ] {
        assert!(can(&cluster, allowed), "{allowed}");
    }
    for refused in [CHANGE_VERSION, MIGRATE] {
        assert!(!can(&cluster, refused), "{refused}");
    }
    let url = cluster.socket_url("O%27Neil%20%22x");
    home.run(["worker", "run", "--until-empty", "-q", "--store", &url]).ok();
    let shown = home.run(["logs", "secret", "--store", &url]).ok();
    assert_eq!(shown.stdout, "hidden\n");
}

const REVOKE: &str = r#"revoke update on queuectl.workers from "O'Neil ""x""#;
const REVOKE_ALL: &str = r#"revoke all on all tables in schema queuectl from "O'Neil ""x""#;
const LIVE: &str = "select pid from queuectl.workers where state = 'running'";

/// A queue with a role that runs jobs, and a pool of that role. Returns the pid of its worker, too.
fn pool_of_role(lease: &str) -> (Cluster, Home, Background, Pid) {
    let (cluster, home) = queue_with("worker");
    let (owner, url) = (cluster.socket_url("keeper"), cluster.socket_url("O%27Neil%20%22x"));
    home.run(["config", "set", "heartbeat_interval", "500ms", "--store", &owner]).ok();
    home.run(["config", "set", "lease", lease, "--store", &owner]).ok();
    let pool = Background::start(home.call(["worker", "run", "-q", "--store", &url]));
    let mut worker = None;
    wait_until("the worker is up", || {
        worker = cluster.sql("jobs", LIVE).parse().ok().and_then(Pid::from_raw);
        worker.is_some()
    });
    (cluster, home, pool, worker.expect("a pid"))
}

#[test]
fn a_worker_that_loses_its_rights_ends_with_the_reason_and_is_not_replaced() {
    let (cluster, _home, pool, _) = pool_of_role("2s");
    cluster.sql("jobs", REVOKE);
    let (status, said) = pool.end();
    assert_eq!((status.code(), said.len()), (Some(5), 2), "an error and a hint: {said:?}");
    assert!(
        said[0].contains("cannot run jobs: it lacks the right to update on the table `workers`"),
        "{said:?}"
    );
    assert!(said[1].contains("store grant ROLE --as worker"), "{said:?}");
    assert_eq!(cluster.sql("jobs", "select count(*) from queuectl.workers"), "1");
}

#[test]
fn a_pool_without_rights_whose_worker_dies_ends_with_the_reason() {
    let (cluster, _home, pool, worker) = pool_of_role("60s");
    cluster.sql("jobs", REVOKE_ALL);
    kill_process(worker, Signal::KILL).expect("it is killed");
    let (status, said) = pool.end();
    assert_eq!((status.code(), said.len()), (Some(5), 2), "an error and a hint: {said:?}");
    assert!(
        said[0].contains("permission denied") && said[1].contains("grant the role its rights"),
        "{said:?}"
    );
}

#[test]
fn an_admin_is_as_the_owner() {
    let (cluster, home) = queue_with("admin");
    for allowed in [ADD_JOB, CLOSE_GATE, READ_ENVIRONMENTS, CHANGE_VERSION, MIGRATE] {
        assert!(can(&cluster, allowed), "{allowed}");
    }
    home.run(["list", "--store", &cluster.socket_url("O%27Neil%20%22x")]).ok();
}

#[test]
fn a_part_can_become_smaller() {
    let (cluster, home) = queue_with("worker");
    let url = cluster.socket_url("keeper");
    let sql = home.run(["store", "grant", "O'Neil \"x", "--as", "reader", "--store", &url]).ok().stdout;
    assert!(cluster.try_sql("keeper", "jobs", &sql).status.success());
    assert!(!can(&cluster, ADD_JOB) && can(&cluster, READ_COMMANDS));
}

#[test]
fn a_mistyped_part_and_a_store_without_roles_are_refused() {
    let home = Home::new();
    home.run(["store", "grant", "r", "--as", "enqeuer", "--store", "postgres://h/d"])
        .fails(2)
        .says("`enqueuer`");
    home.run(["store", "grant", "r", "--as", "worker"]).fails(2).says("only a queue in PostgreSQL has roles");
}
