//! Feeds arbitrary input to every parser of outside input. A target is a function of bytes that asserts what holds for
//! all of them; `tests/corpus` has inputs for each, and every run adds some thousands that are made from those.
//!
//! `QUEUECTL_FUZZ_SEED` and `QUEUECTL_FUZZ_ITERATIONS` choose other inputs and more of them; `QUEUECTL_FUZZ_INPUT` is a
//! file that is tried instead.

pub mod corpus;
mod mutate;
mod run;
mod targets;
mod tests;
