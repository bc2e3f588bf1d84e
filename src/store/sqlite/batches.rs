//! Batches and the number of their jobs.

use rusqlite::OptionalExtension;

use super::tx::Tx;
use crate::domain::name::BatchName;
use crate::store::StoreError;

pub(super) fn known_id(tx: &Tx<'_>, name: &BatchName) -> Result<Option<i64>, StoreError> {
    let mut select = tx.prepare("select id from batches where name = ?1")?;
    Ok(select.query_row([name.as_str()], |row| row.get(0)).optional()?)
}
