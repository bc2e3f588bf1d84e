//! The effective settings: stored values, and defaults for the rest.

use std::collections::BTreeMap;

use super::{Store, StoreError};
use domain::settings::{SettingError, SettingKey, Settings};

pub fn in_force(store: &dyn Store) -> Result<Settings, StoreError> {
    from_stored(&store.settings()?)
}

/// The effective settings for these stored values, or an error that names the invalid one.
pub fn from_stored(stored: &BTreeMap<SettingKey, String>) -> Result<Settings, StoreError> {
    let values = stored.iter().map(|(key, value)| (*key, value.as_str()));
    Settings::from_stored(values)
        .map_err(|_| first_invalid(stored).expect("an invalid value was found before"))
}

/// The error for the first invalid value.
fn first_invalid(stored: &BTreeMap<SettingKey, String>) -> Option<StoreError> {
    stored.iter().find_map(|(key, value)| check_value(*key, value))
}

/// The error for a stored value, if it is invalid.
pub fn check_value(key: SettingKey, value: &str) -> Option<StoreError> {
    Settings::from_stored([(key, value)]).err().map(|error| invalid_setting(key.name(), &error))
}

pub fn invalid_setting(key: &str, error: &SettingError) -> StoreError {
    StoreError::BadSetting { key: key.to_owned(), detail: error.to_string() }
}
