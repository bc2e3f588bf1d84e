//! The conformance suite for every [`store::Store`].
//!
//! The tests use only `dyn Store` and a clock that they control, and `every_store!` runs each of them on each store.
//! Tests of a single store are in the module named after it.

pub(crate) mod fixture;
pub(crate) mod jobs;

mod batches;
pub(crate) mod hooks;
mod limits;
mod metrics;
mod model;
mod orders;
mod output_parts;
pub(crate) mod postgres;
mod prune;
mod queues;
mod schedule_edit;
pub(crate) mod schedules;
mod settings;
mod sqlite;
mod workers;
