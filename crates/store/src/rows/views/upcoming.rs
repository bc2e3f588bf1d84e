//! What happens next: waiting jobs and schedules, each in the order of an index.

use crate::rows::jobs::row::{read_job, select_whole_jobs};
use crate::rows::keys::JobSeq;
use crate::rows::named;
use crate::rows::tables::schedules;
use crate::rows::tx::Tx;
use crate::{Result, Upcoming};
use domain::values::timestamp::Timestamp;

pub(crate) fn upcoming(tx: &Tx<'_>, limit: usize) -> Result<Upcoming> {
    // By the primary key.
    let numbers: Vec<JobSeq> = tx.values(
        "select seq from waiting where due_at >= :first order by due_at, seq limit :limit",
        named! { first: Timestamp::MIN, limit },
    )?;
    let job = |number| {
        tx.one(select_whole_jobs!("where j.seq = :number"), named! { number }, |row| read_job(tx, row))
    };
    let jobs = numbers.into_iter().map(job).collect::<Result<_, _>>()?;
    let schedules = schedules::next(tx, limit)?.into_iter().map(|row| row.schedule).collect();
    Ok(Upcoming { jobs, schedules })
}
