//! The engine: its public parts, and workers that run real commands.

pub(crate) mod attempts;
pub(crate) mod harness;
mod hooks;
mod receiver;
mod schedules;
pub(crate) mod workers;
