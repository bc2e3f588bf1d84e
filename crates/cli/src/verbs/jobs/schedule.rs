//! `queuectl schedule`: one file per verb that has much to say.

mod add;
mod list;
mod show;
mod verbs;

pub(crate) use verbs::run;
