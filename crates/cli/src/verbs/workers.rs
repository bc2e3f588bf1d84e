//! Verbs about workers, queues, hooks and settings.

pub(crate) mod config;
#[cfg(feature = "dashboard")]
pub(crate) mod dashboard;
pub(crate) mod hook;
pub(crate) mod queue;
pub(crate) mod service;
pub(crate) mod worker;
