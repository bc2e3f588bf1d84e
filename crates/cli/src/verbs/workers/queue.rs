//! `queuectl queue`: one file per verb.

mod changed;
mod list;
mod pause;
mod resume;
mod set;
mod verbs;

pub(crate) use verbs::run;
