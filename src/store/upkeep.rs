//! Upkeep: pruning, copies of the whole, and what people did.

pub trait Upkeep {}
