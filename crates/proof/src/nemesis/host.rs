//! A whole host that loses its power, or is stopped.

use fastrand::Rng;

use super::{Nemesis, Notice};
use crate::ProofError;
use crate::sandbox::{Host, Sandbox};

/// A host loses its power and its disk, and is started again some time later with an empty home.
#[derive(Debug)]
pub struct PowerLoss;

impl Nemesis for PowerLoss {
    fn name(&self) -> &'static str {
        "power-loss"
    }

    fn description(&self) -> &'static str {
        "kill -9 of all processes of a host at once, and its home deleted"
    }

    fn notice(&self) -> Notice {
        Notice::ByOthers
    }

    /// The last output of an attempt reaches the server after its outcome.
    fn may_lose_output(&self) -> bool {
        true
    }

    fn strike(&mut self, sandbox: &Sandbox, random: &mut Rng) -> Result<bool, ProofError> {
        let host = &sandbox.hosts[random.usize(0..sandbox.hosts.len())];
        let had_worker = has_worker(sandbox, host)?;
        host.stay_down(sandbox.timing.lease.mul_f64(random.f64() * 2.0));
        let count = sandbox.cut_power(host)?;
        Ok(count > 0 && had_worker)
    }
}

/// All processes of a host stop, as those of a suspended virtual machine do, and continue after others had to take its jobs
/// over.
#[derive(Debug)]
pub struct FreezeHost;

impl Nemesis for FreezeHost {
    fn name(&self) -> &'static str {
        "freeze-host"
    }

    fn description(&self) -> &'static str {
        "SIGSTOP of all processes of a host for longer than its lease"
    }

    fn strike(&mut self, sandbox: &Sandbox, random: &mut Rng) -> Result<bool, ProofError> {
        let host = &sandbox.hosts[random.usize(0..sandbox.hosts.len())];
        let had_worker = has_worker(sandbox, host)?;
        let count = sandbox.freeze(host, sandbox.timing.lease.mul_f64(1.5 + random.f64()));
        Ok(count > 0 && had_worker)
    }
}

fn has_worker(sandbox: &Sandbox, host: &Host) -> Result<bool, ProofError> {
    Ok(sandbox.workers()?.iter().any(|worker| worker.folder.starts_with(&host.home)))
}
