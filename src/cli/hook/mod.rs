//! `queuectl hook`: one file per verb.

mod add;
mod list;
mod post;
mod remove;
mod show;
mod test;
mod verbs;

pub(super) use post::{PostArgs, post};
pub(super) use verbs::{Args, run};
