//! The engine: its public parts, and workers that run real commands.

pub(crate) mod attempts;
pub(crate) mod harness;
mod hooks;
#[cfg(debug_assertions)] // No library can step in where the program is linked statically.
mod receiver;
mod schedules;
pub(crate) mod workers;
