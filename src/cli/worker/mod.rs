//! `queuectl worker`: one file per verb.

mod forget;
mod hidden;
mod list;
mod pool;
mod run;
mod start;
mod stop;
mod verbs;

pub(super) use hidden::{GuardianArgs, WorkerArgs, run_guardian, run_worker};
pub(super) use list::table;
pub(super) use start::start_for_job;
pub(super) use verbs::{Args, run};
