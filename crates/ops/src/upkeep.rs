//! Keeping a queue small, and copying it.

pub mod backup;
pub mod prune;
pub mod restore;
pub mod spooled;
pub mod transfer;
