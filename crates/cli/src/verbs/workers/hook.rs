//! `queuectl hook`: one file per verb.

mod add;
mod list;
mod post;
mod remove;
mod show;
mod test;
mod verbs;

pub(crate) use post::post;
pub(crate) use verbs::run;
