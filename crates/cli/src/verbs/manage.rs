//! Verbs that change jobs.

pub(crate) mod bulk;
pub(crate) mod cancel;
pub(crate) mod change_ids;
pub(crate) mod dlq;
pub(crate) mod edit;
pub(crate) mod remove;
pub(crate) mod retry;
