//! `queuectl selftest`, and the commands that its trials run.

mod act;
mod progress;
mod results;
mod verb;

pub(super) use act::{ActArgs, LingerArgs, TiedArgs, act, become_tied, linger};
pub(super) use verb::{Args, run};
