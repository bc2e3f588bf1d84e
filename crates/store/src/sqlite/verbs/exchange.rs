//! One turn of a worker: settle, promote, claim.

use super::claim::Taken;
use super::{claim, settle};
use crate::sqlite::jobs::{dependencies, ready};
use crate::sqlite::session::tx::Tx;
use crate::sqlite::tables::workers;
use crate::{Exchange, Exchanged, Served, StoreError};

/// `None` if more jobs have become due than one transaction should promote: what was promoted stays, and the rest of
/// the turn is for the next transaction, so that nothing is claimed out of order.
pub(crate) fn exchange(tx: &Tx<'_>, exchange: &Exchange<'_>) -> Result<Option<Exchanged>, StoreError> {
    dependencies::release_noted(tx)?;
    if !ready::promote(tx)? {
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
    let Taken { claims: claimed, has_left_some, next_start_at } =
        claim::claim(tx, exchange.worker, worker_seq, want, exchange.want_limited)?;
    let took_all = claimed.len() < want && !has_left_some && !tx.has_more_to_tell();
    if tx.has_new_ready() && took_all && workers::served(tx, worker_seq)? == Served::All {
        tx.forget_ready();
    }
    // Where dependents are left to be released, the next turn is due now.
    let more_to_tell = tx.has_more_to_tell().then_some(tx.now);
    let next_due = ready::next_due(tx)?.into_iter().chain(next_start_at).chain(more_to_tell).min();
    Ok(Some(Exchanged { claimed, has_left_some, settled, stale, retired, next_due }))
}
