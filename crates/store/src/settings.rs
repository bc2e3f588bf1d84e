//! The settings in force: what was set, and defaults for the rest.

use std::collections::BTreeMap;

use super::{Store, StoreError};
use domain::settings::{SettingError, SettingKey, Settings};

pub fn in_force(store: &dyn Store) -> Result<Settings, StoreError> {
    understood(&store.settings()?)
}

/// The settings that these stored values make. One that cannot be understood is named.
pub fn understood(stored: &BTreeMap<SettingKey, String>) -> Result<Settings, StoreError> {
    let values = stored.iter().map(|(key, value)| (*key, value.as_str()));
    Settings::from_stored(values).map_err(|_| bad(stored).expect("one of them was refused"))
}

/// The first of these that cannot be understood.
fn bad(stored: &BTreeMap<SettingKey, String>) -> Option<StoreError> {
    stored.iter().find_map(|(key, value)| problem(*key, value))
}

/// What is wrong with a stored value.
pub fn problem(key: SettingKey, value: &str) -> Option<StoreError> {
    Settings::from_stored([(key, value)]).err().map(|error| bad_setting(key.name(), &error))
}

pub fn bad_setting(key: &str, error: &SettingError) -> StoreError {
    StoreError::BadSetting { key: key.to_owned(), detail: error.to_string() }
}
