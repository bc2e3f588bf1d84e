//! Verbs about workers, queues, hooks and settings.

pub(crate) mod config;
pub(crate) mod hook;
pub(crate) mod notify;
pub(crate) mod queue;
pub(crate) mod service;
pub(crate) mod upgrade;
pub(crate) mod worker_forget;
pub(crate) mod worker_list;
