//! The verbs that SQLite has in a form of its own: prepared statements in a loop, without a round trip to wait for.

pub(crate) mod claim;
pub(crate) mod exchange;
