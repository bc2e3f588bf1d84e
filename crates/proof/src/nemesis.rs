//! Those who do damage: one kind of it each.
//!
//! Those here need nothing but the right to signal one's own processes, so they come with `queuectl selftest`. Tests
//! add others, which need a debug build or a C compiler.

mod enqueue;
mod kill;
mod roster;
mod stop;
mod storm;

pub use enqueue::KillEnqueue;
pub use kill::{KillBoth, KillSupervisor, KillWorker};
pub use roster::all;
pub use stop::{StopBoth, StopWorker};
pub use storm::Storm;

use std::time::Duration;

use fastrand::Rng;

use super::ProofError;
use super::plan::Escapes;
use super::sandbox::Field;

pub trait Nemesis: Send {
    /// Its name on the command line.
    fn name(&self) -> &'static str;

    /// What it does, for a table.
    fn does(&self) -> &'static str;

    /// What commands may do that it strikes.
    fn escapes(&self) -> Escapes {
        Escapes::All
    }

    /// Whether whatever it does must be noticed in under a second.
    fn is_noticed_at_once(&self) -> bool {
        false
    }

    /// Whether what commands print may be lost.
    fn may_cost_output(&self) -> bool {
        false
    }

    /// Whether it sets the clock on the wall: then nothing that waits for a time of day can be told by it.
    fn turns_clock(&self) -> bool {
        false
    }

    /// How long to wait before the next strike.
    fn pause(&self, random: &mut Rng) -> Duration {
        Duration::from_millis(random.u64(150..600))
    }

    /// Does its damage once. Gives whether there was anything to damage.
    fn strike(&mut self, field: &Field, random: &mut Rng) -> Result<bool, ProofError>;

    /// Undoes what does not pass by itself.
    fn heal(&mut self, _field: &Field) {}
}
