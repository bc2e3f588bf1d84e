//! The values of columns and parameters, and their conversion from and to the types of [`domain`].

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use crate::{EndReason, Result, StoreError, WorkerState};
use domain::job::life::{CancelReason, DeadReason, StateName};
use domain::job::limits::Limits;
use domain::schedule::{OnMissed, OnOverlap};
use domain::values::name::{BatchName, HookName, JobId, NameError, QueueName, ScheduleName, WorkerId};
use domain::values::signal::Signal;
use domain::values::timestamp::Timestamp;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Value<'a> {
    Null,
    Integer(i64),
    Real(f64),
    Text(&'a str),
    Blob(&'a [u8]),
    /// The bytes of a path, which need not be valid text. Only bound: a column yields text or a blob.
    Path(&'a [u8]),
}

impl Value<'_> {
    fn kind(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Integer(_) => "an integer",
            Self::Real(_) => "a real number",
            Self::Text(_) => "text",
            Self::Blob(_) => "a blob",
            Self::Path(_) => "a path",
        }
    }

    /// The error of a value that is not what its column should contain.
    fn is_not(self, expected: &str) -> StoreError {
        malformed("row", format_args!("a column contains {} instead of {expected}", self.kind()))
    }
}

pub(crate) fn malformed(what: &'static str, detail: impl std::fmt::Display) -> StoreError {
    StoreError::Malformed { what, detail: detail.to_string() }
}

/// A type that a statement can bind.
pub(crate) trait ToValue {
    fn to_value(&self) -> Value<'_>;
}

/// A type that a column can contain.
pub(crate) trait FromValue<'r>: Sized {
    fn from_value(value: Value<'r>) -> Result<Self>;
}

impl<T: ToValue + ?Sized> ToValue for &T {
    fn to_value(&self) -> Value<'_> {
        (**self).to_value()
    }
}

impl<T: ToValue> ToValue for Option<T> {
    fn to_value(&self) -> Value<'_> {
        self.as_ref().map_or(Value::Null, ToValue::to_value)
    }
}

impl<'r, T: FromValue<'r>> FromValue<'r> for Option<T> {
    fn from_value(value: Value<'r>) -> Result<Self> {
        if value == Value::Null { Ok(None) } else { T::from_value(value).map(Some) }
    }
}

impl ToValue for i64 {
    fn to_value(&self) -> Value<'_> {
        Value::Integer(*self)
    }
}

impl<'r> FromValue<'r> for i64 {
    fn from_value(value: Value<'r>) -> Result<Self> {
        match value {
            Value::Integer(number) => Ok(number),
            Value::Null | Value::Real(_) | Value::Text(_) | Value::Blob(_) | Value::Path(_) => {
                Err(value.is_not("an integer"))
            }
        }
    }
}

macro_rules! integers {
    ($($integer:ty),*) => {$(
        impl ToValue for $integer {
            /// A number beyond the range of a column is a limit that is never reached.
            fn to_value(&self) -> Value<'_> {
                Value::Integer(i64::try_from(*self).unwrap_or(i64::MAX))
            }
        }

        impl<'r> FromValue<'r> for $integer {
            fn from_value(value: Value<'r>) -> Result<Self> {
                let number = i64::from_value(value)?;
                number.try_into().map_err(|_| malformed("row", format_args!("{number} is out of range")))
            }
        }
    )*};
}

integers!(i32, u32, u64, usize);

impl ToValue for bool {
    fn to_value(&self) -> Value<'_> {
        Value::Integer((*self).into())
    }
}

impl<'r> FromValue<'r> for bool {
    fn from_value(value: Value<'r>) -> Result<Self> {
        Ok(i64::from_value(value)? != 0)
    }
}

impl ToValue for f64 {
    fn to_value(&self) -> Value<'_> {
        Value::Real(*self)
    }
}

impl<'r> FromValue<'r> for f64 {
    fn from_value(value: Value<'r>) -> Result<Self> {
        match value {
            Value::Real(number) => Ok(number),
            #[expect(clippy::cast_precision_loss, reason = "SQLite stores whole numbers as integers")]
            Value::Integer(number) => Ok(number as Self),
            Value::Null | Value::Text(_) | Value::Blob(_) | Value::Path(_) => Err(value.is_not("a number")),
        }
    }
}

impl ToValue for str {
    fn to_value(&self) -> Value<'_> {
        Value::Text(self)
    }
}

impl ToValue for String {
    fn to_value(&self) -> Value<'_> {
        Value::Text(self)
    }
}

impl<'r> FromValue<'r> for &'r str {
    fn from_value(value: Value<'r>) -> Result<Self> {
        match value {
            Value::Text(text) => Ok(text),
            Value::Null | Value::Integer(_) | Value::Real(_) | Value::Blob(_) | Value::Path(_) => {
                Err(value.is_not("text"))
            }
        }
    }
}

impl<'r> FromValue<'r> for String {
    fn from_value(value: Value<'r>) -> Result<Self> {
        <&str>::from_value(value).map(str::to_owned)
    }
}

impl ToValue for [u8] {
    fn to_value(&self) -> Value<'_> {
        Value::Blob(self)
    }
}

impl ToValue for Vec<u8> {
    fn to_value(&self) -> Value<'_> {
        Value::Blob(self)
    }
}

