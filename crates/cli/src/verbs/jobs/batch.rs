//! `queuectl batch`

mod list;
mod verbs;
mod wait;

pub(crate) use verbs::run;
