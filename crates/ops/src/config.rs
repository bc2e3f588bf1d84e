//! Reading and changing settings, with the origin of each value.

use serde::Serialize;

use super::OpError;
use domain::settings::SettingKey;
use domain::text::shell::quote_words;
use store::settings::check_value;
use store::{Notice, Store, StoreError};

domain::named_enum! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum SettingOrigin {
        Default = "default",
        /// Set explicitly.
        Store = "store",
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Setting {
    pub key: SettingKey,
    pub value: String,
    pub default: String,
    pub origin: SettingOrigin,
    /// Whether the stored value can be parsed.
    #[serde(skip)]
    pub is_valid: bool,
}

/// The hint for a stored setting that cannot be parsed.
pub fn how_to_repair(key: &str) -> String {
    let word = quote_words(&[key.to_owned()]);
    format!("`queuectl config unset {word}` restores the default, `queuectl config set` changes the value")
}

pub fn list(store: &dyn Store) -> Result<Vec<Setting>, StoreError> {
    let stored = store.settings()?;
    let defaults = store.default_settings();
    let setting = |key: SettingKey| {
        let default = defaults.get(key);
        let (value, origin) = match stored.get(&key) {
            Some(value) => (value.clone(), SettingOrigin::Store),
            None => (default.clone(), SettingOrigin::Default),
        };
        Setting { key, is_valid: check_value(key, &value).is_none(), value, default, origin }
    };
    Ok(SettingKey::ALL.into_iter().map(setting).collect())
}

pub fn get(store: &dyn Store, key: SettingKey) -> Result<Setting, StoreError> {
    let settings = list(store)?;
    Ok(settings.into_iter().find(|setting| setting.key == key).expect("`list` returns every key"))
}

/// Sets a setting, or unsets it if `value` is `None`, and returns its new value.
pub fn set(store: &dyn Store, key: SettingKey, value: Option<&str>, by: &str) -> Result<Setting, OpError> {
    store.set(key, value, by)?;
    store.announce(Notice::Orders)?;
    Ok(get(store, key)?)
}

/// Unsets a stored setting whose key this program does not know. Returns whether it was set.
pub fn unset_unknown(store: &dyn Store, key: &str, by: &str) -> Result<bool, StoreError> {
    let was_set = store.unset_unknown(key, by)?;
    if was_set {
        store.announce(Notice::Orders)?;
    }
    Ok(was_set)
}
