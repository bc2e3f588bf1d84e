//! A server whose disk is full for a while.

use std::time::Duration;

use fastrand::Rng;
use proof::ProofError;
use proof::nemesis::Nemesis;
use proof::sandbox::{Sandbox, Server};
use store::postgres::Address;

use super::harness::Stage;
use crate::postgres::small_disk::SmallDisk;

/// `None` where no disk can be mounted.
pub(super) fn full_disk() -> Option<Stage> {
    let disk = SmallDisk::with_database();
    let address = Address::parse(&disk.cluster.socket_url("keeper")).expect("an address");
    disk.is_real().then(|| Stage::new(Server::reached_directly(&address), FullDisk { disk }))
}

struct FullDisk {
    disk: SmallDisk,
}

impl Nemesis for FullDisk {
    fn name(&self) -> &'static str {
        "full-disk"
    }

    fn description(&self) -> &'static str {
        "the disk of the server is full"
    }

    fn strike(&mut self, _sandbox: &Sandbox, random: &mut Rng) -> Result<bool, ProofError> {
        self.disk.fill();
        // This sleep is the duration of the fault, not synchronisation.
        std::thread::sleep(Duration::from_millis(random.u64(300..4_000)));
        self.disk.empty();
        self.disk.wait_until_up();
        Ok(true)
    }
}
