//! The whole queue as lines, out and in: see [`crate::store::transfer`].

mod export;
mod import;

pub(super) use export::export;
pub(super) use import::import;
