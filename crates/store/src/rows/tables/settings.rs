//! The settings table.

use std::collections::BTreeMap;

use super::{events, moving};
use crate::rows::jobs::row::JobRow;
use crate::rows::tx::Tx;
use crate::rows::{named, params};
use crate::settings::{check_value, from_stored, invalid_setting};
use crate::{Result, WriteError};
use domain::job::life::Policy;
use domain::settings::{SettingError, SettingKey, Settings};

/// With the marks of a queue that moves, so that a transaction asks once for both.
pub(crate) const ALL: &str = "select key, value from settings";

pub(crate) fn stored(tx: &Tx<'_>) -> Result<BTreeMap<SettingKey, String>> {
    let mut stored = BTreeMap::new();
    tx.query(ALL, params![], &mut |row| {
        let key: &str = row.get(0)?;
        if !moving::is_reserved(key) {
            stored.insert(key.parse().map_err(|error| invalid_setting(key, &error))?, row.get(1)?);
        }
        Ok(true)
    })?;
    Ok(stored)
}

pub(crate) fn load(tx: &Tx<'_>) -> Result<Settings> {
    from_stored(tx.default_settings(), &stored(tx)?)
}

/// Uses the default for an invalid value; otherwise an invalid setting could not be repaired.
fn load_valid(tx: &Tx<'_>) -> Result<Settings> {
    let is_valid = |(key, value): &(SettingKey, String)| check_value(*key, value).is_none();
    from_stored(tx.default_settings(), &stored(tx)?.into_iter().filter(is_valid).collect())
}

/// Deletes the row of a setting that this program does not know; `false` if there is none.
pub(crate) fn unset_unknown(tx: &Tx<'_>, key: &str, by: &str) -> Result<bool> {
    if moving::is_reserved(key) {
        return Ok(false);
    }
    let deleted = tx.execute("delete from settings where key = :key", named! { key })?;
    if deleted > 0 {
        events::record(tx, None, "set", by, Some(&format!("unknown setting {key} was unset")))?;
    }
    Ok(deleted > 0)
}

pub(crate) fn set(
    tx: &Tx<'_>,
    key: SettingKey,
    value: Option<&str>,
    by: &str,
) -> Result<(), WriteError<SettingError>> {
    let mut settings = load_valid(tx)?;
    let before = settings.get(key);
    let new_value = value.map_or_else(|| tx.default_settings().get(key), str::to_owned);
    settings.set(key, &new_value).map_err(WriteError::Refused)?;
    match value {
        Some(_) => tx.execute(
            "insert into settings (key, value) values (:key, :value)
             on conflict (key) do update set value = excluded.value",
            named! { key: key.name(), value: settings.get(key) },
        )?,
        None => tx.execute("delete from settings where key = :key", named! { key: key.name() })?,
    };
    let detail = format!("{key} = {} (was {before})", settings.get(key));
    Ok(events::record(tx, None, "set", by, Some(&detail))?)
}

/// The policy that decides what follows if the job fails now.
pub(crate) fn policy(tx: &Tx<'_>, job: &JobRow) -> Result<Policy> {
    let settings = tx.settings()?;
    Ok(Policy {
        backoff: job.options.backoff.unwrap_or_default().or(&settings.backoff),
        crash_limit: settings.crash_limit,
        retry: job.options.retry(),
        roll: fastrand::f64(),
    })
}
