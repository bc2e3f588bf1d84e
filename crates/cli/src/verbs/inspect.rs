//! Verbs that show jobs and what happens to them.

pub(crate) mod events;
pub(crate) mod explain;
pub(crate) mod graph;
pub(crate) mod history;
pub(crate) mod list;
pub(crate) mod logs;
pub(crate) mod metrics;
pub(crate) mod show;
pub(crate) mod status;
pub(crate) mod summary;
#[cfg(feature = "tui")]
pub(crate) mod top;
pub(crate) mod upcoming;
pub(crate) mod wait;
pub(crate) mod watch;
