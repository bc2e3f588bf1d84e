//! The benchmarks, one per file: each measures queuectl against something that does only the unavoidable part.

pub(crate) mod dashboard;
pub(crate) mod drain;
pub(crate) mod enqueue_bulk;
pub(crate) mod enqueue_one;
pub(crate) mod graph;
pub(crate) mod idle;
pub(crate) mod instructions;
pub(crate) mod large_store;
pub(crate) mod limits;
pub(crate) mod many_processes;
pub(crate) mod million;
pub(crate) mod peers;
pub(crate) mod postgres;
pub(crate) mod recovery;
pub(crate) mod scale;
pub(crate) mod start_latency;
pub(crate) mod top;
