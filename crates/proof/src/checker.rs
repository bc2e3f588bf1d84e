//! The checker: compares the requests, the ledger of the commands and the contents of the store.
//!
//! Each kind of check has its own file. Most checks examine one job at a time, some the whole trial.

pub(crate) mod aftermath;
mod attempts;
mod case;
pub(crate) mod concurrency;
mod endings;
mod existence;
pub(crate) mod final_state;
mod invariant;
mod judge;
pub(crate) mod notifications;
pub(crate) mod rates;
mod schedules;
pub(crate) mod timeline;
mod timing;
mod verdict;

pub use case::Case;
pub use invariant::Invariant;
pub use judge::check;
pub use timeline::timeline;
pub use verdict::{Verdict, Violation};

#[cfg(test)]
mod tests;
