//! A primary that dies, and a synchronous standby that takes its place.

use std::fs;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use super::cluster::{Cluster, PASSWORD_IN_URL, eventually};
use super::server_faults::COMES_BACK_WITHIN;
use super::working_machine::WorkingMachine;
use crate::cli::harness::Home;
use crate::cli::harness::working_home::wait_until;

/// A primary whose commits wait for a standby.
fn synchronous_pair() -> (Cluster, Cluster) {
    // The machine itself does not fail.
    let primary = Cluster::start("fsync = off");
    let standby = primary.standby();
    // Only now, or the standby would wait for one of its own when it is the primary.
    primary.sql("postgres", "alter system set synchronous_standby_names = '*'");
    primary.reload();
    let state = "select sync_state from pg_stat_replication";
    eventually("the standby is synchronous", || (primary.sql("postgres", state) == "sync").then_some(()));
    (primary, standby)
}

/// Enqueues one job after the other, as many processes would.
struct Enqueuer<'a> {
    url: &'a str,
    /// A command that writes the id of its job.
    command: &'a str,
    acknowledged: AtomicUsize,
    may_end: AtomicBool,
}

impl Enqueuer<'_> {
    /// Returns the ids that were acknowledged, and those whose outcome is unknown.
    fn run(&self) -> (Vec<String>, Vec<String>) {
        let (home, mut acknowledged, mut unknown) = (Home::new(), Vec::new(), Vec::new());
        for number in 0.. {
            if self.may_end.load(Ordering::SeqCst) {
                break;
            }
            let id = format!("job-{number}");
            let call = home.call(["enqueue", "-q", "--id", &id, "-c", self.command]);
            let ran = call.env("QUEUECTL_STORE", self.url).run();
            match ran.status.code() {
                Some(0) => {
                    acknowledged.push(id);
                    self.acknowledged.fetch_add(1, Ordering::SeqCst);
                }
                Some(5) => {}
                Some(6) => unknown.push(id),
                _ => panic!("{ran}"),
            }
        }
        (acknowledged, unknown)
    }

    fn wait_for_more(&self, count: usize) {
        let before = self.acknowledged.load(Ordering::SeqCst);
        wait_until("jobs are enqueued", || self.acknowledged.load(Ordering::SeqCst) >= before + count);
    }
}

#[test]
fn fault_37_a_failover_to_a_synchronous_standby_loses_nothing_that_was_acknowledged() {
    let (primary, standby) = synchronous_pair();
    let (first, second) = (primary.port, standby.port);
    let url = format!("postgres://keeper:{PASSWORD_IN_URL}@127.0.0.1:{first},127.0.0.1:{second}/jobs");
    let machine = WorkingMachine::new(&url);
    machine.start_worker();
    machine.enqueue_until_go("held");
    machine.wait_for_state("held", "processing");
    let status = machine.run(["status", "--json"]).ok().json();
    assert_eq!(status["problems"].as_array().map(Vec::len), Some(0), "{status}");
    let ledger = machine.home.folder().join("ledger");
    let command = format!("echo $QUEUECTL_JOB_ID >> {}", ledger.display());
    let enqueuer = Enqueuer {
        url: &url,
        command: &command,
        acknowledged: AtomicUsize::new(0),
        may_end: AtomicBool::new(false),
    };
    let (acknowledged, unknown) = thread::scope(|scope| {
        let running = scope.spawn(|| enqueuer.run());
        enqueuer.wait_for_more(5);
        primary.kill();
        let refused = machine.run(["enqueue", "-q", "--id", "refused", "--", "true"]).fails(5);
        refused.says("standby");
        machine.run(["show", "held"]).ok();
        machine.go();
        standby.program("pg_ctl", &["-D", &standby.data(), "-w", "promote"]);
        let promoted = Instant::now();
        machine.run(["enqueue", "-q", "--id", "after", "--", "true"]).ok();
        machine.run(["wait", "-q", "held", "after"]).ok();
        assert!(promoted.elapsed() < COMES_BACK_WITHIN, "{:?}", promoted.elapsed());
        enqueuer.wait_for_more(5);
        enqueuer.may_end.store(true, Ordering::SeqCst);
        running.join().expect("it ends")
    });
    println!("{} jobs acknowledged, {} unknown", acknowledged.len(), unknown.len());
    machine.run(["wait", "-q"].into_iter().chain(acknowledged.iter().map(String::as_str))).ok();
    assert_eq!(machine.show("held")["history"].as_array().map(Vec::len), Some(1), "it ran once");
    machine.run(["show", "refused"]).fails(3);
    // Those whose outcome is unknown are there once or not at all, and all have run by now or will.
    wait_until("every job has ended", || {
        standby.sql("jobs", "select count(*) from queuectl.jobs where state <> 'completed'") == "0"
    });
    wait_until("the worker listens to the new primary", || {
        standby.sql("jobs", "select count(*) from queuectl.workers where listens = 1") == "1"
    });
    let ran = fs::read_to_string(&ledger).expect("jobs have run");
    let mut ran: Vec<&str> = ran.lines().collect();
    let count = ran.len();
    ran.sort_unstable();
    ran.dedup();
    assert_eq!(ran.len(), count, "each ran once");
    assert!(
        acknowledged.iter().all(|id| ran.binary_search(&id.as_str()).is_ok()),
        "{acknowledged:?} {ran:?}"
    );
}
