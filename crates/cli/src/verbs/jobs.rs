//! Verbs that create jobs.

pub(crate) mod autostart;
pub(crate) mod batch;
pub(crate) mod enqueue;
pub(crate) mod ignored_input;
pub(crate) mod run;
pub(crate) mod schedule;
pub(crate) mod start_hints;
pub(crate) mod typed_command;
