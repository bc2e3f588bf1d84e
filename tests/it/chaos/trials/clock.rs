//! A wall clock that jumps a day forward and back under running workers.

use fastrand::Rng;
use proof::ProofError;
use proof::nemesis::Nemesis;
use proof::sandbox::Field;

use super::disk::equip;
use super::harness::Trials;
use crate::chaos::shim::Shim;

const DAY: i64 = 24 * 60 * 60;

struct Clock {
    shim: Shim,
    days: i64,
    /// How often somebody was told a wrong time so far.
    told: u64,
}

impl Nemesis for Clock {
    fn name(&self) -> &'static str {
        "clock"
    }

    fn does(&self) -> &'static str {
        "the clock a day forward and back"
    }

    fn turns_clock(&self) -> bool {
        true
    }

    fn strike(&mut self, _field: &Field, random: &mut Rng) -> Result<bool, ProofError> {
        let told = self.shim.clock_shifted();
        let was_told_wrong = told > self.told;
        self.told = told;
        self.days = if self.days == 0 { random.i64(0..=1) * 2 - 1 } else { 0 };
        self.shim.shift_clock(self.days * DAY);
        Ok(was_told_wrong)
    }

    fn heal(&mut self, _field: &Field) {
        self.shim.heal();
    }
}

#[test]
fn fault_33_chaos_clock() {
    let summon = |field: &mut Field| -> Box<dyn Nemesis> {
        let shim = Shim::below(&field.home());
        equip(field, &shim);
        Box::new(Clock { shim, days: 0, told: 0 })
    };
    // A wait that is written down as a time of day ends with a jump: that is what a jump is. What becomes of one is
    // tested in `chaos/clock.rs`.
    let adjust = |plan: &mut proof::plan::Plan| {
        plan.each_job(|job| {
            job.delay = None;
            job.max_retries = 0;
        });
    };
    Trials::of("fault_33_chaos_clock", summon).with_plans(adjust).all_hold();
}
