//! Batches by name.

use crate::OpError;
use crate::error::Named;
use crate::worker::live::{live_workers, slots_for_new_jobs};
use domain::batch::eta::{CompletionRate, EtaFacts};
use domain::text::nearest::nearest;
use domain::values::name::BatchName;
use store::{Batch, Store};

/// How many of the newest batches are searched for a similar name.
const NEAREST_AMONG: usize = 1_000;

/// The batch with this name; the error contains the nearest name.
pub fn find(store: &dyn Store, name: &BatchName) -> Result<Batch, OpError> {
    match store.batch(name)? {
        Some(batch) => Ok(batch),
        None => Err(OpError::no_such(
            Named::Batch,
            name.as_str(),
            nearest_to(store, name)?.iter().map(BatchName::as_str),
        )),
    }
}

/// The time that a batch still needs, in milliseconds. `None` if it cannot be estimated, or if the batch has finished.
pub fn eta_ms(store: &dyn Store, batch: &Batch) -> Result<Option<u64>, OpError> {
    if batch.finished_at.is_some() {
        return Ok(None);
    }
    let slots = slots_for_new_jobs(&live_workers(store)?);
    let facts = EtaFacts { slots, ..store.eta_facts(&batch.name)? };
    let left = CompletionRate::default().time_left(batch.total() - batch.finished(), &facts);
    Ok(left.map(|left| u64::try_from(left.as_millis()).unwrap_or(u64::MAX)))
}

pub fn nearest_to(store: &dyn Store, name: &BatchName) -> Result<Option<BatchName>, OpError> {
    let batches = store.batches(NEAREST_AMONG)?;
    let names = batches.iter().map(|batch| batch.name.as_str());
    let near = nearest(name.as_str(), names).map(str::to_owned);
    Ok(batches.into_iter().map(|batch| batch.name).find(|known| Some(known.as_str()) == near.as_deref()))
}
