//! A disk that fails, is full, or is slow, under workers and under those who enqueue.

use std::ffi::OsString;
use std::time::Duration;

use fastrand::Rng;
use proof::ProofError;
use proof::nemesis::Nemesis;
use proof::sandbox::Field;
use rustix::io::Errno;

use super::harness::Trials;
use crate::chaos::shim::{Fault, Shim, When};

/// Does something to the disk for a while.
struct Disk {
    shim: Shim,
    name: &'static str,
    spoil: fn(&Shim, &mut Rng),
    lasts: fn(&mut Rng) -> Duration,
}

impl Disk {
    fn summon(
        field: &mut Field,
        name: &'static str,
        spoil: fn(&Shim, &mut Rng),
        lasts: fn(&mut Rng) -> Duration,
    ) -> Box<dyn Nemesis> {
        let shim = Shim::below(&field.home());
        equip(field, &shim);
        Box::new(Self { shim, name, spoil, lasts })
    }

    /// How many calls have failed or were delayed.
    fn struck(&self) -> u64 {
        let failed: u64 = Fault::ALL.iter().map(|fault| self.shim.struck(*fault)).sum();
        failed + self.shim.delayed()
    }
}

/// Lets workers and calls feel what the shim does. Commands do not: variables of ours are not handed on to them.
pub(super) fn equip(field: &mut Field, shim: &Shim) {
    let variables = || shim.variables().into_iter().map(|(name, value)| (OsString::from(name), value));
    field.equip_workers(variables());
    field.equip_calls(variables());
}

impl Nemesis for Disk {
    fn name(&self) -> &'static str {
        self.name
    }

    fn does(&self) -> &'static str {
        self.name
    }

    fn may_cost_output(&self) -> bool {
        true
    }

    fn strike(&mut self, _field: &Field, random: &mut Rng) -> Result<bool, ProofError> {
        let before = self.struck();
        (self.spoil)(&self.shim, random);
        // Not to wait for anything: this is how long the fault lasts.
        std::thread::sleep((self.lasts)(random));
        self.shim.heal();
        Ok(self.struck() > before)
    }

    fn heal(&mut self, _field: &Field) {
        self.shim.heal();
    }
}

fn short(random: &mut Rng) -> Duration {
    Duration::from_millis(random.u64(50..400))
}

#[test]
fn fault_29_chaos_eio() {
    let spoil = |shim: &Shim, random: &mut Rng| {
        let when = When::Chance { per_mille: random.u64(50..600), seed: random.u64(..) };
        if random.bool() {
            shim.sync_fails(Errno::IO, when);
        } else {
            shim.write_fails(Errno::IO, when);
        }
    };
    Trials::of("fault_29_chaos_eio", move |field| Disk::summon(field, "eio", spoil, short)).all_hold();
}

#[test]
fn fault_29_chaos_full_disk() {
    let spoil = |shim: &Shim, _: &mut Rng| shim.is_full();
    Trials::of("fault_29_chaos_full_disk", move |field| Disk::summon(field, "full-disk", spoil, short))
        .all_hold();
}

#[test]
fn fault_29_chaos_slow_disk() {
    let spoil = |shim: &Shim, random: &mut Rng| shim.slow(Duration::from_millis(random.u64(1..30)));
    let lasts = |random: &mut Rng| Duration::from_millis(random.u64(300..1_500));
    Trials::of("fault_29_chaos_slow_disk", move |field| Disk::summon(field, "slow-disk", spoil, lasts))
        .all_hold();
}
