//! Verbs that create jobs.

pub(crate) mod autostart;
pub(crate) mod batch;
pub(crate) mod document;
pub(crate) mod enqueue;
pub(crate) mod enqueue_each;
pub(crate) mod enqueue_lines;
pub(crate) mod inside_job;
pub(crate) mod name;
pub(crate) mod run;
pub(crate) mod run_each;
pub(crate) mod run_on_terminal;
pub(crate) mod schedule;
mod schedule_edit;
pub(crate) mod standard_input;
pub(crate) mod start_hints;
mod start_time;
pub(crate) mod typed_input;
pub(crate) mod working_directory;
