//! One turn of a worker: settle, promote, claim.

use super::tx::Tx;
use super::{claim, dependencies, places, settle, workers};
use crate::store::{Exchange, Exchanged, Served, StoreError};

/// `None` if more jobs have become due than one transaction should promote: what was promoted stays, and the rest of
/// the turn is for the next transaction, so that nothing is claimed out of order.
pub(super) fn exchange(tx: &Tx<'_>, exchange: &Exchange<'_>) -> Result<Option<Exchanged>, StoreError> {
    dependencies::release_noted(tx)?;
    if !places::promote(tx)? {
        return Ok(None);
    }
    let worker_seq = workers::seq(tx, exchange.worker)?;
    let (mut settled, mut stale) = (Vec::new(), Vec::new());
    for settlement in exchange.settlements {
        match settle::settle(tx, worker_seq, settlement)? {
            Some(recorded) => settled.push(recorded),
            None => stale.push(settlement.lease.clone()),
        }
    }
    dependencies::release_finished(tx)?;
    let retired = !workers::is_live(tx, worker_seq)?;
    let want = if retired { 0 } else { exchange.want };
    let claimed = claim::claim(tx, exchange.worker, worker_seq, want)?;
    if tx.has_new_ready() && claimed.len() < want && workers::served(tx, worker_seq)? == Served::All {
        tx.forget_ready();
    }
    Ok(Some(Exchanged { claimed, settled, stale, retired, next_due: places::next_due(tx)? }))
}
