//! `queuectl queue`: one file for each of its larger verbs.

mod list;
pub(crate) mod set;
mod verbs;

pub(crate) use verbs::run;
