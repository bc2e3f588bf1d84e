//! Environments of callers, each distinct one stored once.

use std::sync::Arc;

use crate::Result;
use crate::rows::keys::EnvironmentKey;
use crate::rows::tx::Tx;
use crate::rows::{Dialect, params};
use domain::job::environment::Environment;

/// By index environments_by_fingerprint.
pub(crate) const FIND: &str = "select id from environments where fingerprint = ?1 and variables = ?2";

/// The row id of an environment, which is stored if it is new.
pub(crate) fn id(tx: &Tx<'_>, environment: &Environment) -> Result<EnvironmentKey> {
    let variables = environment.to_bytes();
    let fingerprint = fingerprint(&variables);
    let known = if can_compare(tx)? { tx.value(FIND, params![fingerprint, variables])? } else { None };
    match known {
        Some(id) => Ok(id),
        None => tx.one(
            "insert into environments (fingerprint, variables) values (?1, ?2) returning id",
            params![fingerprint, variables],
            |row| row.get(0),
        ),
    }
}

/// On PostgreSQL.
pub(crate) const CAN_COMPARE: &str = "values (has_column_privilege('environments', 'variables', 'select'))";

/// A role that can only enqueue must not read environments, so it cannot find one that is the same as its own either.
fn can_compare(tx: &Tx<'_>) -> Result<bool> {
    match tx.dialect() {
        Dialect::Sqlite => Ok(true),
        Dialect::Postgres => tx.one(CAN_COMPARE, params![], |row| row.get(0)),
    }
}

/// An environment read from the store.
#[derive(Clone, Debug)]
pub(crate) struct CachedEnvironment {
    id: EnvironmentKey,
    fingerprint: i64,
    environment: Arc<Environment>,
}

pub(crate) const FINGERPRINT: &str = "select fingerprint from environments where id = ?1";
pub(crate) const VARIABLES: &str = "select variables from environments where id = ?1";

/// The environment with this row id. Reading one takes dozens of allocations, and most jobs share the environment of
/// the previous job, so the last one is cached.
pub(crate) fn load(tx: &Tx<'_>, id: EnvironmentKey) -> Result<Arc<Environment>> {
    let is_checked = tx.checked_environment.get() == Some(id);
    if let Some(checked) = tx.last_environment.borrow().as_ref().filter(|known| is_checked && known.id == id)
    {
        return Ok(Arc::clone(&checked.environment));
    }
    tx.checked_environment.set(Some(id));
    let fingerprint: i64 = tx.one(FINGERPRINT, params![id], |row| row.get(0))?;
    let mut last = tx.last_environment.borrow_mut();
    if let Some(known) = last.as_ref().filter(|known| known.id == id && known.fingerprint == fingerprint) {
        return Ok(Arc::clone(&known.environment));
    }
    let environment = Arc::new(read(tx, id)?);
    *last = Some(CachedEnvironment { id, fingerprint, environment: Arc::clone(&environment) });
    Ok(environment)
}

fn read(tx: &Tx<'_>, id: EnvironmentKey) -> Result<Environment> {
    tx.one(VARIABLES, params![id], |row| Ok(Environment::from_bytes(row.get(0)?)))
}

/// FNV-1a: only narrows the search; the bytes are compared as well.
pub(crate) fn fingerprint(bytes: &[u8]) -> i64 {
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    hash.cast_signed()
}
