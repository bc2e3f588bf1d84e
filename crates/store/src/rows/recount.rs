//! Data that the store keeps redundantly: counters, ready and waiting rows, links, keys and tags all follow from the
//! jobs. `find` compares them with the jobs in one snapshot, without a write; `repair` rebuilds those that differ, in
//! short transactions.

mod find;
pub(crate) mod repair;

pub(crate) use find::find;
pub(crate) use repair::repair;
