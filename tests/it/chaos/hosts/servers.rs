//! A server that is killed, or ended at once, and started again.

use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use proof::ProofError;
use proof::nemesis::Nemesis;
use proof::sandbox::{Sandbox, Server};
use store::postgres::Address;

use super::harness::Stage;
use crate::postgres::cluster::Cluster;

/// The machine itself does not fail, so nothing needs to reach its disk.
pub(super) const SETTINGS: &str = "fsync = off\nmax_connections = 80";

/// How a server ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fall {
    /// kill -9 of its first process.
    Killed,
    /// An immediate restart.
    Restarted,
}

/// A server for one trial.
#[derive(Clone)]
pub(super) struct PrivateServer {
    pub(super) cluster: Arc<Cluster>,
}

impl PrivateServer {
    pub(super) fn falls(fall: Fall) -> Stage {
        Self::stage(|server| server.falling(fall))
    }

    /// A trial on a server of its own, which the nemesis owns.
    pub(super) fn stage<N: Nemesis + 'static>(nemesis: impl FnOnce(&Self) -> N) -> Stage {
        let server = Self { cluster: Arc::new(Cluster::start(SETTINGS)) };
        let nemesis = nemesis(&server);
        let address = Address::parse(&server.cluster.socket_url("keeper")).expect("an address");
        Stage::new(Server::reached_directly(&address), nemesis)
    }

    pub(super) fn falling(&self, fall: Fall) -> FallingServer {
        FallingServer { server: self.clone(), fall }
    }
}

pub(super) struct FallingServer {
    server: PrivateServer,
    fall: Fall,
}

impl Nemesis for FallingServer {
    fn name(&self) -> &'static str {
        match self.fall {
            Fall::Killed => "kill-server",
            Fall::Restarted => "restart-server",
        }
    }

    fn description(&self) -> &'static str {
        "the server is killed and started again"
    }

    fn pause(&self, random: &mut Rng) -> Duration {
        Duration::from_millis(random.u64(500..2_000))
    }

    fn strike(&mut self, _sandbox: &Sandbox, random: &mut Rng) -> Result<bool, ProofError> {
        match self.fall {
            Fall::Killed => self.server.cluster.kill(),
            Fall::Restarted => self.server.cluster.crash(),
        }
        // This sleep is the duration of the fault, not synchronisation.
        std::thread::sleep(Duration::from_millis(random.u64(0..1_500)));
        self.server.cluster.launch_again();
        Ok(true)
    }
}
