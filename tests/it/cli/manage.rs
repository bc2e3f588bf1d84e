//! Verbs that change jobs.

pub(crate) mod cancel;
pub(crate) mod dlq;
mod dlq_causes;
mod dlq_list;
pub(crate) mod edit;
mod edit_many;
pub(crate) mod pause;
pub(crate) mod remove;
pub(crate) mod report_change;
pub(crate) mod retry;
