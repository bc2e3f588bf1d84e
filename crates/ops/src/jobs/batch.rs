//! Batches by name, and their JSON.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::OpError;
use crate::error::Named;
use domain::job::life::StateName;
use domain::text::nearest::nearest;
use domain::values::name::BatchName;
use domain::values::timestamp::Timestamp;
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

#[derive(Debug, Serialize)]
pub struct BatchJson<'a> {
    name: &'a str,
    created_at: Timestamp,
    /// Null while any of its jobs is unfinished.
    finished_at: Option<Timestamp>,
    total: u64,
    /// Zeros included.
    jobs: BTreeMap<&'static str, u64>,
}

impl<'a> From<&'a Batch> for BatchJson<'a> {
    fn from(batch: &'a Batch) -> Self {
        let count = |state: StateName| (state.name(), batch.counts.get(&state).copied().unwrap_or(0));
        Self {
            name: batch.name.as_str(),
            created_at: batch.created_at,
            finished_at: batch.finished_at,
            total: batch.total(),
            jobs: StateName::ALL.into_iter().map(count).collect(),
        }
    }
}
