//! PostgreSQL's side of [`Sql`]. Each statement is prepared once per session, unless there is a pooler. All rows are read
//! before the first is passed on, because a statement may run inside the closure of another; those of a long result page
//! by page.

use std::sync::Arc;

use tokio_postgres::Statement;
use tokio_postgres::types::{ToSql, Type};

use super::parameters::numbered;
use super::{Health, Session};
use crate::rows::Dialect;
use crate::rows::sql::{Columns, Params, Row, Sql};
use crate::rows::value::{Value, malformed};
use crate::{Result, StoreError};

/// How many rows of a long result are in memory at a time.
const PAGE: usize = 200;

#[derive(Clone)]
pub(super) struct Prepared {
    form: Form,
    /// See [`super::parameters::Numbered::names`].
    names: Arc<[String]>,
}

#[derive(Clone)]
enum Form {
    /// Known to the session of the server.
    Named(Statement),
    /// The text, which is sent each time. The server finds out the types of the parameters, as for a named one.
    Unnamed(Arc<str>),
}

impl Prepared {
    /// The values in the order of the parameters.
    fn bind<'v>(&self, sql: &str, params: Params<'v>) -> Vec<Value<'v>> {
        let values: Vec<Value<'v>> = match params {
            Params::Positional(values) => values.to_vec(),
            Params::Named(values) => {
                assert_eq!(values.len(), self.names.len(), "every parameter is bound in: {sql}");
                let value = |name: &String| {
                    let bound = values.iter().find(|(bound, _)| bound == name);
                    bound.unwrap_or_else(|| panic!("no value for {name} in: {sql}")).1
                };
                self.names.iter().map(value).collect()
            }
        };
        if let Form::Named(statement) = &self.form {
            assert_eq!(values.len(), statement.params().len(), "every parameter is bound in: {sql}");
        }
        values
    }
}

impl Session {
    fn prepared(&self, sql: &str) -> Result<Prepared> {
        if let Some(known) = self.statements.borrow().get(sql) {
            return Ok(known.clone());
        }
        let numbered = numbered(sql);
        let form = if self.is_pooled() {
            Form::Unnamed(numbered.sql.into())
        } else {
            Form::Named(self.wait(self.client.prepare(&numbered.sql))?)
        };
        let prepared = Prepared { form, names: numbered.names.into() };
        self.statements.borrow_mut().insert(sql.to_owned(), prepared.clone());
        Ok(prepared)
    }
}

impl Sql for Session {
    fn query(
        &self,
        sql: &str,
        params: Params<'_>,
        each: &mut dyn FnMut(&Row<'_>) -> Result<bool>,
    ) -> Result<()> {
        let prepared = self.prepared(sql)?;
        let values = prepared.bind(sql, params);
        let rows = match &prepared.form {
            Form::Named(statement) => self.wait(self.client.query(statement, &references(&values)))?,
            Form::Unnamed(text) => self.wait(self.client.query_typed(text, &untyped(&values)))?,
        };
        for row in &rows {
            if !each(&Row::new(row))? {
                break;
            }
        }
        Ok(())
    }

    /// Reads through a cursor, which belongs to the transaction: a pooler, and a standby, have it too.
    fn query_long(&self, sql: &str, each: &mut dyn FnMut(&Row<'_>) -> Result<bool>) -> Result<()> {
        let number = self.cursors.replace(self.cursors.get() + 1);
        self.batch(&format!("declare page_{number} no scroll cursor for {}", numbered(sql).sql))?;
        let fetch = format!("fetch {PAGE} from page_{number}");
        'pages: loop {
            let rows = self.wait(self.client.query_typed(&fetch, &[]))?;
            for row in &rows {
                if !each(&Row::new(row))? {
                    break 'pages;
                }
            }
            if rows.len() < PAGE {
                break;
            }
        }
        self.batch(&format!("close page_{number}"))?;
        Ok(())
    }

    fn execute(&self, sql: &str, params: Params<'_>) -> Result<usize> {
        let prepared = self.prepared(sql)?;
        let values = prepared.bind(sql, params);
        let changed = match &prepared.form {
            Form::Named(statement) => self.wait(self.client.execute(statement, &references(&values)))?,
            Form::Unnamed(text) => self.wait(self.client.execute_typed(text, &untyped(&values)))?,
        };
        Ok(usize::try_from(changed).unwrap_or(usize::MAX))
    }

    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    fn conflict(&self) -> StoreError {
        self.health.set(Health::Conflict);
        StoreError::Unavailable { source: "another transaction was quicker".into() }
    }
}

fn references<'v>(values: &'v [Value<'v>]) -> Vec<&'v (dyn ToSql + Sync)> {
    values.iter().map(|value| value as &(dyn ToSql + Sync)).collect()
}

fn untyped<'v>(values: &'v [Value<'v>]) -> Vec<(&'v (dyn ToSql + Sync), Type)> {
    references(values).into_iter().map(|value| (value, Type::UNKNOWN)).collect()
}

impl Columns for tokio_postgres::Row {
    fn index(&self, name: &str) -> Result<usize> {
        let found = self.columns().iter().position(|column| column.name() == name);
        found.ok_or_else(|| malformed("row", format_args!("it has no column {name}")))
    }

    fn value(&self, index: usize) -> Result<Value<'_>> {
        self.try_get(index).map_err(|error| StoreError::Malformed { what: "row", detail: error.to_string() })
    }
}
