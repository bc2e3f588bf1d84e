//! The whole queue as lines, out and in: see [`crate::transfer`].

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
