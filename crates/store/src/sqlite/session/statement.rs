//! SQLite's side of [`Sql`]: binding, stepping and reading statements.

use std::cell::RefCell;

use rusqlite::types::{ToSql, ToSqlOutput, ValueRef};
use rusqlite::{CachedStatement, Connection, Statement};

use crate::rows::Dialect;
use crate::rows::sql::{Columns, Params, Row, Sql};
use crate::rows::value::{Value, malformed};
use crate::{Result, StoreError};

/// More different statements than a turn of a worker uses. A verb that uses more takes the rest from the connection.
const MAX_KEPT: usize = 64;

/// The statements of one transaction. It keeps each one that it used until it ends: to find a statement in the cache of
/// the connection and to return it costs as much as many a statement does itself, and a turn runs the same few for each
/// of its jobs.
pub(crate) struct Statements<'c> {
    connection: &'c Connection,
    kept: RefCell<Vec<(Box<str>, CachedStatement<'c>)>>,
}

impl<'c> Statements<'c> {
    pub(crate) fn of(connection: &'c Connection) -> Self {
        Self { connection, kept: RefCell::default() }
    }

    /// Runs `work` with this statement. `work` may come back for others, and even for the same one.
    fn with<T>(&self, sql: &str, work: impl FnOnce(&mut Statement<'c>) -> Result<T>) -> Result<T> {
        let kept = {
            let mut kept = self.kept.borrow_mut();
            kept.iter().position(|(known, _)| **known == *sql).map(|at| kept.swap_remove(at))
        };
        let (known, mut statement) = match kept {
            Some(kept) => kept,
            None => (sql.into(), self.connection.prepare_cached(sql)?),
        };
        let done = work(&mut statement);
        let mut kept = self.kept.borrow_mut();
        if kept.len() < MAX_KEPT {
            kept.push((known, statement));
        }
        done
    }
}

impl Sql for Statements<'_> {
    fn query(
        &self,
        sql: &str,
        params: Params<'_>,
        each: &mut dyn FnMut(&Row<'_>) -> Result<bool>,
    ) -> Result<()> {
        self.with(sql, |statement| {
            bind(statement, sql, params)?;
            let mut rows = statement.raw_query();
            while let Some(row) = rows.next()? {
                if !each(&Row::new(row))? {
                    break;
                }
            }
            Ok(())
        })
    }

    fn execute(&self, sql: &str, params: Params<'_>) -> Result<usize> {
        self.with(sql, |statement| {
            bind(statement, sql, params)?;
            Ok(statement.raw_execute()?)
        })
    }

    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    /// Impossible: a writer is alone.
    fn conflict(&self) -> StoreError {
        malformed("row", "it has changed in this transaction")
    }
}

fn bind(statement: &mut Statement<'_>, sql: &str, params: Params<'_>) -> Result<()> {
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
    Ok(())
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
