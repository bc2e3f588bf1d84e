//! Tests of the PostgreSQL store only: its schema, the loss of its sessions, and several writers at once.

mod contention;
mod dead_rows;
mod faults;
mod histories;
mod hot;
mod minutes;
mod outages;
mod plans;
pub(crate) mod proxy;
mod schema;
mod waking;
