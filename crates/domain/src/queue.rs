//! Queues: what limits how fast their jobs start.

pub mod rate;
