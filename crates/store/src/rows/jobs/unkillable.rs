//! Processes of running attempts that could not be killed.

use crate::rows::jobs::row;
use crate::rows::tx::Tx;
use crate::rows::{named, params};
use crate::{LeaseRef, Result, UnkillableProcess};
use domain::job::life::StateName;

/// Records these, and deletes those whose attempt has ended.
pub(crate) fn record(tx: &Tx<'_>, found: &[UnkillableProcess]) -> Result<()> {
    tx.execute(
        "delete from unkillable
         where not exists (select 1 from jobs j where j.seq = unkillable.seq and j.attempts = unkillable.attempt
                                                      and j.state = 'processing')",
        params![],
    )?;
    for UnkillableProcess { lease: LeaseRef { job, attempt }, pid, start_time, why } in found {
        let job = row::by_id(tx, job)?;
        let is_current = |job: &row::JobRow| {
            job.life.attempts == *attempt && job.life.state.name() == StateName::Processing
        };
        let Some(job) = job.filter(is_current) else {
            continue;
        };
        tx.execute(
            "insert into unkillable (seq, attempt, pid, start_time, why)
             values (:seq, :attempt, :pid, :start_time, :why)
             on conflict (seq, pid)
             do update set attempt = excluded.attempt, start_time = excluded.start_time, why = excluded.why",
            named! { seq: job.seq, attempt, pid, start_time: start_time.cast_signed(), why },
        )?;
    }
    Ok(())
}

pub(crate) fn list(tx: &Tx<'_>) -> Result<Vec<UnkillableProcess>> {
    // A handful at most; each is looked up in `jobs` by number.
    tx.all(
        "select j.id, attempt, pid, start_time, why
         from unkillable cross join jobs j
         where j.seq = unkillable.seq and j.attempts = attempt and j.state = 'processing' order by unkillable.seq, pid",
        params![],
        |row| {
            Ok(UnkillableProcess {
                lease: LeaseRef { job: row.get("id")?, attempt: row.get("attempt")? },
                pid: row.get("pid")?,
                start_time: row.get::<i64>("start_time")?.cast_unsigned(),
                why: row.get("why")?,
            })
        },
    )
}
