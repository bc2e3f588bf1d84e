//! A wall clock that jumps a day forward and back while workers run.

use fastrand::Rng;
use proof::ProofError;
use proof::nemesis::Nemesis;
use proof::sandbox::Sandbox;

use super::disk::preload;
use super::harness::Trials;
use crate::chaos::shim::Shim;

const DAY: i64 = 24 * 60 * 60;

struct Clock {
    shim: Shim,
    days: i64,
    /// How often processes have read the shifted time so far.
    shifted_reads: u64,
}

impl Nemesis for Clock {
    fn name(&self) -> &'static str {
        "clock"
    }

    fn description(&self) -> &'static str {
        "the clock jumps a day forward and back"
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

#[test]
fn fault_33_chaos_clock() {
    let create = |sandbox: &mut Sandbox| -> Box<dyn Nemesis> {
        let shim = Shim::below(&sandbox.home());
        preload(sandbox, &shim);
        Box::new(Clock { shim, days: 0, shifted_reads: 0 })
    };
    // A wait that is stored as a time of day necessarily changes with the clock; `chaos/clock.rs` tests that.
    let adjust = |plan: &mut proof::plan::Plan| {
        plan.each_job(|job| {
            job.delay = None;
            job.max_retries = 0;
        });
    };
    Trials::of("fault_33_chaos_clock", create).with_plans(adjust).assert_all_hold();
}
