//! Nemeses: fault injectors, one per kind of fault.
//!
//! The ones here only need permission to signal the user's own processes, so `queuectl selftest` includes them. The tests
//! add others, which need a debug build or a C compiler.

mod enqueue;
mod kill;
mod pause;
mod roster;
mod stop;
mod storm;

pub use enqueue::KillEnqueue;
pub use kill::{KillBoth, KillSupervisor, KillWorker};
pub use pause::PauseJobs;
pub use roster::all;
pub use stop::{StopBoth, StopWorker};
pub use storm::Storm;

use std::time::Duration;

use fastrand::Rng;

use super::ProofError;
use super::plan::Escapes;
use super::sandbox::Sandbox;

pub trait Nemesis: Send {
    /// Its name on the command line.
    fn name(&self) -> &'static str;

    /// The fault, for a table.
    fn description(&self) -> &'static str;

    /// Which escapes commands may use.
    fn escapes(&self) -> Escapes {
        Escapes::All
    }

    /// Whether queuectl must notice the fault in under a second.
    fn must_be_noticed_at_once(&self) -> bool {
        false
    }

    /// Whether output of commands may be lost.
    fn may_lose_output(&self) -> bool {
        false
    }

    /// Whether it changes the wall clock. Times of day are then not checked.
    fn sets_clock(&self) -> bool {
        false
    }

    /// How long to wait before the next strike.
    fn pause(&self, random: &mut Rng) -> Duration {
        Duration::from_millis(random.u64(150..600))
    }

    /// Injects the fault once. Returns whether it took effect.
    fn strike(&mut self, sandbox: &Sandbox, random: &mut Rng) -> Result<bool, ProofError>;

    /// Undoes lasting effects.
    fn heal(&mut self, _sandbox: &Sandbox) {}
}
