//! Processes that outlive their attempt or their worker: how they are found and killed.

pub(crate) mod cleanup;
pub(crate) mod reparented;
pub(crate) mod strays;
pub(crate) mod survivor;
