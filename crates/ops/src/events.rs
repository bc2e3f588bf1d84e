//! The event log: actions of people and workers.

use serde::Serialize;

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

domain::named_enum! {
    /// The kind of thing that an event is about.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum EventKind {
        Job = "job",
        Queue = "queue",
        Schedule = "schedule",
        Hook = "hook",
        Worker = "worker",
        Setting = "setting",
        Store = "store",
    }
}

/// An event as JSON. The number is that of a recorded event, with which a page begins.
#[derive(Clone, Debug, Serialize)]
pub struct EventJson {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    pub at: Timestamp,
    pub event: String,
    /// `None` if it is not recorded who did it.
    pub by: Option<String>,
    pub kind: EventKind,
    pub job: Option<JobId>,
    pub detail: Option<String>,
}

impl From<Event> for EventJson {
    fn from(event: Event) -> Self {
        let kind = EventKind::of(&event);
        let Event { number, at, event, by, job, detail } = event;
        Self { number: Some(number), at, event, by: Some(by), kind, job, detail }
    }
}

/// What a setting of a queue is recorded with.
const QUEUE_PREFIX: &str = "queue ";

impl EventKind {
    pub fn of(event: &Event) -> Self {
        let is_queue_setting =
            || event.detail.as_ref().is_some_and(|detail| detail.starts_with(QUEUE_PREFIX));
        let name = event.event.as_str();
        match name.split_once('_').map_or(name, |(first, _)| first) {
            _ if event.job.is_some() => Self::Job,
            "remove" => Self::Job,
            "pause" | "resume" | "queue" => Self::Queue,
            "set" if is_queue_setting() => Self::Queue,
            "set" => Self::Setting,
            "schedule" => Self::Schedule,
            "hook" => Self::Hook,
            "worker" | "stop" => Self::Worker,
            _ => Self::Store,
        }
    }
}

/// The name of an event for people, which distinguishes `queue set` from `config set`.
pub fn title(event: &Event) -> String {
    let name = event.event.replace('_', " ");
    match EventKind::of(event) {
        EventKind::Queue if !name.starts_with(QUEUE_PREFIX) => format!("{QUEUE_PREFIX}{name}"),
        EventKind::Setting => format!("config {name}"),
        EventKind::Queue
        | EventKind::Job
        | EventKind::Schedule
        | EventKind::Hook
        | EventKind::Worker
        | EventKind::Store => name,
    }
}

/// The thing that an event is about, and details: `queue mail`, `job a  priority`, `setting lease = 1m (was 30s)`.
pub fn about(event: &Event) -> String {
    let kind = EventKind::of(event);
    let detail = event.detail.as_deref();
    if event.event == "stop" {
        return detail.map_or_else(|| "all workers".to_owned(), |host| format!("workers on {host}"));
    }
    let detail = detail.map(|detail| match kind {
        EventKind::Queue => detail.strip_prefix(QUEUE_PREFIX).unwrap_or(detail),
        EventKind::Job
        | EventKind::Schedule
        | EventKind::Hook
        | EventKind::Worker
        | EventKind::Setting
        | EventKind::Store => detail,
    });
    let parts = event.job.iter().map(JobId::as_str).chain(detail).collect::<Vec<_>>().join("  ");
    format!("{} {parts}", kind.name()).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(name: &str, job: Option<&str>, detail: Option<&str>) -> Event {
        Event {
            number: 1,
            at: Timestamp::EPOCH,
            event: name.to_owned(),
            by: "ada".to_owned(),
            job: job.map(|id| id.parse().expect("an id")),
            detail: detail.map(str::to_owned),
        }
    }

    #[test]
    fn a_title_tells_queues_from_settings_and_jobs() {
        for (name, job, detail, expected) in [
            ("pause", None, Some("mail (no server)"), "queue pause"),
            ("resume", None, Some("mail"), "queue resume"),
            ("set", None, Some("queue q: concurrency 2"), "queue set"),
            ("queue_remove", None, Some("mail"), "queue remove"),
            ("set", None, Some("lease = 1m (was 30s)"), "config set"),
            ("pause", Some("a"), None, "pause"),
            ("hook_gave_up", None, Some("h"), "hook gave up"),
        ] {
            assert_eq!(title(&event(name, job, detail)), expected, "{name}");
        }
    }

    #[test]
    fn every_event_says_what_kind_of_thing_it_is_about() {
        for (name, job, detail, expected) in [
            ("cancel", Some("a"), None, "job a"),
            ("edit", Some("a"), Some("priority"), "job a  priority"),
            ("schedule_run", Some("a"), Some("nightly"), "job a  nightly"),
            ("remove", None, Some("b"), "job b"),
            ("pause", None, Some("mail"), "queue mail"),
            ("set", None, Some("queue q: concurrency 2"), "queue q: concurrency 2"),
            ("set", None, Some("lease = 1m (was 30s)"), "setting lease = 1m (was 30s)"),
            ("queue_remove", None, Some("mail"), "queue mail"),
            ("schedule_pause", None, Some("s"), "schedule s"),
            ("hook_gave_up", None, Some("h: exit code 1"), "hook h: exit code 1"),
            ("worker_started", None, Some("vm, pid 7"), "worker vm, pid 7"),
            ("stop", None, Some("vm"), "workers on vm"),
            ("stop", None, None, "all workers"),
            ("backup", None, Some("copy"), "store copy"),
        ] {
            assert_eq!(about(&event(name, job, detail)), expected, "{name}");
        }
    }
}
