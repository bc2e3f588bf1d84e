//! The verbs that change jobs, one per file: each reads rows, asks [`domain`] what follows, and applies the answer inside
//! one transaction. A store may have a faster form of its own of those that workers call all the time.

pub(crate) mod cancel;
pub(crate) mod change;
pub(crate) mod claim;
pub(crate) mod edit;
pub(crate) mod enqueue;
pub(crate) mod environment_gc;
pub(crate) mod exchange;
pub(crate) mod extend;
pub(crate) mod fire;
pub(crate) mod free_pages;
pub(crate) mod pause;
pub(crate) mod prune;
pub(crate) mod reap;
pub(crate) mod remove;
pub(crate) mod report;
pub(crate) mod retry;
pub(crate) mod settle;
