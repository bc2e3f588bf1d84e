//! A server whose clock jumps a day forward and back.

use fastrand::Rng;
use proof::ProofError;
use proof::nemesis::Nemesis;
use proof::plan::Plan;
use proof::sandbox::Sandbox;

use super::harness::Stage;
use super::servers::PrivateServer;
use crate::chaos::shim::Shim;

const DAY: i64 = 24 * 60 * 60;

pub(super) fn jumping_clock() -> Stage {
    let stage = PrivateServer::stage(|server| {
        let shim = Shim::below(&server.cluster.path().join("data"));
        server.cluster.crash();
        server.cluster.launch_under(&shim.shared_variables());
        ServerClock { shim, days: 0, shifted_reads: 0, _server: server.clone() }
    });
    // A wait that is stored as a time of day necessarily changes with the clock.
    stage.with_plans(remove_waits)
}

fn remove_waits(plan: &mut Plan) {
    plan.each_job(|job| {
        job.delay = None;
        job.max_retries = 0;
    });
}

struct ServerClock {
    shim: Shim,
    days: i64,
    /// How often the server has read the shifted time so far.
    shifted_reads: u64,
    _server: PrivateServer,
}

impl Nemesis for ServerClock {
    fn name(&self) -> &'static str {
        "server-clock"
    }

    fn description(&self) -> &'static str {
        "the clock of the server jumps a day forward and back"
    }

    fn sets_clock(&self) -> bool {
        true
    }

    fn strike(&mut self, _sandbox: &Sandbox, random: &mut Rng) -> Result<bool, ProofError> {
        let shifted_reads = self.shim.clock_shifted();
        let took_effect = shifted_reads > self.shifted_reads;
        self.shifted_reads = shifted_reads;
        self.days = if self.days == 0 { random.i64(0..=1) * 2 - 1 } else { 0 };
        self.shim.shift_clock(self.days * DAY);
        Ok(took_effect)
    }

    fn heal(&mut self, _sandbox: &Sandbox) {
        self.shim.heal();
    }
}
