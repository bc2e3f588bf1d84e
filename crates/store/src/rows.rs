//! The verbs that are written once for every database, row by row over the small trait [`sql::Sql`].
//!
//! - `sql`, `value`, `keys`: statements, and the values that they bind and read. Keys of rows are newtypes; columns are
//!   read and parameters bound by name, except where every exchange passes. SQLite and PostgreSQL accept the same text:
//!   a `cross join` fixes SQLite's order of the tables and has its condition in `where`, a sum is cast to `bigint`, and
//!   a parameter is compared before it is tested for null, because PostgreSQL takes its type from the first use.
//! - `dialect`: the statements that need different words.
//! - `record`, `columns`: structs that declare the columns of a table once, for the lines of an export.
//! - `tx`: one transaction, and the effects of its changes. `transaction`: how verbs run in one, in any store.
//! - `jobs`: applying a transition, and the tables of a job itself. `tables`: every other table. `verbs`: what changes
//!   jobs. `views`: read models. `transfer`, `recount`: whole queues.

pub(crate) mod columns;
pub(crate) mod dialect;
pub(crate) mod jobs;
pub(crate) mod keys;
pub(crate) mod record;
pub(crate) mod recount;
pub(crate) mod sql;
pub(crate) mod tables;
pub(crate) mod transaction;
pub mod transfer;
pub(crate) mod tx;
pub(crate) mod value;
pub(crate) mod verbs;
pub(crate) mod views;

pub(crate) use dialect::{Dialect, wording};
pub(crate) use sql::{Params, Row, Sql, named, params, read};
