//! Reads the fields of a spec that have a check of their own from JSON.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};

use super::check::{
    check_command, check_cwd, check_depends_on, check_tags, check_unique_key, check_variable,
};
use crate::json::check;
use crate::values::name::JobId;

pub(super) fn command<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    check(check_command(String::deserialize(deserializer)?)).map(Some)
}

pub(super) fn unique_key<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    check(check_unique_key(String::deserialize(deserializer)?)).map(Some)
}

pub(super) fn cwd<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    check(check_cwd(String::deserialize(deserializer)?)).map(Some)
}

pub(super) fn tags<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    check(check_tags(Vec::deserialize(deserializer)?))
}

pub(super) fn depends_on<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<JobId>, D::Error> {
    check(check_depends_on(Vec::deserialize(deserializer)?))
}

/// A duplicate name is an error.
pub(super) fn env<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, String>, D::Error> {
    struct VariablesVisitor;

    impl<'de> Visitor<'de> for VariablesVisitor {
        type Value = BTreeMap<String, String>;

        fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
            out.write_str("an object of strings")
        }

        fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
            let mut variables = BTreeMap::new();
            while let Some((name, value)) = map.next_entry::<String, String>()? {
                let (name, value) = check(check_variable(name, value))?;
                if variables.insert(name.clone(), value).is_some() {
                    return Err(M::Error::custom(format_args!("`{name}` is given twice")));
                }
            }
            Ok(variables)
        }
    }

    deserializer.deserialize_map(VariablesVisitor)
}
