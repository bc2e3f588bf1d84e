//! Decisions over sets of rows, made once for every store: a store loads rows, asks here, and writes the answer.
//!
//! - `consequences`: the other rows that change when a job changes.
//! - `dependents`: whether a job that waits for others is unblocked, or cancelled.
//! - `settlement`: when an attempt started and ended, and the job's columns about it.
//! - `capacity`: how many jobs of each queue may start now.
//! - `crossing`: whether a batch or a dead-letter queue has crossed the line at which hooks fire.

pub mod capacity;
pub mod consequences;
pub mod crossing;
pub mod dependents;
pub mod settlement;
