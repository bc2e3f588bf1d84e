//! Fault-injection trials: attempts to make queuectl break its promises, with real processes, on this machine.
//!
//! ```text
//!   seed ──▶ plan ──▶ trial: load ─ strike ─ heal ─ drain ──▶ evidence ──▶ checker ──▶ verdict
//!                        │                                      ▲
//!                        └─ calls (ok, failed, unknown) ── ledger of the commands ── store
//! ```
//!
//! A [`plan`] is derived from a seed: the jobs, how their commands behave, and what clients do. A [`trial`] runs it in its
//! own home while a [`nemesis`] injects faults, and gathers the [`evidence`]: the requests and their answers ([`calls`]),
//! the events that the commands recorded ([`ledger`]), and the contents of the store. The [`checker`] compares these. It
//! knows nothing of how queuectl works.
//!
//! A seed reproduces the plan and the choices of the nemesis. The kernel schedules the processes, so a violation that
//! depends on timing may need several runs to reappear.

pub mod actor;
pub mod calls;
pub mod campaign;
pub mod checker;
pub mod error;
pub mod evidence;
pub mod ledger;
pub mod nemesis;
pub mod notifications;
pub mod plan;
pub mod promise;
pub mod sandbox;
pub mod trial;

pub use error::ProofError;
