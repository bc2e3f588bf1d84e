//! The orders for a worker: a few reads, each by an index.

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
    let stopping = stops::since(tx, worker, &known)?;
    let AttemptOrders { cancelled, paused } = attempt_orders(tx, known.seq)?;
    Ok(Orders {
        state: known.state,
        drain: stopping.drain,
        kill_at: stopping.kill_at,
        cancelled,
        paused,
        settings: tx.settings()?.clone(),
        next_fire: schedules::next_fire(tx)?,
        next_delivery: deliveries::next_due(tx)?,
    })
}

/// What users asked of the attempts of a worker.
#[derive(Default)]
struct AttemptOrders {
    cancelled: Vec<CancelOrder>,
    paused: Vec<LeaseRef>,
}

fn attempt_orders(tx: &Tx<'_>, worker_seq: WorkerSeq) -> Result<AttemptOrders> {
    // By index jobs_by_state: few jobs run at a time. The options are parsed only where they may contain requests.
    let found = tx.all(
        "select id, attempts, cancel_requested, options from jobs
         where state = 'processing' and worker_seq = :worker_seq
               and (cancel_requested > 0 or options like '%requests%') order by seq",
        named! { worker_seq },
        |row| {
            let lease = LeaseRef { job: row.get("id")?, attempt: row.get("attempts")? };
            let options =
                JobOptions::from_json(row.get("options")?).map_err(|error| malformed("job", error))?;
            let is_cancelled = row.get::<i64>("cancel_requested")? > 0;
            Ok((options.requests_for(lease.attempt), lease, is_cancelled))
        },
    )?;
    let mut orders = AttemptOrders::default();
    for (requests, lease, is_cancelled) in found {
        if is_cancelled {
            let signal = requests.signal.and_then(Signal::from_number).unwrap_or(Signal::TERM);
            orders.cancelled.push(CancelOrder { lease, signal });
        } else if requests.paused_at.is_some() {
            orders.paused.push(lease);
        }
    }
    Ok(orders)
}
