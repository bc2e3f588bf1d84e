//! `queuectl worker`: one file per verb.

mod forget;
mod hidden;
mod list;
mod pool;
mod run;
mod start;
mod stop;
mod verbs;

pub(crate) use hidden::{run_supervisor, run_worker};
pub(crate) use list::table;
pub(crate) use start::start_for_job;
pub(crate) use verbs::run;
