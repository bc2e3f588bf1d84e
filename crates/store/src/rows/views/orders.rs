//! The orders for a worker: a few reads, each by an index.

use super::idle;
use crate::rows::keys::WorkerSeq;
use crate::rows::named;
use crate::rows::tables::workers;
use crate::rows::tables::{deliveries, schedules, stops};
use crate::rows::tx::Tx;
use crate::{LeaseRef, Orders, Result};
use domain::values::name::WorkerId;

pub(crate) fn orders(tx: &Tx<'_>, worker: &WorkerId) -> Result<Orders> {
    let known = workers::find(tx, worker)?;
    let stopping = stops::since(tx, &known)?;
    Ok(Orders {
        state: known.state,
        drain: stopping.drain,
        kill_at: stopping.kill_at,
        cancelled: cancelled(tx, known.seq)?,
        settings: tx.settings()?.clone(),
        next_fire: schedules::next_fire(tx)?,
        idle: idle::is_idle(tx, &known.served)?,
        next_delivery: deliveries::next_due(tx)?,
    })
}

fn cancelled(tx: &Tx<'_>, worker_seq: WorkerSeq) -> Result<Vec<LeaseRef>> {
    // By index jobs_by_state: few jobs run at a time.
    tx.all(
        "select id, attempts from jobs
         where state = 'processing' and worker_seq = :worker_seq and cancel_requested > 0 order by seq",
        named! { worker_seq },
        |row| Ok(LeaseRef { job: row.get("id")?, attempt: row.get("attempts")? }),
    )
}
