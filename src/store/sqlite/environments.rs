//! Environments of callers, each distinct one stored once.

use rusqlite::{OptionalExtension, params};

use super::tx::Tx;
use crate::domain::environment::Environment;
use crate::store::StoreError;

/// The number of an environment, which is stored if it is new.
pub(super) fn id(tx: &Tx<'_>, environment: &Environment) -> Result<i64, StoreError> {
    let variables = environment.to_bytes();
    let fingerprint = fingerprint(&variables);
    // By index environments_by_fingerprint.
    let known = tx
        .prepare("select id from environments where fingerprint = ?1 and variables = ?2")?
        .query_row(params![fingerprint, variables], |row| row.get(0))
        .optional()?;
    if let Some(id) = known {
        return Ok(id);
    }
    let mut insert = tx.prepare("insert into environments (fingerprint, variables) values (?1, ?2)")?;
    Ok(insert.insert(params![fingerprint, variables])?)
}

pub(super) fn load(tx: &Tx<'_>, id: i64) -> Result<Environment, StoreError> {
    let mut select = tx.prepare("select variables from environments where id = ?1")?;
    let environment =
        select.query_row([id], |row| Ok(Environment::from_bytes(row.get_ref(0)?.as_blob()?)))?;
    Ok(environment)
}

/// FNV-1a: only narrows the search, the bytes themselves are compared.
fn fingerprint(bytes: &[u8]) -> i64 {
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    hash.cast_signed()
}
