//! Verbs that create, check, copy and prune a queue.

pub(crate) mod backup;
pub(crate) mod bench;
pub(crate) mod completions;
pub(crate) mod doctor;
pub(crate) mod earlier_version;
pub(crate) mod init;
pub(crate) mod man;
pub(crate) mod prune;
pub(crate) mod selftest;
pub(crate) mod transfer;
pub(crate) mod transfer_deliveries;
pub(crate) mod transfer_format;
