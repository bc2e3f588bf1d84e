//! `queuectl selftest`, and the commands that its trials run.

pub(crate) mod hidden;
mod progress;
mod results;
mod verb;

pub(crate) use hidden::{act, become_tied, linger};
pub(crate) use verb::run;
