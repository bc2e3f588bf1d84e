//! The event log.

use super::table::Route;
use crate::doors::scope::Scope;
use crate::problem::Problem;
use crate::request::answer::Answer;
use crate::request::call::Call;
use crate::request::query::{NUMBER, Param, TEXT};
use domain::values::name::JobId;
use ops::events::EventJson;
use store::{Event, EventPage, EventRange, Store};

const DEFAULT_LIMIT: usize = 100;
const MAX_LIMIT: usize = 1_000;
/// How many events one query reads.
const CHUNK: usize = 500;
/// With a filter, at most this many events are read for one answer.
const MAX_READ: usize = 20_000;

pub(crate) const ROUTES: &[Route] = &[Route::get("/api/v1/events", Scope::Read, list)
    .about("What people and workers did, the newest first; with `after` the oldest first.")
    .takes(&[&[
        Param::new("after", NUMBER, "Events after this number"),
        Param::new("before", NUMBER, "Events before this number"),
        Param::new("job", TEXT, "Events of this job"),
        Param::new("by", TEXT, "Events by this user or token"),
        Param::new("event", TEXT, "Events of this kind: cancel, retry, pause"),
        Param::new("limit", NUMBER, "At most this many; 100 unless given, at most 1,000"),
    ]])
    .answers(200, "Event[]")
    .fails(&[422])];

fn list(call: &Call<'_>) -> Result<Answer, Problem> {
    let query = call.query();
    let limit = query.bounded("limit", DEFAULT_LIMIT, MAX_LIMIT)?;
    let (by, kind) = (query.get("by"), query.get("event"));
    let is_shown =
        |event: &Event| by.is_none_or(|by| event.by == by) && kind.is_none_or(|kind| event.event == kind);
    let range = match (query.read("after")?, query.read("before")?) {
        (Some(_), Some(_)) => return Err(Problem::invalid("`after` and `before` exclude each other")),
        (Some(after), None) => EventRange::After(after),
        (None, before) => EventRange::Before(before.unwrap_or(i64::MAX.unsigned_abs())),
    };
    let job: Option<JobId> = query.read("job")?;
    let (events, next) = read(call.store()?, range, job.as_ref(), limit, is_shown)?;
    let events: Vec<EventJson> = events.into_iter().map(EventJson::from).collect();
    let answer = Answer::json(&events)?;
    match next {
        Some(EventRange::After(number)) => Ok(answer.with_next(&page(call, "after", number))),
        Some(EventRange::Before(number)) => Ok(answer.with_next(&page(call, "before", number))),
        None => Ok(answer),
    }
}

fn page(call: &Call<'_>, name: &str, number: u64) -> String {
    format!("{}?{}", call.path("/events"), call.query().with(name, &number.to_string()))
}

/// The events in the direction of the range, and where the next page begins.
pub(crate) fn read(
    store: &dyn Store,
    mut range: EventRange,
    job: Option<&JobId>,
    limit: usize,
    is_shown: impl Fn(&Event) -> bool,
) -> Result<(Vec<Event>, Option<EventRange>), Problem> {
    let (mut shown, mut seen): (Vec<Event>, usize) = (Vec::new(), 0);
    while seen < MAX_READ {
        let mut found = store.events(&EventPage { range, limit: CHUNK, job: job.cloned() })?;
        let is_last = found.len() < CHUNK;
        seen += found.len();
        if let EventRange::Before(_) = range {
            found.reverse();
        }
        for event in found {
            if shown.len() == limit {
                return Ok((shown, Some(range)));
            }
            range = match range {
                EventRange::After(_) => EventRange::After(event.number),
                EventRange::Before(_) => EventRange::Before(event.number),
            };
            if is_shown(&event) {
                shown.push(event);
            }
        }
        if is_last {
            return Ok((shown, None));
        }
    }
    Ok((shown, Some(range)))
}
