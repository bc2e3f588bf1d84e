//! The effective settings: stored values, and defaults for the rest.

use std::collections::BTreeMap;

use crate::rows::tables::settings;
use crate::{Result, Store, StoreError, WriteError};
use domain::settings::{SettingError, SettingKey, Settings};

impl dyn Store + '_ {
    /// The stored settings, as text.
    pub fn settings(&self) -> Result<BTreeMap<SettingKey, String>> {
        self.view(settings::stored)
    }

    /// Sets or unsets a setting; checked against the other settings in the same transaction.
    pub fn set(
        &self,
        key: SettingKey,
        value: Option<&str>,
        by: &str,
    ) -> Result<(), WriteError<SettingError>> {
        self.transact("set", |tx| settings::set(tx, key, value, by))?;
        Ok(self.adopt_settings()?)
    }

    /// Deletes a stored setting whose key this program does not know; `false` if there is none.
    pub fn unset_unknown(&self, key: &str, by: &str) -> Result<bool> {
        self.transact("set", |tx| settings::unset_unknown(tx, key, by))
    }
}

pub fn in_force(store: &dyn Store) -> Result<Settings> {
    from_stored(store.default_settings(), &store.settings()?)
}

/// The effective settings for these stored values over the defaults of their store, or an error that names the invalid one.
pub fn from_stored(defaults: Settings, stored: &BTreeMap<SettingKey, String>) -> Result<Settings> {
    let values = stored.iter().map(|(key, value)| (*key, value.as_str()));
    Settings::from_stored(defaults, values)
        .map_err(|_| first_invalid(stored).expect("an invalid value was found before"))
}

/// The error for the first invalid value.
fn first_invalid(stored: &BTreeMap<SettingKey, String>) -> Option<StoreError> {
    stored.iter().find_map(|(key, value)| check_value(*key, value))
}

/// The error for a stored value, if it is invalid.
pub fn check_value(key: SettingKey, value: &str) -> Option<StoreError> {
    Settings::from_stored(Settings::default(), [(key, value)])
        .err()
        .map(|error| invalid_setting(key.name(), &error))
}

pub fn invalid_setting(key: &str, error: &SettingError) -> StoreError {
    StoreError::BadSetting { key: key.to_owned(), detail: error.to_string() }
}
