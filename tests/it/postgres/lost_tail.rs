//! A primary that dies, and a standby that lags behind it: the last commits are lost, and nothing else.

use std::fs;

use super::cluster::{Cluster, PASSWORD_IN_URL, eventually};
use super::working_machine::WorkingMachine;
use crate::cli::harness::working_home::{UNTIL_GO, wait_until};

/// Says so if it runs while another command of the same job runs.
const ALONE: &str =
    "exec 9> alone; flock -n 9 || { echo $QUEUECTL_ATTEMPT >> overlap; exit 1; }; echo ran >> again
until [ -e go ]; do sleep 0.02; done 9>&-";

struct Pair {
    primary: Cluster,
    standby: Cluster,
}

impl Pair {
    fn start() -> Self {
        // The machine itself does not fail.
        let primary = Cluster::start("fsync = off");
        let standby = primary.standby();
        let state = "select state from pg_stat_replication";
        eventually("the standby follows", || (primary.sql("postgres", state) == "streaming").then_some(()));
        Self { primary, standby }
    }

    fn url(&self) -> String {
        let (first, second) = (self.primary.port, self.standby.port);
        format!("postgres://keeper:{PASSWORD_IN_URL}@127.0.0.1:{first},127.0.0.1:{second}/jobs")
    }

    /// From here on the standby gets nothing more.
    fn cut(&self) {
        let here = self.primary.sql("postgres", "select pg_current_wal_flush_lsn()");
        let is_there = format!("select pg_last_wal_replay_lsn() >= '{here}'");
        eventually("the standby is up to date", || {
            (self.standby.sql("jobs", &is_there) == "t").then_some(())
        });
        self.standby.sql("postgres", "alter system set primary_conninfo = ''");
        self.standby.reload();
        let senders = "select count(*) from pg_stat_replication";
        eventually("replication ends", || (self.primary.sql("postgres", senders) == "0").then_some(()));
    }

    fn fail_over(&self) {
        self.primary.kill();
        self.standby.program("pg_ctl", &["-D", &self.standby.data(), "-w", "promote"]);
    }
}

#[test]
fn fault_37_a_failover_to_a_lagging_standby_loses_the_last_commits_and_nothing_else() {
    let pair = Pair::start();
    let machine = WorkingMachine::new(&pair.url());
    let folder = machine.home.folder().display().to_string();
    let enqueue = |id: &str, command: &str, more: &[&str]| {
        let args = ["enqueue", "-q", "--id", id, "--cwd", &folder, "-c", command];
        machine.run(args.iter().chain(more)).ok();
    };
    machine.run(["config", "set", "heartbeat_interval", "1s"]).ok();
    machine.start_worker_with(3);
    enqueue("done", "true", &[]);
    machine.run(["wait", "-q", "done"]).ok();
    enqueue("held", UNTIL_GO, &[]);
    machine.wait_for_state("held", "processing");
    // Its start is among the commits that are lost.
    enqueue("again", ALONE, &["--delay", "3s"]);
    enqueue("waits", "true", &["--delay", "1h"]);
    let status = machine.run(["status", "--json"]).ok().json();
    assert_eq!(status["problems"][0]["problem"], "lagging_standby", "{status}");
    pair.cut();
    let tail: Vec<String> = (0..5).map(|at| format!("tail-{at}")).collect();
    for id in &tail {
        enqueue(id, "true", &["--delay", "1h"]);
    }
    machine.run(["cancel", "waits"]).ok();
    machine.wait_for_state("again", "processing");
    wait_until("its command runs", || machine.home.folder().join("again").exists());

    pair.fail_over();
    machine.run(["enqueue", "-q", "--id", "after", "--delay", "1s", "--", "true"]).ok();
    // There is a free slot for it.
    machine.run(["wait", "-q", "after"]).ok();
    machine.wait_for_state("again", "processing");
    machine.go();
    machine.run(["wait", "-q", "held", "again"]).ok();
    assert_eq!(
        fs::read_to_string(format!("{folder}/overlap")).unwrap_or_default(),
        "",
        "it never ran twice at once"
    );
    let history = |id: &str| machine.show(id)["history"].as_array().map(Vec::len);
    assert_eq!((history("done"), history("held")), (Some(1), Some(1)));
    assert_eq!(machine.show("waits")["state"], "pending", "its cancellation is lost");
    for id in &tail {
        machine.run(["show", id]).fails(3);
    }
    let jobs = machine.run(["list", "--json", "--limit", "100"]).ok().json();
    let mut ids: Vec<&str> =
        jobs.as_array().expect("jobs").iter().filter_map(|job| job["id"].as_str()).collect();
    ids.sort_unstable();
    assert_eq!(ids, ["after", "again", "done", "held", "waits"], "nothing else is lost");
    machine.run(["doctor", "--full"]).ok().shows("counters");
    wait_until("the worker listens to the new primary", || {
        pair.standby.sql("jobs", "select count(*) from queuectl.workers where listens = 1") == "1"
    });
}
