//! Read models: questions that span several tables. Nothing here writes.

pub(crate) mod capacity;
pub(crate) mod causes;
pub(crate) mod eta_facts;
pub(crate) mod explain_facts;
pub(crate) mod failures;
pub(crate) mod find;
pub(crate) mod graph;
pub(crate) mod history;
pub(crate) mod idle;
pub(crate) mod job_query;
pub(crate) mod list;
pub(crate) mod metrics;
pub(crate) mod orders;
pub(crate) mod recent_problems;
pub(crate) mod search;
pub(crate) mod starvation;
pub(crate) mod upcoming;
