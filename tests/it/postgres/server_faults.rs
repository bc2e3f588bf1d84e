//! A server that fails, with workers that use it.

use std::time::{Duration, Instant};

use super::cluster::Cluster;
use super::working_machine::WorkingMachine;
use crate::cli::harness::working_home::wait_until;

/// How long a worker may take to come back after the server has, and a little more for a machine that is busy with tests.
pub(super) const COMES_BACK_WITHIN: Duration = Duration::from_secs(5 + 3);

const LISTENERS: &str = "select pid from pg_stat_activity where query like 'listen %'";

fn wait_for_listener(cluster: &Cluster) -> String {
    let mut pid = String::new();
    wait_until("the worker listens", || {
        pid = cluster.sql("jobs", LISTENERS);
        !pid.is_empty()
    });
    pid
}

#[test]
fn a_worker_survives_crashes_of_the_server_and_keeps_the_outcomes() {
    // The machine itself does not fail, and recovery would sync every file.
    let cluster = Cluster::start("fsync = off");
    let machine = WorkingMachine::new(&cluster.socket_url("keeper"));
    machine.start_worker();
    for (round, crash) in [Cluster::kill, Cluster::crash].into_iter().enumerate() {
        let (held, before, after) =
            (format!("held-{round}"), format!("before-{round}"), format!("after-{round}"));
        let _ = std::fs::remove_file(machine.home.folder().join("go"));
        machine.enqueue_until_go(&held);
        machine.wait_for_state(&held, "processing");
        // It is acknowledged, and has not run.
        machine.run(["enqueue", "-q", "--id", &before, "--delay", "1s", "--", "true"]).ok();
        crash(&cluster);
        machine.run(["enqueue", "-q", "--id", "refused", "--", "true"]).fails(5).says("PostgreSQL server");
        machine.run(["status"]).fails(5);
        machine.go();
        cluster.launch_again();
        let back = Instant::now();
        machine.run(["wait", "-q", &held, &before]).ok();
        assert!(back.elapsed() < COMES_BACK_WITHIN, "{:?}", back.elapsed());
        machine.run(["enqueue", "-q", "--id", &after, "--", "true"]).ok();
        machine.run(["wait", "-q", &after]).ok();
        for id in [&held, &before, &after] {
            assert_eq!(machine.show(id)["history"].as_array().map(Vec::len), Some(1), "{id} ran once");
        }
        wait_for_listener(&cluster);
    }
    machine.run(["show", "refused"]).fails(3);
}

#[test]
fn a_worker_whose_listener_is_ended_listens_again() {
    let cluster = Cluster::start("");
    let machine = WorkingMachine::new(&cluster.socket_url("keeper"));
    machine.run(["config", "set", "heartbeat_interval", "15s"]).ok();
    machine.start_worker();
    let first = wait_for_listener(&cluster);
    cluster.sql("jobs", &format!("select pg_terminate_backend({first}, 5000)"));
    // It looks although it heard nothing.
    machine.run(["enqueue", "-q", "--id", "a", "--", "true"]).ok();
    machine.run(["wait", "-q", "a"]).ok();
    wait_until("it listens again", || {
        let listener = cluster.sql("jobs", LISTENERS);
        !listener.is_empty() && listener != first
    });
    let sleeps = "select count(*) from queuectl.workers where listens = 1";
    wait_until("the worker sleeps", || cluster.sql("jobs", sleeps) == "1");
    let began = Instant::now();
    machine.run(["enqueue", "-q", "--id", "b", "--", "true"]).ok();
    machine.run(["wait", "-q", "b"]).ok();
    assert!(began.elapsed() < COMES_BACK_WITHIN, "{:?}", began.elapsed());
}

#[test]
fn a_worker_without_a_free_connection_keeps_its_commands_and_outcomes() {
    let cluster = Cluster::start("");
    let machine = WorkingMachine::new(&cluster.socket_url("keeper"));
    machine.start_worker();
    machine.enqueue_until_go("held");
    machine.wait_for_state("held", "processing");
    cluster.sql("postgres", "alter database jobs connection limit 0");
    let sessions = "from pg_stat_activity where usename = 'keeper'";
    cluster.sql("postgres", &format!("select pg_terminate_backend(pid, 5000) {sessions}"));
    let refused = machine.run(["enqueue", "-q", "--id", "refused", "--", "true"]).fails(5);
    refused.says("it has no free connection").says("max_connections");
    machine.go();
    cluster.sql("postgres", "alter database jobs connection limit -1");
    machine.run(["wait", "-q", "held"]).ok();
    assert_eq!(machine.show("held")["history"].as_array().map(Vec::len), Some(1));
    machine.run(["show", "refused"]).fails(3);
}

#[test]
fn a_server_that_refuses_at_the_start_is_named_with_a_way_out() {
    let cluster = Cluster::prepare();
    let machine = WorkingMachine::new(&cluster.tcp_url("keeper", ""));
    for args in [
        &["enqueue", "-q", "--", "true"][..],
        &["status"],
        &["worker", "run", "-q"],
        &["worker", "start", "-q"],
    ] {
        let refused =
            machine.run(args).fails(5).says("connection refused").says("check that the server runs");
        assert_eq!(refused.stderr.lines().count(), 2, "an error and a hint: {refused}");
    }
}

#[test]
fn a_server_that_only_reads_is_read_and_no_worker_registers_there() {
    let cluster = Cluster::start("");
    let machine = WorkingMachine::new(&cluster.socket_url("keeper"));
    machine.run(["enqueue", "-q", "--id", "a", "--", "true"]).ok();
    cluster.sql("postgres", "alter database jobs set default_transaction_read_only = on");
    for args in [&["status"][..], &["list"], &["show", "a"], &["store", "info"]] {
        machine.run(args).ok();
    }
    for args in [
        &["enqueue", "-q", "--", "true"][..],
        &["cancel", "a"],
        &["worker", "run", "-q"],
        &["worker", "start", "-q"],
    ] {
        machine.run(args).fails(5).says("not the primary");
    }
    assert_eq!(cluster.sql("jobs", "select count(*) from queuectl.workers"), "0");
}
