//! Values whose form in a column differs from that in JSON: see [`crate::transfer`].

use std::mem;
use std::num::TryFromIntError;
use std::ops::Deref;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Map;

use crate::Result;
use crate::rows::value::{FromValue, ToValue, Value, malformed};

/// A number that is neither negative nor too large for a column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u64")]
pub struct Count(i64);

impl Count {
    /// The largest instead of one that is too large.
    pub(crate) fn of(number: u64) -> Self {
        Self(i64::try_from(number).unwrap_or(i64::MAX))
    }

    pub(crate) fn get(self) -> u64 {
        self.0.unsigned_abs()
    }

    pub(crate) fn add(&mut self, number: u64) {
        self.0 = self.0.saturating_add_unsigned(number);
    }
}

impl TryFrom<u64> for Count {
    type Error = TryFromIntError;

    fn try_from(number: u64) -> Result<Self, TryFromIntError> {
        number.try_into().map(Self)
    }
}

impl ToValue for Count {
    fn to_value(&self) -> Value<'_> {
        self.0.to_value()
    }
}

impl<'r> FromValue<'r> for Count {
    fn from_value(value: Value<'r>) -> Result<Self> {
        i64::from_value(value).map(Self)
    }
}

/// Bytes: base64 in a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bytes(pub Vec<u8>);

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        STANDARD.decode(String::deserialize(deserializer)?).map(Self).map_err(D::Error::custom)
    }
}

impl ToValue for Bytes {
    fn to_value(&self) -> Value<'_> {
        self.0.to_value()
    }
}

impl<'r> FromValue<'r> for Bytes {
    fn from_value(value: Value<'r>) -> Result<Self> {
        Vec::from_value(value).map(Self)
    }
}

/// A list or an object: JSON text in a column; null if it is empty.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Json<T> {
    value: T,
    #[serde(skip)]
    text: Option<String>,
}

impl<T> Json<T> {
    pub fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }
}

impl Json<Map<String, serde_json::Value>> {
    pub fn remove(&mut self, key: &str) {
        self.value.remove(key);
        *self = mem::take(&mut self.value).into();
    }
}

impl<T: Serialize + Default + PartialEq> From<T> for Json<T> {
    fn from(value: T) -> Self {
        let text = (value != T::default())
            .then(|| serde_json::to_string(&value).expect("lists and objects serialize to JSON"));
        Self { value, text }
    }
}

impl<T> Deref for Json<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<'de, T: Deserialize<'de> + Serialize + Default + PartialEq> Deserialize<'de> for Json<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(deserializer).map(Self::from)
    }
}

impl<T> ToValue for Json<T> {
    fn to_value(&self) -> Value<'_> {
        self.text.to_value()
    }
}

impl<'r, T: DeserializeOwned + Default> FromValue<'r> for Json<T> {
    fn from_value(value: Value<'r>) -> Result<Self> {
        let text = Option::<String>::from_value(value)?;
        let value = text.as_deref().map(serde_json::from_str).transpose();
        Ok(Self { value: value.map_err(|error| malformed("JSON", error))?.unwrap_or_default(), text })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_json_is_null_in_a_column() {
        let mut json: Json<Map<String, serde_json::Value>> =
            serde_json::from_str(r#"{"env":1}"#).expect("JSON");
        assert_eq!(json.to_value(), Value::Text(r#"{"env":1}"#));
        assert_eq!(Json::from_value(json.to_value()).expect("it reads back"), json);
        json.remove("env");
        assert_eq!((json.to_value(), &*serde_json::to_string(&json).expect("JSON")), (Value::Null, "{}"));
        assert_eq!(Json::from_value(Value::Null).expect("it reads back"), json);
        assert!(Json::<Vec<String>>::from_value(Value::Text("[1]")).is_err());
    }

    #[test]
    fn a_count_that_no_column_can_hold_is_refused() {
        let count = |text: &str| serde_json::from_str::<Count>(text);
        assert_eq!(count("9223372036854775807").expect("a count").to_value(), Value::Integer(i64::MAX));
        assert!(count("9223372036854775808").is_err() && count("-1").is_err());
    }
}
