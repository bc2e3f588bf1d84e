//! What was running when a backup was made. Whoever ran it knows another queue, so it is lost, like the work of a worker
//! that died; but that was no fault of the jobs, so it brings none of them nearer to its end.

use crate::sqlite::jobs::leases;
use crate::sqlite::session::tx::Tx;
use crate::sqlite::tables::{events, workers};
use crate::{StoreError, WorkerState};
use domain::job::life::{LossContext, NO_BOOT};

/// Takes back every lease, and says in whose name, and by which restore. Gives how many there were.
pub(in crate::sqlite) fn lose_all(tx: &Tx<'_>, by: &str, stamp: &str) -> Result<u64, StoreError> {
    let mut lost = 0;
    for worker_seq in disown_all(tx)? {
        for job in leases::held_by(tx, worker_seq)? {
            let why = "the queue was restored from a backup".to_owned();
            lost += u64::from(leases::lose(tx, &job, worker_seq, why, LossContext::Others)?);
        }
        workers::set_state(tx, worker_seq, WorkerState::Stopped)?;
    }
    events::note(tx, None, "restore", by, Some(stamp))?;
    Ok(lost)
}

/// Takes the boot from every worker that has not stopped: see [`NO_BOOT`].
fn disown_all(tx: &Tx<'_>) -> Result<Vec<i64>, StoreError> {
    let mut update = tx.prepare("update workers set boot_id = ?1 where state <> 'stopped' returning seq")?;
    let rows = update.query_map([NO_BOOT], |row| row.get(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}
