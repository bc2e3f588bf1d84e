//! `queuectl selftest`, and the commands that its trials run.

mod act;
mod progress;
mod results;
mod verb;

pub(crate) use act::{ActArgs, LingerArgs, TiedArgs, act, become_tied, linger};
pub(crate) use verb::{Args, run};
