//! The orders for a worker: a few reads, each by an index.

use super::idle;
use crate::rows::jobs::row::malformed;
use crate::rows::keys::WorkerSeq;
use crate::rows::named;
use crate::rows::tables::workers;
use crate::rows::tables::{deliveries, schedules, stops};
use crate::rows::tx::Tx;
use crate::{CancelOrder, LeaseRef, Orders, Result};
use domain::job::options::JobOptions;
use domain::values::name::WorkerId;
use domain::values::signal::Signal;

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

fn cancelled(tx: &Tx<'_>, worker_seq: WorkerSeq) -> Result<Vec<CancelOrder>> {
    // By index jobs_by_state: few jobs run at a time.
    tx.all(
        "select id, attempts, options from jobs
         where state = 'processing' and worker_seq = :worker_seq and cancel_requested > 0 order by seq",
        named! { worker_seq },
        |row| {
            let lease = LeaseRef { job: row.get("id")?, attempt: row.get("attempts")? };
            let options =
                JobOptions::from_json(row.get("options")?).map_err(|error| malformed("job", error))?;
            let signal = options.requests_for(lease.attempt).signal.and_then(Signal::from_number);
            Ok(CancelOrder { lease, signal: signal.unwrap_or(Signal::TERM) })
        },
    )
}