impl<'r> FromValue<'r> for &'r [u8] {
    fn from_value(value: Value<'r>) -> Result<Self> {
        match value {
            Value::Blob(bytes) => Ok(bytes),
            Value::Null | Value::Integer(_) | Value::Real(_) | Value::Text(_) | Value::Path(_) => {
                Err(value.is_not("a blob"))
            }
        }
    }
}

impl<'r> FromValue<'r> for Vec<u8> {
    fn from_value(value: Value<'r>) -> Result<Self> {
        <&[u8]>::from_value(value).map(<[u8]>::to_vec)
    }
}

impl ToValue for Path {
    fn to_value(&self) -> Value<'_> {
        Value::Path(self.as_os_str().as_bytes())
    }
}

impl<'r> FromValue<'r> for PathBuf {
    fn from_value(value: Value<'r>) -> Result<Self> {
        match value {
            Value::Text(text) => Ok(text.into()),
            Value::Blob(bytes) | Value::Path(bytes) => Ok(OsStr::from_bytes(bytes).into()),
            Value::Null | Value::Integer(_) | Value::Real(_) => Err(value.is_not("a path")),
        }
    }
}

impl ToValue for Timestamp {
    fn to_value(&self) -> Value<'_> {
        Value::Integer(self.as_millis())
    }
}

impl<'r> FromValue<'r> for Timestamp {
    fn from_value(value: Value<'r>) -> Result<Self> {
        i64::from_value(value).map(Self::from_millis)
    }
}

/// Durations are stored as whole milliseconds.
impl ToValue for Duration {
    fn to_value(&self) -> Value<'_> {
        Value::Integer(i64::try_from(self.as_millis()).unwrap_or(i64::MAX))
    }
}

impl<'r> FromValue<'r> for Duration {
    fn from_value(value: Value<'r>) -> Result<Self> {
        Ok(Self::from_millis(u64::try_from(i64::from_value(value)?).unwrap_or(0)))
    }
}

impl ToValue for Signal {
    fn to_value(&self) -> Value<'_> {
        Value::Integer(self.number().into())
    }
}

impl ToValue for EndReason {
    fn to_value(&self) -> Value<'_> {
        Value::Text(self.name())
    }
}

impl<'r> FromValue<'r> for Limits {
    fn from_value(value: Value<'r>) -> Result<Self> {
        <&str>::from_value(value)?.parse().map_err(|error| malformed("limits", error))
    }
}

/// Enums that are stored by name, and what an unknown name makes malformed.
macro_rules! words {
    ($($word:ty: $what:literal),* $(,)?) => {$(
        impl ToValue for $word {
            fn to_value(&self) -> Value<'_> {
                Value::Text(self.name())
            }
        }

        impl<'r> FromValue<'r> for $word {
            fn from_value(value: Value<'r>) -> Result<Self> {
                let word = <&str>::from_value(value)?;
                Self::from_name(word).ok_or_else(|| malformed($what, word))
            }
        }
    )*};
}

words! {
    StateName: "state",
    DeadReason: "reason",
    CancelReason: "reason",
    OnMissed: "schedule",
    OnOverlap: "schedule",
    WorkerState: "worker",
}

macro_rules! names {
    ($($name:ty),* $(,)?) => {$(
        impl ToValue for $name {
            fn to_value(&self) -> Value<'_> {
                Value::Text(self.as_str())
            }
        }

        impl<'r> FromValue<'r> for $name {
            fn from_value(value: Value<'r>) -> Result<Self> {
                parse_name(<&str>::from_value(value)?)
            }
        }
    )*};
}

names!(BatchName, HookName, JobId, QueueName, ScheduleName, WorkerId);

fn parse_name<T: FromStr<Err = NameError>>(text: &str) -> Result<T> {
    text.parse().map_err(|error| malformed("name", error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_of_the_wrong_kind_is_malformed_and_says_what_was_expected() {
        let refused = i64::from_value(Value::Text("x")).expect_err("text is no number");
        assert_eq!(
            refused.to_string(),
            "a stored row is malformed: a column contains text instead of an integer"
        );
        assert!(u32::from_value(Value::Integer(-1)).is_err());
        assert!(StateName::from_value(Value::Text("nowhere")).is_err());
        assert!(JobId::from_value(Value::Text("../x")).is_err());
        assert!(<&str>::from_value(Value::Null).is_err());
        assert!(f64::from_value(Value::Blob(b"1")).is_err());
        assert!(Vec::from_value(Value::Integer(1)).is_err());
        assert!(PathBuf::from_value(Value::Integer(1)).is_err());
        assert!(Limits::from_value(Value::Text("memory")).is_err());
    }

    #[test]
    fn a_value_survives_being_stored() {
        assert_eq!(Option::<i64>::from_value(None::<i64>.to_value()).ok(), Some(None));
        assert_eq!(bool::from_value(true.to_value()).ok(), Some(true));
        assert_eq!(usize::MAX.to_value(), Value::Integer(i64::MAX), "a limit that is never reached");
        let span = Duration::from_millis(1_500);
        assert_eq!(Duration::from_value(span.to_value()).ok(), Some(span));
        assert_eq!(f64::from_value(Value::Integer(2)).ok(), Some(2.0));
        for name in [&b"/tmp"[..], b"/\xff"] {
            let path = Path::new(OsStr::from_bytes(name));
            assert_eq!(PathBuf::from_value(path.to_value()).ok().as_deref(), Some(path));
        }
        for state in StateName::ALL {
            assert_eq!(StateName::from_value(state.to_value()).ok(), Some(state));
        }
    }
}
