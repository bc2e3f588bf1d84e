//! The values of columns and parameters in the types of the server. The schema has one type for each kind of value; a
//! statement can have others, such as a `boolean` that it computes.

use std::borrow::Cow;
use std::error::Error;
use std::fmt::Write;

use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{Format, FromSql, IsNull, ToSql, Type, to_sql_checked};

use crate::rows::value::Value;

type BoxedError = Box<dyn Error + Sync + Send>;

impl ToSql for Value<'_> {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, BoxedError> {
        match self {
            Value::Null => Ok(IsNull::Yes),
            _ if *ty == Type::UNKNOWN => as_text(self).to_sql(&Type::TEXT, out),
            Value::Integer(number) => integer_to_sql(*number, ty, out),
            Value::Real(number) if *ty == Type::FLOAT8 => number.to_sql(ty, out),
            Value::Text(text) if is_text(ty) => text.to_sql(ty, out),
            Value::Blob(bytes) | Value::Path(bytes) if *ty == Type::BYTEA => bytes.to_sql(ty, out),
            Value::Real(_) | Value::Text(_) | Value::Blob(_) | Value::Path(_) => {
                Err(format!("a parameter of type {ty} was given {self:?}").into())
            }
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn encode_format(&self, ty: &Type) -> Format {
        if *ty == Type::UNKNOWN { Format::Text } else { Format::Binary }
    }

    to_sql_checked!();
}

/// The value as the server reads it whatever its type will be.
fn as_text<'v>(value: &Value<'v>) -> Cow<'v, str> {
    match *value {
        Value::Null => "".into(),
        Value::Integer(number) => number.to_string().into(),
        Value::Real(number) => number.to_string().into(),
        Value::Text(text) => text.into(),
        Value::Blob(bytes) | Value::Path(bytes) => {
            let mut text = String::with_capacity(2 + 2 * bytes.len());
            text.push_str("\\x");
            for byte in bytes {
                // Writing to a string cannot fail.
                let _ = write!(text, "{byte:02x}");
            }
            text.into()
        }
    }
}

fn integer_to_sql(number: i64, ty: &Type, out: &mut BytesMut) -> Result<IsNull, BoxedError> {
    match *ty {
        Type::INT8 => number.to_sql(ty, out),
        Type::INT4 => i32::try_from(number)?.to_sql(ty, out),
        Type::BOOL => (number != 0).to_sql(ty, out),
        _ => Err(format!("a parameter of type {ty} was given the integer {number}").into()),
    }
}

impl<'a> FromSql<'a> for Value<'a> {
    fn from_sql(ty: &Type, raw: &'a [u8]) -> Result<Self, BoxedError> {
        Ok(match *ty {
            Type::INT8 => Self::Integer(i64::from_sql(ty, raw)?),
            Type::INT4 => Self::Integer(i32::from_sql(ty, raw)?.into()),
            Type::BOOL => Self::Integer(bool::from_sql(ty, raw)?.into()),
            Type::FLOAT8 => Self::Real(f64::from_sql(ty, raw)?),
            Type::BYTEA => Self::Blob(raw),
            _ if is_text(ty) => Self::Text(<&str>::from_sql(ty, raw)?),
            _ => return Err(format!("the type {ty} is not expected").into()),
        })
    }

    fn from_sql_null(_: &Type) -> Result<Self, BoxedError> {
        Ok(Self::Null)
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

fn is_text(ty: &Type) -> bool {
    matches!(*ty, Type::TEXT | Type::VARCHAR | Type::NAME | Type::UNKNOWN)
}
