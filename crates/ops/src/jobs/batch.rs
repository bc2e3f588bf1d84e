//! Batches by name.

use crate::OpError;
use crate::error::Named;
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

pub fn nearest_to(store: &dyn Store, name: &BatchName) -> Result<Option<BatchName>, OpError> {
    let batches = store.batches(NEAREST_AMONG)?;
    let names = batches.iter().map(|batch| batch.name.as_str());
    let near = nearest(name.as_str(), names).map(str::to_owned);
    Ok(batches.into_iter().map(|batch| batch.name).find(|known| Some(known.as_str()) == near.as_deref()))
}
