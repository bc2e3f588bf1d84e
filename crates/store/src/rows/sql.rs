//! The access of shared verbs to a database.

use super::dialect::Dialect;
use super::value::{FromValue, Value};
use crate::{Result, StoreError};

/// One transaction of a database. It compiles each statement once and keeps it.
pub(crate) trait Sql {
    /// Runs a statement and passes its rows to `each`, until that returns `false`.
    fn query(
        &self,
        sql: &str,
        params: Params<'_>,
        each: &mut dyn FnMut(&Row<'_>) -> Result<bool>,
    ) -> Result<()>;

    /// The same for a statement without parameters whose result may be larger than the memory.
    fn query_long(&self, sql: &str, each: &mut dyn FnMut(&Row<'_>) -> Result<bool>) -> Result<()> {
        self.query(sql, Params::Named(&[]), each)
    }

    /// Runs a statement without a result, and returns the number of rows that it changed.
    fn execute(&self, sql: &str, params: Params<'_>) -> Result<usize>;

    fn dialect(&self) -> Dialect;

    /// Another transaction was quicker. The error has the verb repeated where that can happen.
    fn conflict(&self) -> StoreError;
}

/// The values that a statement binds: see [`params`] and [`named`].
#[derive(Clone, Copy, Debug)]
pub(crate) enum Params<'a> {
    /// For `?1`, `?2` and so on.
    Positional(&'a [Value<'a>]),
    /// For `:name`; the names include the colon.
    Named(&'a [(&'static str, Value<'a>)]),
}

/// Binds by position: `params![seq, state]`.
macro_rules! params {
    ($($value:expr),* $(,)?) => {
        $crate::rows::sql::Params::Positional(&[$($crate::rows::value::ToValue::to_value(&$value)),*])
    };
}

/// Binds by name: `named! { seq: job.seq, by }` for `:seq` and `:by`.
macro_rules! named {
    ($($name:ident $(: $value:expr)?),* $(,)?) => {
        $crate::rows::sql::Params::Named(&[$(
            (concat!(":", stringify!($name)), $crate::rows::sql::named!(@value $name $($value)?))
        ),*])
    };
    (@value $name:ident $value:expr) => { $crate::rows::value::ToValue::to_value(&$value) };
    (@value $name:ident) => { $crate::rows::value::ToValue::to_value(&$name) };
}

/// Reads a row into a struct: `read!(row, Run { id, state, at: row.get("created_at")? })`. A field without a value is the
/// column with its name.
macro_rules! read {
    ($row:ident, $($struct:ident)::+ { $($field:ident $(: $value:expr)?),* $(,)? }) => {
        $($struct)::+ { $($field: $crate::rows::sql::read!(@value $row $field $($value)?)),* }
    };
    (@value $row:ident $field:ident $value:expr) => { $value };
    (@value $row:ident $field:ident) => { $row.get(stringify!($field))? };
}

pub(crate) use {named, params, read};

/// A row of a result. It is only valid until the next one is read.
pub(crate) struct Row<'r>(&'r dyn Columns);

/// The columns of a row, as its database has them.
pub(crate) trait Columns {
    /// The number of the column with this name.
    fn index(&self, name: &str) -> Result<usize>;
    fn value(&self, index: usize) -> Result<Value<'_>>;
}

impl<'r> Row<'r> {
    pub(crate) fn new(columns: &'r dyn Columns) -> Self {
        Self(columns)
    }

    pub(crate) fn get<T: FromValue<'r>>(&self, column: impl Column) -> Result<T> {
        T::from_value(self.0.value(column.index(self.0)?)?)
    }
}

/// A column by name, or by position where a lookup would cost too much.
pub(crate) trait Column {
    fn index(self, columns: &dyn Columns) -> Result<usize>;
}

impl Column for usize {
    fn index(self, _: &dyn Columns) -> Result<usize> {
        Ok(self)
    }
}

impl Column for &str {
    fn index(self, columns: &dyn Columns) -> Result<usize> {
        columns.index(self)
    }
}
