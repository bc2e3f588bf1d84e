//! `queuectl selftest`, and the commands that its trials run.

mod act;
mod progress;
mod results;
mod verb;

pub(crate) use act::{act, become_tied, linger};
pub(crate) use verb::run;
