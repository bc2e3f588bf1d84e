//! Operations on jobs: enqueue, list, change, follow, wait.

pub mod batch;
pub mod bulk;
pub mod calling_job;
pub mod change;
pub mod clone;
pub mod columns;
pub mod dependency_failure;
pub mod dlq;
pub mod edit;
pub mod enqueue;
pub mod explain;
pub mod handle;
pub mod list;
pub mod logs;
pub mod overview;
pub mod wait;
pub mod wait_reason;
