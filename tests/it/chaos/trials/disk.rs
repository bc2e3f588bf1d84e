//! A disk that fails, is full, or is slow, for workers and for `enqueue`.

use std::ffi::OsString;
use std::time::Duration;

use fastrand::Rng;
use proof::ProofError;
use proof::nemesis::Nemesis;
use proof::sandbox::Sandbox;
use rustix::io::Errno;

use super::harness::Trials;
use crate::chaos::shim::{Fault, Shim, When};

/// Disturbs the disk for a while.
struct Disk {
    shim: Shim,
    name: &'static str,
    disturb: fn(&Shim, &mut Rng),
    lasts: fn(&mut Rng) -> Duration,
}

impl Disk {
    fn create(
        sandbox: &mut Sandbox,
        name: &'static str,
        disturb: fn(&Shim, &mut Rng),
        lasts: fn(&mut Rng) -> Duration,
    ) -> Box<dyn Nemesis> {
        let shim = Shim::below(&sandbox.home());
        preload(sandbox, &shim);
        Box::new(Self { shim, name, disturb, lasts })
    }

    /// How many calls failed or were delayed.
    fn struck(&self) -> u64 {
        let failed: u64 = Fault::ALL.iter().map(|fault| self.shim.struck(*fault)).sum();
        failed + self.shim.delayed()
    }
}

/// Preloads the shim into workers and calls. Commands are not affected, because queuectl does not pass its own variables on
/// to them.
pub(super) fn preload(sandbox: &mut Sandbox, shim: &Shim) {
    let variables = || shim.variables().into_iter().map(|(name, value)| (OsString::from(name), value));
    sandbox.program.for_workers.extend(variables());
    sandbox.program.for_calls.extend(variables());
}

impl Nemesis for Disk {
    fn name(&self) -> &'static str {
        self.name
    }

    fn description(&self) -> &'static str {
        self.name
    }

    fn may_lose_output(&self) -> bool {
        true
    }

    fn strike(&mut self, _sandbox: &Sandbox, random: &mut Rng) -> Result<bool, ProofError> {
        let before = self.struck();
        (self.disturb)(&self.shim, random);
        // This sleep is the duration of the fault, not synchronisation.
        std::thread::sleep((self.lasts)(random));
        self.shim.heal();
        Ok(self.struck() > before)
    }

    fn heal(&mut self, _sandbox: &Sandbox) {
        self.shim.heal();
    }
}

fn short(random: &mut Rng) -> Duration {
    Duration::from_millis(random.u64(50..400))
}

#[test]
fn fault_29_chaos_eio() {
    let disturb = |shim: &Shim, random: &mut Rng| {
        let when = When::Chance { per_mille: random.u64(50..600), seed: random.u64(..) };
        if random.bool() {
            shim.sync_fails(Errno::IO, when);
        } else {
            shim.write_fails(Errno::IO, when);
        }
    };
    Trials::of("fault_29_chaos_eio", move |sandbox| Disk::create(sandbox, "eio", disturb, short))
        .assert_all_hold();
}

#[test]
fn fault_29_chaos_full_disk() {
    let disturb = |shim: &Shim, _: &mut Rng| shim.is_full();
    Trials::of("fault_29_chaos_full_disk", move |sandbox| Disk::create(sandbox, "full-disk", disturb, short))
        .assert_all_hold();
}

#[test]
fn fault_29_chaos_slow_disk() {
    let disturb = |shim: &Shim, random: &mut Rng| shim.slow(Duration::from_millis(random.u64(1..30)));
    let lasts = |random: &mut Rng| Duration::from_millis(random.u64(300..1_500));
    Trials::of("fault_29_chaos_slow_disk", move |sandbox| Disk::create(sandbox, "slow-disk", disturb, lasts))
        .assert_all_hold();
}
