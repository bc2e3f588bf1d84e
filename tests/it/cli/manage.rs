//! Verbs that change jobs.

pub(crate) mod cancel;
pub(crate) mod dlq;
pub(crate) mod edit;
pub(crate) mod pause;
pub(crate) mod remove;
pub(crate) mod report_change;
pub(crate) mod retry;
