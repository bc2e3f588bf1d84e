//! Faults that a single command can meet. Each test has the number of its case.

mod bad_input;
mod bad_numbers;
mod hostile_text;
mod others;
mod places;
