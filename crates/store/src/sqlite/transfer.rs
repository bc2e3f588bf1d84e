//! Exporting and importing a whole queue as lines: see [`crate::transfer`].

mod attempts;
mod batches;
mod deliveries;
mod export;
mod hooks;
mod import;
mod schedules;
mod scope;
mod waits;

pub(super) use export::export;
pub(super) use import::import;
