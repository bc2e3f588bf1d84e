//! A server whose clock jumps: leases depend on no wall clock, and no queue freezes.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use store::postgres::Address;

use super::cluster::Cluster;
use crate::chaos::shim::Shim;
use crate::cli::postgres::Machine;
use crate::engine::harness::{UNTIL_GO, send, wait_until};

const DAY: i64 = 86_400;
/// As [`Machine::shorten_leases`] sets them.
const LEASE_AND_HEARTBEAT: Duration = Duration::from_millis(2_500);
/// For a machine that is busy with tests.
const MARGIN: Duration = Duration::from_secs(4);

#[test]
fn fault_37_jumps_of_the_servers_clock_end_no_lease_and_delay_no_takeover() {
    let cluster = Cluster::start("fsync = off");
    let shim = Shim::below(&cluster.path().join("data"));
    cluster.crash();
    cluster.launch_under(&shim.shared_variables());
    let address = Address::parse(&cluster.socket_url("keeper")).expect("an address");
    let (near, far) = (Machine::at(&address, "near").blind(), Machine::at(&address, "far"));
    near.shorten_leases();
    let command = format!("[ $QUEUECTL_ATTEMPT = 1 ] || exit 0; {UNTIL_GO}");
    near.enqueue("held", &command);
    let _far_pool = far.worker();
    near.wait_for("held", "processing");
    let _near_pool = near.worker();
    for (at, seconds) in [DAY, -DAY, 0].into_iter().enumerate() {
        shim.shift_clock(seconds);
        let id = format!("plain-{at}");
        near.enqueue(&id, "true");
        near.wait_for(&id, "completed");
        // Longer than a lease: the other machine must not take the job over in this time.
        std::thread::sleep(LEASE_AND_HEARTBEAT + Duration::from_millis(500));
        let held = near.show("held");
        assert_eq!(
            (&held["state"], &held["attempts"]),
            (&"processing".into(), &1.into()),
            "{seconds} s: {held}"
        );
    }
    assert!(shim.clock_shifted() > 0, "the server runs under the shim");

    let workers = far.run("worker list --json").ok().json();
    let far_worker = workers.as_array().expect("workers").iter().find(|worker| worker["running"] == 1);
    for pid in ["supervisor_pid", "pid"] {
        let pid = far_worker.expect("it runs the job")[pid].as_u64().and_then(|pid| u32::try_from(pid).ok());
        send(pid.expect("a pid"), Signal::KILL);
    }
    let died = Instant::now();
    shim.shift_clock(-DAY);
    wait_until("the job is taken over", || near.show("held")["attempts"] == 2);
    assert!(died.elapsed() < LEASE_AND_HEARTBEAT + MARGIN, "{:?}", died.elapsed());
    near.wait_for("held", "completed");
}
