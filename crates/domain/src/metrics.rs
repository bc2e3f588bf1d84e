//! What happened in a queue over time, as numbers: attempts that started and ended, how long jobs waited and ran.
//!
//! The store keeps one row per queue and minute, folds old rows into coarser ones, and never loses a count.

pub mod activity;
pub mod depth;
pub mod histogram;
pub mod history;
pub mod resolution;
