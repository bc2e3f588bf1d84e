//! Settings with where their values come from.

use super::{OpError, announce};
use crate::domain::settings::{SettingKey, Settings};
use crate::store::{Store, StoreError};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingOrigin {
    Default,
    /// Somebody set it.
    Store,
}

impl SettingOrigin {
    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Store => "store",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    pub key: SettingKey,
    pub value: String,
    pub default: String,
    pub origin: SettingOrigin,
}

pub fn list(store: &dyn Store) -> Result<Vec<Setting>, StoreError> {
    let stored = store.settings()?;
    let defaults = Settings::default();
    let setting = |key: SettingKey| {
        let default = defaults.get(key);
        match stored.get(&key) {
            Some(value) => Setting { key, value: value.clone(), default, origin: SettingOrigin::Store },
            None => Setting { key, value: default.clone(), default, origin: SettingOrigin::Default },
        }
    };
    Ok(SettingKey::ALL.into_iter().map(setting).collect())
}

pub fn get(store: &dyn Store, key: SettingKey) -> Result<Setting, StoreError> {
    let settings = list(store)?;
    Ok(settings.into_iter().find(|setting| setting.key == key).expect("every key is listed"))
}

/// Sets a setting, or unsets it, and returns it as it is now.
pub fn set(store: &dyn Store, key: SettingKey, value: Option<&str>, by: &str) -> Result<Setting, OpError> {
    store.set(key, value, by)??;
    announce::to_all(store)?;
    Ok(get(store, key)?)
}
