//! Processes of running attempts that could not be killed.

use rusqlite::params;

use crate::sqlite::session::row;
use crate::sqlite::session::tx::Tx;
use crate::{LeaseRef, StoreError, UnkillableProcess};
use domain::job::life::StateName;

/// Records these, and deletes those whose attempt has ended.
pub(crate) fn record(tx: &Tx<'_>, found: &[UnkillableProcess]) -> Result<(), StoreError> {
    tx.prepare(
        "delete from unkillable
         where not exists (select 1 from jobs j where j.seq = unkillable.seq and j.attempts = unkillable.attempt
                                                      and j.state = 'processing')",
    )?
    .execute([])?;
    for UnkillableProcess { lease: LeaseRef { job, attempt }, pid, start_time, why } in found {
        let job = row::by_id(tx, job)?;
        let is_current = |job: &row::JobRow| {
            job.life.attempts == *attempt && job.life.state.name() == StateName::Processing
        };
        let Some(job) = job.filter(is_current) else {
            continue;
        };
        tx.prepare(
            "insert or replace into unkillable (seq, attempt, pid, start_time, why) values (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute(params![job.seq, attempt, pid, start_time.cast_signed(), why])?;
    }
    Ok(())
}

pub(crate) fn list(tx: &Tx<'_>) -> Result<Vec<UnkillableProcess>, StoreError> {
    // A handful at most; each is looked up in `jobs` by number.
    let mut select = tx.prepare(
        "select j.id, attempt, pid, start_time, why
         from unkillable cross join jobs j on j.seq = unkillable.seq
         where j.attempts = attempt and j.state = 'processing' order by unkillable.seq, pid",
    )?;
    let mut rows = select.query([])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let lease = LeaseRef { job: row::name(row, 0)?, attempt: row.get(1)? };
        let start_time = row.get::<_, i64>(3)?.cast_unsigned();
        found.push(UnkillableProcess { lease, pid: row.get(2)?, start_time, why: row.get(4)? });
    }
    Ok(found)
}
