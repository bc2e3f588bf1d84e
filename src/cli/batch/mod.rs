//! `queuectl batch`

mod list;
mod verbs;
mod wait;

pub(super) use verbs::{Args, run};
