//! Attempts that were running when a backup was made. Their workers belong to another queue, so the attempts are lost,
//! as if their worker had died; but this is no fault of the jobs, so the loss does not count against them.

use crate::rows::jobs::leases;
use crate::rows::keys::WorkerSeq;
use crate::rows::named;
use crate::rows::tables::{events, workers};
use crate::rows::tx::Tx;
use crate::{Result, WorkerState};
use domain::job::life::{LossContext, NO_BOOT};

/// Takes back every lease and records the restore. Returns the number of leases.
pub(super) fn lose_all(tx: &mut Tx<'_>, by: &str, stamp: &str) -> Result<u64> {
    let mut lost = 0;
    for worker_seq in clear_boot_ids(tx)? {
        for job in leases::held_by(tx, worker_seq)? {
            let why = "the queue was restored from a backup".to_owned();
            lost += u64::from(leases::lose(tx, &job, worker_seq, why, LossContext::Others)?);
        }
        workers::set_state(tx, worker_seq, WorkerState::Stopped)?;
    }
    events::record(tx, None, "restore", by, Some(stamp))?;
    Ok(lost)
}

/// Clears the boot id of every worker that has not stopped: see [`NO_BOOT`].
fn clear_boot_ids(tx: &Tx<'_>) -> Result<Vec<WorkerSeq>> {
    tx.values(
        "update workers set boot_id = :boot_id where state <> 'stopped' returning seq",
        named! { boot_id: NO_BOOT },
    )
}
