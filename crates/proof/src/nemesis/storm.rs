//! Pools that are stopped and started repeatedly, in every possible way.

use fastrand::Rng;
use rustix::process::Signal;

use super::Nemesis;
use crate::ProofError;
use crate::sandbox::Sandbox;

#[derive(Debug)]
pub struct Storm;

impl Nemesis for Storm {
    fn name(&self) -> &'static str {
        "storm"
    }

    fn description(&self) -> &'static str {
        "workers stopped and started, gracefully and forcibly"
    }

    fn strike(&mut self, sandbox: &Sandbox, random: &mut Rng) -> Result<bool, ProofError> {
        let call = |args: &[&str]| Ok::<_, ProofError>(sandbox.run(args)?.status.success());
        match random.u32(0..6) {
            0 => Ok(signal_one(sandbox, random, Signal::TERM)),
            1 => Ok(signal_one(sandbox, random, Signal::INT)),
            2 => Ok(signal_one(sandbox, random, Signal::QUIT)),
            3 => call(&["-q", "worker", "stop", "--now"]),
            4 => call(&["-q", "worker", "stop", "--timeout", "200ms"]),
            _ => call(&["-q", "worker", "start"]),
        }
    }
}

/// Signals one of the supervisors.
fn signal_one(sandbox: &Sandbox, random: &mut Rng, signal: Signal) -> bool {
    random.choice(sandbox.supervisors()).is_some_and(|supervisor| sandbox.signal(supervisor, signal))
}
