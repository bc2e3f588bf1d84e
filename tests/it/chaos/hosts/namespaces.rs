//! Hosts in network namespaces of their own, whose cables are pulled.
//!
//! The server is in a namespace with a bridge, and each host is joined to it by a pair of virtual cables. A pulled cable
//! drops every packet without a word. A kernel need not have `netem`, so packets get lost by pulling the cable many times a
//! second.

use std::time::Duration;

use fastrand::Rng;
use proof::ProofError;
use proof::nemesis::Nemesis;
use proof::sandbox::server::HOST_NAMES;
use proof::sandbox::{HostSetup, Sandbox, Server};
use store::postgres::Address;

use super::harness::Stage;
use super::network::{Network, SERVER_IP};
use super::servers::SETTINGS;
use crate::postgres::cluster::{Cluster, PASSWORD_IN_URL};

/// `None` where no namespaces can be made.
pub(super) fn pulled_cable() -> Option<Stage> {
    stage(CableFault::Pulled)
}

/// The same.
pub(super) fn flapping_cable() -> Option<Stage> {
    stage(CableFault::Flapping)
}

fn stage(fault: CableFault) -> Option<Stage> {
    let network = Network::new(HOST_NAMES.len())?;
    let cluster = Cluster::prepare_in(network.hub.enter());
    cluster.initialize(&format!("{SETTINGS}\nlisten_addresses = '*'"));
    let url =
        format!("postgres://keeper:{PASSWORD_IN_URL}@{SERVER_IP}:{}/jobs?sslmode=disable", cluster.port);
    let address = Address::parse(&url).expect("an address");
    let setup = |host: usize| HostSetup {
        address: address.clone(),
        is_proxied: false,
        launcher: network.hosts[host].enter(),
    };
    let observer = Address::parse(&cluster.socket_url("keeper")).expect("an address");
    let server = Server { observer, hosts: (0..HOST_NAMES.len()).map(setup).collect() };
    Some(Stage::new(server, Cable { fault, _cluster: cluster, network }))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CableFault {
    /// For half, one or three leases.
    Pulled,
    /// Again and again for a moment.
    Flapping,
}

struct Cable {
    fault: CableFault,
    // Ends before its network.
    _cluster: Cluster,
    network: Network,
}

impl Cable {
    /// Pulls the cable for this long.
    fn pull(&self, host: usize, lasts: Duration) -> bool {
        let is_pulled = self.network.set_cable(host, "down");
        // This sleep is the duration of the fault, not synchronisation.
        std::thread::sleep(lasts);
        self.network.set_cable(host, "up") && is_pulled
    }
}

impl Nemesis for Cable {
    fn name(&self) -> &'static str {
        match self.fault {
            CableFault::Pulled => "pulled-cable",
            CableFault::Flapping => "flapping-cable",
        }
    }

    fn description(&self) -> &'static str {
        match self.fault {
            CableFault::Pulled => "the cable of a host is pulled for half, one or three leases",
            CableFault::Flapping => "packets of a host get lost",
        }
    }

    fn strike(&mut self, sandbox: &Sandbox, random: &mut Rng) -> Result<bool, ProofError> {
        let host = random.usize(0..sandbox.hosts.len());
        match self.fault {
            CableFault::Pulled => {
                let lasts = sandbox.timing.lease * [1, 2, 6][random.usize(0..3)] / 2;
                Ok(self.pull(host, lasts))
            }
            CableFault::Flapping => {
                let mut is_pulled = true;
                for _ in 0..random.u32(5..15) {
                    is_pulled &= self.pull(host, Duration::from_millis(random.u64(5..150)));
                    // The cable is plugged in for this long; that is a part of the fault.
                    std::thread::sleep(Duration::from_millis(random.u64(5..150)));
                }
                Ok(is_pulled)
            }
        }
    }

    fn heal(&mut self, sandbox: &Sandbox) {
        for host in 0..sandbox.hosts.len() {
            self.network.set_cable(host, "up");
        }
    }
}
