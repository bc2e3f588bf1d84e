//! The network between a host and the server, which breaks for a while.

use std::time::Duration;

use fastrand::Rng;

use super::Nemesis;
use crate::ProofError;
use crate::plan::Timing;
use crate::sandbox::Sandbox;
use crate::sandbox::proxy::{COMMIT_BYTES, Fault};

/// Sets a fault of the proxy of one host.
#[derive(Debug)]
pub struct Network {
    name: &'static str,
    description: &'static str,
    fault: fn(&mut Rng) -> Fault,
    lasts: fn(&mut Rng, Timing) -> Duration,
}

/// One nemesis for each way in which a network breaks.
pub fn networks() -> Vec<Network> {
    vec![
        Network {
            name: "cut-off",
            description: "a host cut off from the server for half, one or three leases",
            fault: |_| Fault::BlackHole,
            lasts: |random, timing| timing.lease * [1, 2, 6][random.usize(0..3)] / 2,
        },
        Network {
            name: "stall",
            description: "packets held back for up to two leases and then delivered",
            fault: |_| Fault::Stall,
            lasts: |random, timing| timing.lease.mul_f64(0.1 + random.f64() * 1.9),
        },
        Network {
            name: "refuse",
            description: "connections closed and refused",
            fault: |_| Fault::Refuse,
            lasts: |random, timing| timing.lease.mul_f64(random.f64() * 0.7),
        },
        Network {
            name: "slow-network",
            description: "packets delayed by up to 150 ms",
            fault: |random| Fault::Delay(Duration::from_millis(random.u64(5..150))),
            lasts: |random, timing| timing.lease.mul_f64(0.3 + random.f64()),
        },
        Network {
            name: "cut-commit",
            description: "connections cut at any byte of a commit",
            fault: |random| Fault::CutCommit { bytes: random.usize(0..=COMMIT_BYTES) },
            lasts: briefly,
        },
        Network {
            name: "drop-answer",
            description: "connections cut between a commit and its answer",
            fault: |_| Fault::DropAnswer,
            lasts: briefly,
        },
    ]
}

fn briefly(random: &mut Rng, _timing: Timing) -> Duration {
    Duration::from_millis(random.u64(200..1_000))
}

impl Nemesis for Network {
    fn name(&self) -> &'static str {
        self.name
    }

    fn description(&self) -> &'static str {
        self.description
    }

    fn strike(&mut self, sandbox: &Sandbox, random: &mut Rng) -> Result<bool, ProofError> {
        let host = &sandbox.hosts[random.usize(0..sandbox.hosts.len())];
        let (fault, lasts) = ((self.fault)(random), (self.lasts)(random, sandbox.timing));
        let Some(proxy) = &host.proxy else {
            return Ok(false);
        };
        let before = proxy.hits();
        proxy.set(fault);
        // This sleep is the duration of the fault, not synchronisation.
        std::thread::sleep(lasts);
        proxy.set(Fault::None);
        Ok(proxy.hits() > before)
    }

    fn heal(&mut self, sandbox: &Sandbox) {
        for proxy in sandbox.hosts.iter().filter_map(|host| host.proxy.as_ref()) {
            proxy.set(Fault::None);
        }
    }
}
