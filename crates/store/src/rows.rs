//! The verbs that are written once for every database: row by row, over the small trait [`Sql`].
//!
//! A database implements `Sql`; its statements here are those that SQLite and PostgreSQL both accept. Keys of rows are
//! newtypes ([`keys`]), columns are read by name, and parameters are bound by name, except on the path of a claim.

pub(crate) mod keys;
pub(crate) mod sql;
pub(crate) mod value;

pub(crate) use sql::{Params, Row, Sql, named, params};
