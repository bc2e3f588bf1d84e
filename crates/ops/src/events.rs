//! The event log: actions of people and workers.

use domain::values::name::JobId;
use domain::values::timestamp::Timestamp;
use store::{Event, EventPage, EventRange, Store, StoreError};

/// How many events one query reads.
const CHUNK: usize = 500;

/// The latest events, at most `limit`, not older than `since`; oldest first.
pub fn latest(
    store: &dyn Store,
    job: Option<&JobId>,
    since: Option<Timestamp>,
    limit: usize,
) -> Result<Vec<Event>, StoreError> {
    // Newest first until the final `reverse`.
    let mut events: Vec<Event> = Vec::new();
    let mut before = i64::MAX.unsigned_abs();
    while events.len() < limit {
        let wanted = (limit - events.len()).min(CHUNK);
        let page = EventPage { range: EventRange::Before(before), limit: wanted, job: job.cloned() };
        let found = store.events(&page)?;
        before = found.first().map_or(0, |first| first.number);
        let is_recent = |event: &Event| since.is_none_or(|since| event.at >= since);
        let is_over = found.len() < wanted || !found.iter().all(is_recent);
        events.extend(found.into_iter().rev().filter(is_recent));
        if is_over {
            break;
        }
    }
    events.reverse();
    Ok(events)
}

/// The next events after `number`, at most one chunk.
pub fn after(store: &dyn Store, job: Option<&JobId>, number: u64) -> Result<Vec<Event>, StoreError> {
    store.events(&EventPage { range: EventRange::After(number), limit: CHUNK, job: job.cloned() })
}
