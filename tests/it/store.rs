//! The conformance suite for every [`store::Store`].
//!
//! The tests use only `dyn Store` and a clock that they control, and `every_store!` runs each of them on each store.
//! Tests of a single store are in the module named after it.

pub(crate) mod fixture;
pub(crate) mod new_job;

mod batches;
mod cancel;
mod claim_order;
mod dependencies;
mod edit;
mod enqueue;
mod exchange;
mod fencing;
mod graph;
pub(crate) mod hooks;
mod limits;
mod list;
mod model;
mod orders;
mod prune;
mod queues;
mod reap;
mod remove;
mod retry;
pub(crate) mod schedules;
mod selection;
mod settings;
mod settle;
mod sqlite;
mod unique;
mod workers;
