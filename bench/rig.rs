//! Tools of the benchmarks: processes, homes, filled stores, other queues, and repeated measurements.

pub(crate) mod bare;
pub(crate) mod browser;
pub(crate) mod cluster;
pub(crate) mod dashboard;
pub(crate) mod filled;
pub(crate) mod peer;
pub(crate) mod pool;
pub(crate) mod raw;
pub(crate) mod running;
pub(crate) mod sample;
pub(crate) mod server_peer;
pub(crate) mod spawn;
pub(crate) mod terminal;
pub(crate) mod tiny_jobs;
pub(crate) mod usage;
pub(crate) mod workspace;
