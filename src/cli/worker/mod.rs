//! `queuectl worker`: one file per verb.

mod list;
mod verbs;

pub(super) use list::table;
pub(super) use verbs::{Args, run};
