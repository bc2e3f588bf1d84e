//! What must not break queuectl: the cases that a command alone can meet. Each test bears the number of its case.

mod bad_input;
mod bad_numbers;
mod hostile_text;
mod others;
mod places;
