//! What people and workers did.

use domain::values::name::JobId;
use domain::values::timestamp::Timestamp;
use store::{Event, EventPage, EventRange, Store, StoreError};

/// How many events are read at once.
const CHUNK: usize = 500;

/// The latest events: at most so many, since that moment. The oldest first.
pub fn latest(
    store: &dyn Store,
    job: Option<&JobId>,
    since: Option<Timestamp>,
    limit: usize,
) -> Result<Vec<Event>, StoreError> {
    // The latest first, until it is turned round.
    let mut events: Vec<Event> = Vec::new();
    let mut before = i64::MAX.unsigned_abs();
    while events.len() < limit {
        let wanted = (limit - events.len()).min(CHUNK);
        let page = EventPage { range: EventRange::Before(before), limit: wanted, job: job.cloned() };
        let found = store.events(&page)?;
        before = found.first().map_or(0, |first| first.number);
        let is_meant = |event: &Event| since.is_none_or(|since| event.at >= since);
        let is_over = found.len() < wanted || !found.iter().all(is_meant);
        events.extend(found.into_iter().rev().filter(is_meant));
        if is_over {
            break;
        }
    }
    events.reverse();
    Ok(events)
}

/// What came behind an event, as far as it is read at once.
pub fn after(store: &dyn Store, job: Option<&JobId>, number: u64) -> Result<Vec<Event>, StoreError> {
    store.events(&EventPage { range: EventRange::After(number), limit: CHUNK, job: job.cloned() })
}
