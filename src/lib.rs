//! queuectl runs shell commands in the background and never loses one.
//!
//! The folders are the architecture; `ARCHITECTURE.md` is the map.

pub mod cli;
pub mod domain;
pub mod engine;
pub mod ops;
pub mod proof;
pub mod store;
pub mod sys;
