//! Verbs that change jobs.

pub(crate) mod cancel;
pub(crate) mod change;
pub(crate) mod dlq;
pub(crate) mod edit;
pub(crate) mod pause;
pub(crate) mod remove;
pub(crate) mod resume;
pub(crate) mod retry;
