//! The settings table.

use std::collections::BTreeMap;

use rusqlite::params;

use super::events;
use crate::StoreError;
use crate::settings::{bad_setting, problem, understood};
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
        stored.insert(key.parse().map_err(|error| bad_setting(&key, &error))?, value);
    }
    Ok(stored)
}

pub(crate) fn load(tx: &Tx<'_>) -> Result<Settings, StoreError> {
    understood(&stored(tx)?)
}

/// Takes the default for a value that cannot be understood: else it would be in the way of its own repair.
fn load_what_can_be(tx: &Tx<'_>) -> Result<Settings, StoreError> {
    let is_fine = |(key, value): &(SettingKey, String)| problem(*key, value).is_none();
    understood(&stored(tx)?.into_iter().filter(is_fine).collect())
}

/// Deletes a row that no setting of this program has. Gives whether there was one.
pub(crate) fn unset_unknown(tx: &Tx<'_>, key: &str, by: &str) -> Result<bool, StoreError> {
    let deleted = tx.prepare("delete from settings where key = ?1")?.execute([key])?;
    if deleted > 0 {
        events::note(tx, None, "set", by, Some(&format!("{key} is unknown, and was unset")))?;
    }
    Ok(deleted > 0)
}

pub(crate) fn set(
    tx: &Tx<'_>,
    key: SettingKey,
    value: Option<&str>,
    by: &str,
) -> Result<Result<(), SettingError>, StoreError> {
    let mut settings = load_what_can_be(tx)?;
    let before = settings.get(key);
    let wanted = value.map_or_else(|| Settings::default().get(key), str::to_owned);
    if let Err(error) = settings.set(key, &wanted) {
        return Ok(Err(error));
    }
    match value {
        Some(_) => tx
            .prepare("insert or replace into settings (key, value) values (?1, ?2)")?
            .execute(params![key.name(), settings.get(key)])?,
        None => tx.prepare("delete from settings where key = ?1")?.execute([key.name()])?,
    };
    let detail = format!("{key} = {} (was {before})", settings.get(key));
    events::note(tx, None, "set", by, Some(&detail))?;
    Ok(Ok(()))
}

/// What decides the future of a job that fails now.
pub(crate) fn policy(tx: &Tx<'_>, job: &JobRow) -> Result<Policy, StoreError> {
    let settings = tx.settings()?;
    Ok(Policy {
        backoff: job.options.backoff.unwrap_or_default().or(&settings.backoff),
        crash_limit: settings.crash_limit,
        retry: job.options.retry,
        roll: fastrand::f64(),
    })
}
