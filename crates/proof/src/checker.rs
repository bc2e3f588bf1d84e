//! The checker: holds what was asked for, what the commands wrote and what the store says against each other.
//!
//! One file per kind of question. Each looks at one job at a time, but for those about the whole.

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
pub use story::story;
pub use verdict::{Verdict, Violation};

#[cfg(test)]
mod tests;
