//! Reads the fields of a spec that have a check of their own from JSON. `null` means absent, except for the command.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};

use super::check::{
    check_command, check_cwd, check_depends_on, check_name, check_tags, check_unique_key, check_variable,
};
use crate::job::priority::Priority;
use crate::json::{check, given};
use crate::values::name::JobId;

pub(super) fn command<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    check(check_command(String::deserialize(deserializer)?)).map(Some)
}

pub(super) fn name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    check(given(deserializer)?.map(check_name).transpose())
}

pub(super) fn priority<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i32>, D::Error> {
    Ok(given::<Priority, _>(deserializer)?.map(|priority| priority.0))
}

pub(super) fn unique_key<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    check(given(deserializer)?.map(check_unique_key).transpose())
}

pub(super) fn cwd<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    check(given(deserializer)?.map(check_cwd).transpose())
}

pub(super) fn tags<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    check(check_tags(given(deserializer)?.unwrap_or_default()))
}

pub(super) fn depends_on<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<JobId>, D::Error> {
    check(check_depends_on(given(deserializer)?.unwrap_or_default()))
}

/// A duplicate name is an error.
pub(super) fn env<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, String>, D::Error> {
    #[derive(Default)]
    struct Variables(BTreeMap<String, String>);

    impl<'de> Deserialize<'de> for Variables {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_map(VariablesVisitor)
        }
    }

    struct VariablesVisitor;

    impl<'de> Visitor<'de> for VariablesVisitor {
        type Value = Variables;

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
            Ok(Variables(variables))
        }
    }

    Ok(given::<Variables, _>(deserializer)?.unwrap_or_default().0)
}
