//! What can be done with jobs: enqueue, list, change, follow, wait.

pub mod attend;
pub mod batch;
pub mod bulk;
pub mod change;
pub mod columns;
pub mod dlq;
pub mod edit;
pub mod enqueue;
pub mod explain;
pub mod inside;
pub mod list;
pub mod logs;
pub mod wait;
