//! Verbs that create jobs.

pub(crate) mod batch;
pub(crate) mod enqueue;
pub(crate) mod enqueue_each;
pub(crate) mod enqueue_lines;
pub(crate) mod inside_job;
pub(crate) mod run;
pub(crate) mod run_on_terminal;
pub(crate) mod schedule;
pub(crate) mod start_hints;
pub(crate) mod working_directory;
