//! The proof: attempts to make queuectl break its promises, with its real processes, on the machine at hand.
//!
//! ```text
//!   seed ──▶ plan ──▶ trial: load ─ strike ─ heal ─ drain ──▶ evidence ──▶ checker ──▶ verdict
//!                        │                                      ▲
//!                        └─ calls (ok, failed, unknown) ── ledger of the commands ── store
//! ```
//!
//! A [`plan`] says, for a seed, which jobs there are and what becomes of them. A [`trial`] runs it on a home of its own
//! while a [`nemesis`] does damage, and gathers the [`evidence`]: what was asked for and answered ([`calls`]), what the
//! commands themselves wrote down ([`ledger`]), and what the store says. The [`checker`] holds these against each other.
//! It knows nothing of how queuectl works.
//!
//! A seed repeats the plan and the choices of the nemesis. How processes take turns is up to the kernel, so a violation
//! that hangs on it may need several runs to come back.

pub mod actor;
pub mod calls;
pub mod campaign;
pub mod checker;
pub mod error;
pub mod evidence;
pub mod hook_log;
pub mod ledger;
pub mod nemesis;
pub mod plan;
pub mod promise;
pub mod sandbox;
pub mod trial;

pub use error::ProofError;
