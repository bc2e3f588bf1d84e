//! `queuectl queue`: one file per verb.

mod list;
mod pause;
pub(crate) mod report;
mod resume;
mod set;
mod verbs;

pub(crate) use verbs::run;
