//! Faults that a single command can meet. Each test has the number of its case.

mod bad_input;
mod bad_numbers;
pub(crate) mod crash;
pub(crate) mod crowd;
mod hostile_text;
mod others;
mod places;
pub(crate) mod seams;
pub(crate) mod stopped_writer;
