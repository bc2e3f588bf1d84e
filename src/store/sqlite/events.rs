//! What people did.

use rusqlite::params;

use super::tx::Tx;
use crate::domain::job::JobEvent;
use crate::domain::timestamp::Timestamp;
use crate::store::StoreError;

/// Notes what somebody did, to a job where `seq` names one.
pub(super) fn note(
    tx: &Tx<'_>,
    seq: Option<i64>,
    event: &str,
    by: &str,
    detail: Option<&str>,
) -> Result<(), StoreError> {
    tx.prepare("insert into events (at, seq, event, by, detail) values (?1, ?2, ?3, ?4, ?5)")?
        .execute(params![tx.now.as_millis(), seq, event, by, detail])?;
    Ok(())
}

pub(super) fn of_job(tx: &Tx<'_>, seq: i64) -> Result<Vec<JobEvent>, StoreError> {
    // By index events_by_job.
    let mut select = tx.prepare("select at, event, by from events where seq = ?1 order by id")?;
    let rows = select.query_map([seq], |row| {
        Ok(JobEvent { at: Timestamp::from_millis(row.get(0)?), event: row.get(1)?, by: row.get(2)? })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}
