//! Verbs that create, check, copy and prune a queue.

pub(crate) mod backup;
pub(crate) mod bench;
pub(crate) mod complete;
pub(crate) mod completions;
pub(crate) mod doctor;
pub(crate) mod export;
pub(crate) mod import;
pub(crate) mod init;
pub(crate) mod man;
pub(crate) mod prune;
pub(crate) mod restore;
pub(crate) mod selftest;
pub(crate) mod store;
