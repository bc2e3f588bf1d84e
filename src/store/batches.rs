//! Batches: jobs that were enqueued together under a name.

pub trait Batches {}
