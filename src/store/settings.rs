//! The settings in force: what was set, and defaults for the rest.

use super::{Store, StoreError};
use crate::domain::settings::Settings;

pub fn in_force(store: &dyn Store) -> Result<Settings, StoreError> {
    let stored = store.settings()?;
    Settings::from_stored(stored.iter().map(|(key, value)| (*key, value.as_str())))
        .map_err(|error| StoreError::Malformed { what: "setting", detail: error.to_string() })
}
