//! `queuectl hook`: one file per verb.

mod add;
mod deliveries;
mod list;
mod post;
mod remove;
mod retry;
mod show;
mod test;
mod verbs;

pub(crate) use post::post;
pub(crate) use verbs::run;
