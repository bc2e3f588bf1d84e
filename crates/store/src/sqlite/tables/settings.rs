//! The settings table.

use std::collections::BTreeMap;

use rusqlite::params;

use super::events;
use crate::StoreError;
use crate::settings::{check_value, from_stored, invalid_setting};
use crate::sqlite::session::row::JobRow;
use crate::sqlite::session::tx::Tx;
use domain::job::life::Policy;
use domain::settings::{SettingError, SettingKey, Settings};

pub(crate) fn stored(tx: &Tx<'_>) -> Result<BTreeMap<SettingKey, String>, StoreError> {
    let mut select = tx.prepare("select key, value from settings")?;
    let rows = select.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get(1)?)))?;
    let mut stored = BTreeMap::new();
    for row in rows {
        let (key, value) = row?;
        stored.insert(key.parse().map_err(|error| invalid_setting(&key, &error))?, value);
    }
    Ok(stored)
}

pub(crate) fn load(tx: &Tx<'_>) -> Result<Settings, StoreError> {
    from_stored(&stored(tx)?)
}

/// Uses the default for an invalid value; otherwise an invalid setting could not be repaired.
fn load_valid(tx: &Tx<'_>) -> Result<Settings, StoreError> {
    let is_valid = |(key, value): &(SettingKey, String)| check_value(*key, value).is_none();
    from_stored(&stored(tx)?.into_iter().filter(is_valid).collect())
}

/// Deletes the row of a setting that this program does not know; `false` if there is none.
pub(crate) fn unset_unknown(tx: &Tx<'_>, key: &str, by: &str) -> Result<bool, StoreError> {
    let deleted = tx.prepare("delete from settings where key = ?1")?.execute([key])?;
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
) -> Result<Result<(), SettingError>, StoreError> {
    let mut settings = load_valid(tx)?;
    let before = settings.get(key);
    let new_value = value.map_or_else(|| Settings::default().get(key), str::to_owned);
    if let Err(error) = settings.set(key, &new_value) {
        return Ok(Err(error));
    }
    match value {
        Some(_) => tx
            .prepare("insert or replace into settings (key, value) values (?1, ?2)")?
            .execute(params![key.name(), settings.get(key)])?,
        None => tx.prepare("delete from settings where key = ?1")?.execute([key.name()])?,
    };
    let detail = format!("{key} = {} (was {before})", settings.get(key));
    events::record(tx, None, "set", by, Some(&detail))?;
    Ok(Ok(()))
}

/// The policy that decides what follows if the job fails now.
pub(crate) fn policy(tx: &Tx<'_>, job: &JobRow) -> Result<Policy, StoreError> {
    let settings = tx.settings()?;
    Ok(Policy {
        backoff: job.options.backoff.unwrap_or_default().or(&settings.backoff),
        crash_limit: settings.crash_limit,
        retry: job.options.retry,
        roll: fastrand::f64(),
    })
}
