//! Nemeses: fault injectors, one per kind of fault.
//!
//! The ones here only need permission to signal the user's own processes, and for several hosts a server, so `queuectl
//! selftest` includes them. The tests add others, which need a debug build, a C compiler, or a server of their own.

mod enqueue;
mod host;
mod kill;
mod mix;
mod network;
mod pause;
mod roster;
mod sessions;
mod stop;
mod storm;

pub use enqueue::KillEnqueue;
pub use host::{FreezeHost, PowerLoss};
pub use kill::{KillBoth, KillSupervisor, KillWorker};
pub use mix::Mix;
pub use network::{Network, networks};
pub use pause::PauseJobs;
pub use roster::{for_hosts, for_one_host};
pub use sessions::EndSessions;
pub use stop::{StopBoth, StopWorker};
pub use storm::Storm;

use std::time::Duration;

use fastrand::Rng;

use super::ProofError;
use super::plan::Escapes;
use super::sandbox::Sandbox;

/// How soon queuectl must notice a worker that the nemesis killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// Nothing is promised, or no worker is killed.
    Unspecified,
    /// In under a second: its supervisor is alive.
    AtOnce,
    /// By another pool of its home in under a second, or by another host after its lease and a heartbeat.
    ByOthers,
}

pub trait Nemesis: Send {
    /// Its name on the command line.
    fn name(&self) -> &'static str;

    /// The fault, for a table.
    fn description(&self) -> &'static str;

    /// Which escapes commands may use.
    fn escapes(&self) -> Escapes {
        Escapes::All
    }

    fn notice(&self) -> Notice {
        Notice::Unspecified
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
