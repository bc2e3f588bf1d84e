//! Background duties of a worker, one per file, each with a `run_once` or a single entry point.

pub(crate) mod forget;
pub(crate) mod pruner;
pub(crate) mod reaper;
pub(crate) mod scheduler;
pub(crate) mod silence;
