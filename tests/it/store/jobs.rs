//! Jobs in the store: each verb, the order of claims, and fencing.

pub(crate) mod cancel;
pub(crate) mod causes;
pub(crate) mod claim_order;
pub(crate) mod dependencies;
pub(crate) mod edit;
pub(crate) mod enqueue;
pub(crate) mod exchange;
pub(crate) mod fencing;
pub(crate) mod graph;
pub(crate) mod list;
pub(crate) mod pause;
pub(crate) mod reap;
pub(crate) mod remove;
pub(crate) mod retry;
pub(crate) mod search;
pub(crate) mod selection;
pub(crate) mod settle;
pub(crate) mod unique;
