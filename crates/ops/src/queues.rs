//! Changing a queue.

use super::OpError;
use super::error::Named;
use domain::job::retry_rules::RetryRules;
use domain::job::spec::SpecError;
use domain::text::nearest::nearest;
use domain::values::name::QueueName;
use store::{Pause, Queue, QueueRemoval, QueueUpdate, Store, StoreError};

/// The highest concurrency of a queue: a higher limit would not limit anything.
pub const MAX_CONCURRENCY: u32 = 100_000;

/// A changed queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedQueue {
    /// Its new version.
    pub queue: Queue,
    /// Another queue with a similar name, if this change created the queue.
    pub similar_queue: Option<String>,
}

pub fn pause(store: &dyn Store, name: &QueueName, pause: &Pause) -> Result<ChangedQueue, OpError> {
    change(store, name, || store.pause_queue(name, pause))
}

pub fn resume(store: &dyn Store, name: &QueueName, by: &str) -> Result<ChangedQueue, OpError> {
    change(store, name, || store.resume_queue(name, by))
}

pub fn set(
    store: &dyn Store,
    name: &QueueName,
    update: &QueueUpdate,
    by: &str,
) -> Result<ChangedQueue, OpError> {
    check_retry(store, name, update)?;
    change(store, name, || store.set_queue(name, update, by))
}

/// Removes a queue without jobs, with its settings, and returns its last version.
pub fn remove(store: &dyn Store, name: &QueueName, by: &str) -> Result<Queue, OpError> {
    let known = store.queues()?;
    let no_such =
        || OpError::no_such(Named::Queue, name.as_str(), known.iter().map(|queue| queue.name.as_str()));
    let queue = known.iter().find(|queue| queue.name == *name).ok_or_else(no_such)?;
    if *name == QueueName::default_queue() {
        return Err(OpError::DefaultQueue);
    }
    // Its next run would create the queue again, without its settings.
    let schedules = store.schedules()?;
    if let Some((schedule, _)) =
        schedules.iter().find(|(schedule, _)| schedule.job.queue.as_ref() == Some(name))
    {
        return Err(OpError::ScheduledQueue { queue: name.clone(), schedule: schedule.name.clone() });
    }
    match store.remove_queue(name, by)? {
        QueueRemoval::Removed => Ok(queue.clone()),
        QueueRemoval::Missing => Err(no_such()),
        QueueRemoval::InUse { jobs } => Err(OpError::QueueInUse { queue: name.clone(), jobs }),
    }
}

/// Refuses lists that contradict each other, even if only one of them changes. If two concurrent changes bypass this
/// check, exit codes in both lists are not retried.
fn check_retry(store: &dyn Store, name: &QueueName, update: &QueueUpdate) -> Result<(), OpError> {
    let queue = store.queues()?.into_iter().find(|queue| queue.name == *name);
    let now = queue.map(|queue| queue.retry).unwrap_or_default();
    let (retry_on, no_retry_on) =
        (update.retry_on.apply(now.retry_on), update.no_retry_on.apply(now.no_retry_on));
    RetryRules::new(retry_on, no_retry_on).map_err(SpecError::from)?;
    Ok(())
}

fn change(
    store: &dyn Store,
    name: &QueueName,
    apply: impl FnOnce() -> Result<(), StoreError>,
) -> Result<ChangedQueue, OpError> {
    let similar_queue = similar_name(&store.queues()?, name);
    apply()?;
    let queue = store.queues()?.into_iter().find(|queue| queue.name == *name);
    Ok(ChangedQueue { queue: queue.expect("the change creates a missing queue"), similar_queue })
}

/// An existing queue whose name is similar to this new one, which may be a typing error.
pub fn similar_queue(store: &dyn Store, name: &QueueName) -> Result<Option<String>, OpError> {
    Ok(similar_name(&store.queues()?, name))
}

/// Any two shorter names are similar, so no suggestion is made for them.
const MIN_SUGGESTED_LENGTH: usize = 4;

/// The nearest existing name, if `name` does not exist. Names that differ only in their digits are siblings, not typing
/// errors.
fn similar_name(known: &[Queue], name: &QueueName) -> Option<String> {
    // The default queue counts as known before its first job creates it.
    let default = QueueName::default_queue();
    let others = || known.iter().map(|queue| queue.name.as_str()).chain([default.as_str()]);
    let name = name.as_str();
    if name.len() < MIN_SUGGESTED_LENGTH || others().any(|other| other == name) {
        return None;
    }
    let others = others();
    nearest(name, others.filter(|other| without_digits(other) != without_digits(name))).map(str::to_owned)
}

fn without_digits(name: &str) -> String {
    name.replace(|character: char| character.is_ascii_digit(), "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_likely_typing_errors_get_a_suggestion() {
        let known: Vec<Queue> = ["mail", "video1", "a"]
            .into_iter()
            .map(|name| Queue::new(name.parse().expect("a name"), [].into()))
            .collect();
        for (typed, offered) in [
            ("mial", Some("mail")),
            ("vdieo1", Some("video1")),
            ("mail", None),
            ("video2", None),
            ("default", None),
            ("defalt", Some("default")),
            ("b", None),
            ("aa", None),
        ] {
            assert_eq!(similar_name(&known, &typed.parse().expect("a name")).as_deref(), offered, "{typed}");
        }
    }
}
