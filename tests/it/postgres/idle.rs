//! What an idle worker and its supervisor ask of a server.

use super::cluster::Cluster;
use super::working_machine::WorkingMachine;
use crate::cli::harness::working_home::wait_until;

/// A supervisor judges its workers by their lock files. It asks the store only about one that seems to hang.
#[test]
fn a_supervisor_whose_workers_are_well_has_no_session() {
    const BEATS: u32 = 8;
    let cluster = Cluster::start("");
    let machine = WorkingMachine::new(&cluster.socket_url("keeper"));
    // The supervisor checks its worker twice in a heartbeat.
    machine.run(["config", "set", "heartbeat_interval", "1s"]).ok();
    machine.run(["config", "set", "lease", "3s"]).ok();
    machine.start_worker();
    let number = |sql: &str| cluster.sql("jobs", sql).parse::<u32>().unwrap_or(0);
    let sessions = || number("select count(*) from pg_stat_activity where usename = 'keeper'");
    let beats = || number("select max(beat) from queuectl.workers");
    // The supervisor asks for the lease right after the start.
    wait_until("the worker beats", || beats() > 2);
    wait_until("only the two sessions of the worker are left", || sessions() == 2);
    let before = beats();
    wait_until("the worker beats on", || {
        assert_eq!(sessions(), 2);
        beats() >= before + BEATS
    });
}
