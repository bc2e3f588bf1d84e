//! One turn of a worker: settle, promote, claim.

use super::claim;
use super::claim::ClaimResult;
use crate::rows::jobs::{dependencies, ready};
use crate::rows::tables::workers;
use crate::rows::tx::Tx;
use crate::rows::verbs::settle;
use crate::{Exchange, ExchangeResult, Result, ServedJobs};

/// `None` if more jobs are due than one transaction should promote: the promoted ones stay, and the next transaction
/// does the rest, so that nothing is claimed out of order.
pub(crate) fn exchange(tx: &mut Tx<'_>, exchange: &Exchange<'_>) -> Result<Option<ExchangeResult>> {
    dependencies::resume_pending_unblocks(tx)?;
    if !ready::promote(tx)? {
        return Ok(None);
    }
    let worker_seq = workers::seq(tx, exchange.worker)?;
    tx.shard = worker_seq.0;
    let (mut settled, mut stale) = (Vec::new(), Vec::new());
    for settlement in exchange.settlements {
        match settle::settle(tx, worker_seq, settlement)? {
            Some(recorded) => settled.push(recorded),
            None => stale.push(settlement.lease.clone()),
        }
    }
    dependencies::unblock_dependents(tx)?;
    let (is_live, served) = workers::is_live_and_served(tx, worker_seq)?;
    let want = if is_live { exchange.want } else { 0 };
    let ClaimResult { claims: claimed, has_left_some, next_start_at } =
        claim::claim(tx, exchange.worker, &served, want, exchange.want_limited)?;
    let took_all = claimed.len() < want && !has_left_some && !tx.effects.has_pending_unblocks;
    if tx.effects.wakes_workers && took_all && served == ServedJobs::All {
        // This worker has claimed every job that it made ready.
        tx.effects.wakes_workers = false;
    }
    // If dependents remain to be unblocked, the next turn is due now.
    let unblocks_due = tx.effects.has_pending_unblocks.then_some(tx.now);
    let next_due = ready::next_due(tx)?.into_iter().chain(next_start_at).chain(unblocks_due).min();
    Ok(Some(ExchangeResult { claimed, has_left_some, settled, stale, retired: !is_live, next_due }))
}
