//! Verbs that show jobs and what happens to them.

pub(crate) mod events;
pub(crate) mod explain;
mod filters;
pub(crate) mod graph;
mod history;
pub(crate) mod list;
mod list_on_terminal;
pub(crate) mod logs;
pub(crate) mod logs_follow;
pub(crate) mod logs_lines;
mod metrics;
mod numbers;
pub(crate) mod selection;
pub(crate) mod show;
pub(crate) mod status;
mod summary;
mod times;
mod top;
mod upcoming;
pub(crate) mod wait;
pub(crate) mod watch;
