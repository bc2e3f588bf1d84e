//! Jobs that wait while jobs with a higher priority are started.

use super::find;
use crate::Result;
use crate::rows::jobs::row;
use crate::rows::keys::{JobSeq, QueueKey};
use crate::rows::tables::queues;
use crate::rows::tx::Tx;
use crate::rows::{named, params, wording};
use domain::job::Job;
use domain::values::timestamp::Timestamp;

/// The oldest of the least urgent ready jobs of each open queue, if it has been ready since before this time and was
/// overtaken.
pub(crate) fn starved(tx: &Tx<'_>, before: Timestamp) -> Result<Vec<(Job, Timestamp)>> {
    let sql = wording!(
        ("select seq, due_at, priority from ready
          where queue_id = ?1 and priority = (select min(priority) from ready where queue_id = ?1)
          order by due_at, seq limit 1"
            | "select seq, due_at, -rank from ready
               where queue_id = ?1 and rank = (select max(rank) from ready where queue_id = ?1)
               order by due_at, seq limit 1")
    );
    let mut starved = Vec::new();
    for (queue_id, queue) in queues::list_with_keys(tx)? {
        let read = |row: &crate::rows::sql::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
        let least: Option<(JobSeq, Timestamp, i64)> = tx.first(sql.of(tx), params![queue_id], read)?;
        let Some((seq, since, priority)) = least else {
            continue;
        };
        if queue.paused.is_none() && since < before && is_overtaken(tx, queue_id, priority, since)? {
            let job = find::find(tx, &row::by_seq(tx, seq)?.id)?;
            starved.extend(job.map(|job| (job, since)));
        }
    }
    Ok(starved)
}

/// Whether a job of the queue with a higher priority runs that was started after this time.
pub(super) fn is_overtaken(tx: &Tx<'_>, queue_id: QueueKey, priority: i64, since: Timestamp) -> Result<bool> {
    // By index jobs_by_queue.
    let sql = "select 1 from jobs
               where queue_id = :queue_id and state = 'processing' and priority > :priority and started_at > :since limit 1";
    Ok(tx.value::<i64>(sql, named! { queue_id, priority, since })?.is_some())
}
