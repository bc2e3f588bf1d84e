//! Faults that a single command can meet. Each test has the number of its case.

mod bad_input;
mod bad_numbers;
pub(crate) mod crash;
mod crowd;
mod hostile_text;
mod others;
mod places;
pub(crate) mod read_only;
#[cfg(debug_assertions)] // Released builds have no fail-points.
mod seams;
#[cfg(debug_assertions)] // No library can step in if the program is linked statically.
mod stopped_writer;
