//! The verbs that are written once for every database, row by row over the small trait [`sql::Sql`].
//!
//! - `sql`, `value`, `keys`: statements, and the values that they bind and read. PostgreSQL accepts nine of ten of them
//!   once their parameters are numbered. The others have `cross join … on`, `glob`, `json_each`, a scalar `max`, or a
//!   parameter whose first use is `is null` and so has no type: another database needs a form of its own for these.
//!   Keys of rows are newtypes; columns are read and parameters bound by name, except where every exchange passes.
//! - `record`, `columns`: structs that declare the columns of a table once, for the lines of an export.
//! - `tx`: one transaction, and the effects of its changes.
//! - `jobs`: applying a transition, and the tables of a job itself. `tables`: every other table. `verbs`: what changes
//!   jobs. `views`: read models. `transfer`, `recount`: whole queues.

pub(crate) mod columns;
pub(crate) mod jobs;
pub(crate) mod keys;
pub(crate) mod record;
pub(crate) mod recount;
pub(crate) mod sql;
pub(crate) mod tables;
pub mod transfer;
pub(crate) mod tx;
pub(crate) mod value;
pub(crate) mod verbs;
pub(crate) mod views;

pub(crate) use sql::{Params, Row, Sql, named, params, read};
