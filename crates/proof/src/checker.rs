//! The checker: compares the requests, the ledger of the commands and the contents of the store.
//!
//! Each kind of check has its own file. Most checks examine one job at a time, some the whole trial.

mod attempts;
mod case;
mod crowding;
mod endings;
mod existence;
mod invariant;
mod judge;
mod pace;
mod remains;
mod schedules;
mod standing;
mod story;
mod telling;
mod timing;
mod verdict;

pub use case::Case;
pub use invariant::Invariant;
pub use judge::check;
pub use story::timeline;
pub use verdict::{Verdict, Violation};

#[cfg(test)]
mod tests;
