//! A pooler that gives each transaction to any session, and is killed and started again.

use std::time::Duration;

use fastrand::Rng;
use proof::ProofError;
use proof::nemesis::Nemesis;
use proof::sandbox::{Sandbox, Server};
use store::postgres::Address;

use super::harness::Stage;
use super::servers::SETTINGS;
use crate::postgres::cluster::Cluster;
use crate::postgres::pooler::Pooler;

pub(super) fn restarted_pooler() -> Stage {
    let cluster = Cluster::start(SETTINGS);
    let pooler = Pooler::start(&cluster, "default_pool_size = 12\nmin_pool_size = 3\nmax_client_conn = 200");
    let address = |url: &str| Address::parse(url).expect("an address");
    let behind = Server::reached_directly(&address(&pooler.url("pooler=transaction")));
    let server = Server { observer: address(&cluster.socket_url("keeper")), ..behind };
    Stage::new(server, RestartPooler { pooler, cluster })
}

struct RestartPooler {
    // Ends before its server.
    pooler: Pooler,
    cluster: Cluster,
}

impl Nemesis for RestartPooler {
    fn name(&self) -> &'static str {
        "restart-pooler"
    }

    fn description(&self) -> &'static str {
        "pgbouncer in transaction mode is killed and started again"
    }

    fn strike(&mut self, _sandbox: &Sandbox, random: &mut Rng) -> Result<bool, ProofError> {
        self.pooler.kill();
        // This sleep is the duration of the fault, not synchronisation.
        std::thread::sleep(Duration::from_millis(random.u64(0..1_500)));
        self.pooler.restart(&self.cluster);
        Ok(true)
    }
}
