//! Changing a queue, and what it is afterwards.

use super::OpError;
use domain::job::request::RequestError;
use domain::job::retry_rules::RetryRules;
use domain::text::nearest::nearest;
use domain::values::name::QueueName;
use store::{Pause, Queue, QueueUpdate, Store, StoreError};

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

/// The queue that somebody may have meant who is about to enqueue to this one.
pub fn mistaken_for(store: &dyn Store, name: &QueueName) -> Result<Option<String>, OpError> {
    Ok(resembled(&store.queues()?, name))
}

/// A shorter name is as far from any other of its kind.
const SHORTEST_MISTAKEN: usize = 4;

/// The queue that somebody may have meant who names one that is not there. Those that differ by their number alone are
/// siblings, and no slip.
fn resembled(known: &[Queue], name: &QueueName) -> Option<String> {
    let name = name.as_str();
    if name.len() < SHORTEST_MISTAKEN || known.iter().any(|queue| queue.name.as_str() == name) {
        return None;
    }
    let others = known.iter().map(|queue| queue.name.as_str());
    nearest(name, others.filter(|other| without_digits(other) != without_digits(name))).map(str::to_owned)
}

fn without_digits(name: &str) -> String {
    name.replace(|character: char| character.is_ascii_digit(), "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_looks_like_a_slip_is_offered() {
        let known: Vec<Queue> = ["mail", "video1", "a"]
            .into_iter()
            .map(|name| Queue::new(name.parse().expect("a name"), [].into()))
            .collect();
        for (typed, offered) in [
            ("mial", Some("mail")),
            ("vdieo1", Some("video1")),
            ("mail", None),
            ("video2", None),
            ("b", None),
            ("aa", None),
        ] {
            assert_eq!(resembled(&known, &typed.parse().expect("a name")).as_deref(), offered, "{typed}");
        }
    }
}
