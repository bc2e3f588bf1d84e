//! SQLite's side of [`Sql`]: binding, stepping and reading statements.

use rusqlite::types::{ToSql, ToSqlOutput, ValueRef};
use rusqlite::{CachedStatement, Connection};

use crate::rows::Dialect;
use crate::rows::sql::{Columns, Params, Row, Sql};
use crate::rows::value::{Value, malformed};
use crate::{Result, StoreError};

impl Sql for Connection {
    fn query(
        &self,
        sql: &str,
        params: Params<'_>,
        each: &mut dyn FnMut(&Row<'_>) -> Result<bool>,
    ) -> Result<()> {
        let mut statement = bound(self, sql, params)?;
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next()? {
            if !each(&Row::new(row))? {
                break;
            }
        }
        Ok(())
    }

    fn execute(&self, sql: &str, params: Params<'_>) -> Result<usize> {
        Ok(bound(self, sql, params)?.raw_execute()?)
    }

    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    /// Impossible: a writer is alone.
    fn conflict(&self) -> StoreError {
        malformed("row", "it has changed in this transaction")
    }
}

fn bound<'c>(connection: &'c Connection, sql: &str, params: Params<'_>) -> Result<CachedStatement<'c>> {
    let mut statement = connection.prepare_cached(sql)?;
    let count = match params {
        Params::Positional(values) => {
            for (index, value) in values.iter().enumerate() {
                statement.raw_bind_parameter(index + 1, value)?;
            }
            values.len()
        }
        Params::Named(values) => {
            for (name, value) in values {
                let index = statement.parameter_index(name)?;
                let index = index.unwrap_or_else(|| panic!("no parameter {name} in: {sql}"));
                statement.raw_bind_parameter(index, value)?;
            }
            values.len()
        }
    };
    assert_eq!(count, statement.parameter_count(), "every parameter is bound in: {sql}");
    Ok(statement)
}

impl ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match *self {
            Value::Null => ValueRef::Null,
            Value::Integer(number) => ValueRef::Integer(number),
            Value::Real(number) => ValueRef::Real(number),
            Value::Text(text) => ValueRef::Text(text.as_bytes()),
            Value::Blob(bytes) => ValueRef::Blob(bytes),
            // As text, like every other path: SQLite does not check its bytes.
            Value::Path(bytes) => ValueRef::Text(bytes),
        }))
    }
}

impl Columns for rusqlite::Row<'_> {
    fn index(&self, name: &str) -> Result<usize> {
        Ok(self.as_ref().column_index(name)?)
    }

    fn value(&self, index: usize) -> Result<Value<'_>> {
        Ok(match self.get_ref(index)? {
            ValueRef::Null => Value::Null,
            ValueRef::Integer(number) => Value::Integer(number),
            ValueRef::Real(number) => Value::Real(number),
            // A path that is not valid text is stored as text all the same.
            ValueRef::Text(text) => std::str::from_utf8(text).map_or(Value::Blob(text), Value::Text),
            ValueRef::Blob(bytes) => Value::Blob(bytes),
        })
    }
}
