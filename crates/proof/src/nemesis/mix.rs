//! Several nemeses that take turns in one trial.

use fastrand::Rng;

use super::Nemesis;
use crate::ProofError;
use crate::plan::Escapes;
use crate::sandbox::Sandbox;

#[expect(missing_debug_implementations, reason = "a nemesis need not have one")]
pub struct Mix {
    nemeses: Vec<Box<dyn Nemesis>>,
    next: usize,
}

impl Mix {
    pub fn of(nemeses: Vec<Box<dyn Nemesis>>) -> Self {
        Self { nemeses, next: 0 }
    }
}

impl Nemesis for Mix {
    fn name(&self) -> &'static str {
        "mix"
    }

    fn description(&self) -> &'static str {
        "all faults in turn"
    }

    fn escapes(&self) -> Escapes {
        if self.nemeses.iter().all(|nemesis| nemesis.escapes() == Escapes::All) {
            Escapes::All
        } else {
            Escapes::Findable
        }
    }

    fn may_lose_output(&self) -> bool {
        self.nemeses.iter().any(|nemesis| nemesis.may_lose_output())
    }

    fn strike(&mut self, sandbox: &Sandbox, random: &mut Rng) -> Result<bool, ProofError> {
        // A host without a worker that is cut off cannot end its commands, which no promise covers.
        if !sandbox.is_staffed() {
            return Ok(false);
        }
        // Each once, and from then on any.
        let at = if self.next < self.nemeses.len() { self.next } else { random.usize(0..self.nemeses.len()) };
        self.next += 1;
        self.nemeses[at].strike(sandbox, random)
    }

    fn heal(&mut self, sandbox: &Sandbox) {
        for nemesis in &mut self.nemeses {
            nemesis.heal(sandbox);
        }
    }
}
