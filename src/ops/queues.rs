//! Changing a queue, and what it is afterwards.

use super::OpError;
use crate::domain::name::QueueName;
use crate::domain::nearest::nearest;
use crate::domain::request::RequestError;
use crate::domain::retry_rules::RetryRules;
use crate::store::{Pause, Queue, QueueUpdate, Store, StoreError};

/// A queue that was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// As it is now.
    pub queue: Queue,
    /// The queue was made by this, and another one has almost its name.
    pub mistaken_for: Option<String>,
}

pub fn pause(store: &dyn Store, name: &QueueName, pause: &Pause) -> Result<Changed, OpError> {
    change(store, name, || store.pause_queue(name, pause))
}

pub fn resume(store: &dyn Store, name: &QueueName, by: &str) -> Result<Changed, OpError> {
    change(store, name, || store.resume_queue(name, by))
}

pub fn set(store: &dyn Store, name: &QueueName, update: &QueueUpdate, by: &str) -> Result<Changed, OpError> {
    check_retry(store, name, update)?;
    change(store, name, || store.set_queue(name, update, by))
}

/// Lists that contradict each other are a mistake, also where only one of them is changed. Should two people do that at
/// once, what is in both is not retried.
fn check_retry(store: &dyn Store, name: &QueueName, update: &QueueUpdate) -> Result<(), OpError> {
    let queue = store.queues()?.into_iter().find(|queue| queue.name == *name);
    let now = queue.map(|queue| queue.retry).unwrap_or_default();
    let (retry_on, no_retry_on) =
        (update.retry_on.apply(now.retry_on), update.no_retry_on.apply(now.no_retry_on));
    RetryRules::new(retry_on, no_retry_on).map_err(RequestError::from)?;
    Ok(())
}

fn change(
    store: &dyn Store,
    name: &QueueName,
    apply: impl FnOnce() -> Result<(), StoreError>,
) -> Result<Changed, OpError> {
    let mistaken_for = resembled(&store.queues()?, name);
    apply()?;
    let queue = store.queues()?.into_iter().find(|queue| queue.name == *name);
    Ok(Changed { queue: queue.expect("it was made if it was not there"), mistaken_for })
}

/// The queue that somebody may have meant who names one that is not there.
fn resembled(known: &[Queue], name: &QueueName) -> Option<String> {
    if known.iter().any(|queue| queue.name == *name) {
        return None;
    }
    nearest(name.as_str(), known.iter().map(|queue| queue.name.as_str())).map(str::to_owned)
}
