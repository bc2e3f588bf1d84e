//! Pools that are stopped and started again and again, in every way there is.

use fastrand::Rng;
use rustix::process::Signal;

use super::Nemesis;
use crate::ProofError;
use crate::sandbox::Field;

#[derive(Debug)]
pub struct Storm;

impl Nemesis for Storm {
    fn name(&self) -> &'static str {
        "storm"
    }

    fn does(&self) -> &'static str {
        "workers stopped and started, politely and not"
    }

    fn strike(&mut self, field: &Field, random: &mut Rng) -> Result<bool, ProofError> {
        let call = |args: &[&str]| Ok::<_, ProofError>(field.run(args)?.status.success());
        match random.u32(0..6) {
            0 => Ok(tell_one(field, random, Signal::TERM)),
            1 => Ok(tell_one(field, random, Signal::INT)),
            2 => Ok(tell_one(field, random, Signal::QUIT)),
            3 => call(&["-q", "worker", "stop", "--now"]),
            4 => call(&["-q", "worker", "stop", "--timeout", "200ms"]),
            _ => call(&["-q", "worker", "start"]),
        }
    }
}

/// Tells one of the supervisors.
fn tell_one(field: &Field, random: &mut Rng, signal: Signal) -> bool {
    random.choice(field.supervisors()).is_some_and(|supervisor| field.signal(supervisor, signal))
}
