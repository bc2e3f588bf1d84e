//! Settings with where their values come from.

use super::OpError;
use super::worker::announce;
use domain::settings::{SettingKey, Settings};
use domain::text::shell::quote_words;
use store::settings::check_value;
use store::{Store, StoreError};

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
    /// Whether the stored value can be understood.
    pub is_valid: bool,
}

/// The next command where a stored setting cannot be understood.
pub fn how_to_repair(key: &str) -> String {
    let word = quote_words(&[key.to_owned()]);
    format!(
        "`queuectl config unset {word}` goes back to the default, `queuectl config set` gives it another value"
    )
}

pub fn list(store: &dyn Store) -> Result<Vec<Setting>, StoreError> {
    let stored = store.settings()?;
    let defaults = Settings::default();
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
    Ok(settings.into_iter().find(|setting| setting.key == key).expect("every key is listed"))
}

/// Sets a setting, or unsets it, and returns it as it is now.
pub fn set(store: &dyn Store, key: SettingKey, value: Option<&str>, by: &str) -> Result<Setting, OpError> {
    store.set(key, value, by)??;
    announce::to_all(store)?;
    Ok(get(store, key)?)
}

/// Unsets what no setting of this program is called, if it was set.
pub fn unset_unknown(store: &dyn Store, key: &str, by: &str) -> Result<bool, StoreError> {
    let was_set = store.unset_unknown(key, by)?;
    if was_set {
        announce::to_all(store)?;
    }
    Ok(was_set)
}
