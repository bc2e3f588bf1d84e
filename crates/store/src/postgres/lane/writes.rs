//! The collected writes: for each statement a column of values for each of its parameters.

use tokio_postgres::types::{ToSql, Type};

use super::set_form::{Kind, SetForm};
use crate::postgres::session::flight::Request;
use crate::rows::value::Value;

#[derive(Default)]
pub(super) struct Writes {
    /// In the order of their first use.
    statements: Vec<Write>,
}

struct Write {
    /// The statement for one row.
    row_sql: &'static str,
    form: &'static SetForm,
    columns: Vec<Column>,
}

enum Column {
    Integers(Vec<Option<i64>>),
    Texts(Vec<Option<String>>),
    Blobs(Vec<Option<Vec<u8>>>),
}

impl Writes {
    /// `false` if a value does not fit its column.
    pub(super) fn add(
        &mut self,
        row_sql: &'static str,
        form: &'static SetForm,
        values: &[Value<'_>],
    ) -> bool {
        let known = self.statements.iter().position(|write| write.row_sql == row_sql);
        let at = known.unwrap_or_else(|| {
            let columns = form.kinds.iter().map(|kind| Column::new(*kind)).collect();
            self.statements.push(Write { row_sql, form, columns });
            self.statements.len() - 1
        });
        let columns = &mut self.statements[at].columns;
        columns.len() == values.len()
            && columns.iter_mut().zip(values).all(|(column, value)| column.push(*value))
    }

    pub(super) fn requests(&self) -> Vec<Request<'_>> {
        self.statements.iter().map(Write::request).collect()
    }
}

impl Write {
    fn request(&self) -> Request<'_> {
        Request { sql: &self.form.sql, params: self.columns.iter().map(Column::parameter).collect() }
    }
}

impl Column {
    fn new(kind: Kind) -> Self {
        match kind {
            Kind::Integer => Self::Integers(Vec::new()),
            Kind::Text => Self::Texts(Vec::new()),
            Kind::Blob => Self::Blobs(Vec::new()),
        }
    }

    fn push(&mut self, value: Value<'_>) -> bool {
        match (self, value) {
            (Self::Integers(values), Value::Null) => values.push(None),
            (Self::Integers(values), Value::Integer(number)) => values.push(Some(number)),
            (Self::Texts(values), Value::Null) => values.push(None),
            (Self::Texts(values), Value::Text(text)) => values.push(Some(text.to_owned())),
            (Self::Blobs(values), Value::Null) => values.push(None),
            (Self::Blobs(values), Value::Blob(bytes) | Value::Path(bytes)) => {
                values.push(Some(bytes.to_vec()));
            }
            (Self::Integers(_) | Self::Texts(_) | Self::Blobs(_), _) => return false,
        }
        true
    }

    fn parameter(&self) -> (&(dyn ToSql + Sync), Type) {
        match self {
            Self::Integers(values) => (values, Type::INT8_ARRAY),
            Self::Texts(values) => (values, Type::TEXT_ARRAY),
            Self::Blobs(values) => (values, Type::BYTEA_ARRAY),
        }
    }
}
