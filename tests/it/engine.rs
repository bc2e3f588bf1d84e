//! The engine: its public parts, and workers that run real commands.

mod capture;
mod commands;
mod crowd;
mod deleted_home;
mod environment;
pub(crate) mod harness;
mod hooks;
mod inheritance;
mod journal;
mod leftovers;
mod limits;
mod orders;
pub(crate) mod other_rights;
mod output;
#[cfg(debug_assertions)] // No library can step in where the program is linked statically.
mod promptness;
mod queue_limits;
mod queues;
mod receiver;
mod retries;
mod scarcity;
mod schedules;
mod signals;
mod start;
mod stop;
mod terminal;
mod two_homes;
mod until_empty;
