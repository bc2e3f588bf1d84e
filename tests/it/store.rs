//! The conformance suite: what every [`store::Store`] must do.
//!
//! The tests know only `dyn Store` and a clock that they turn themselves, and `every_store!` runs each of them on each
//! store. What is true of one store alone is in the file of its name.

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
