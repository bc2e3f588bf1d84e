//! What a stream can be about, and its present state.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::Duration;

use serde_json::{Value, json};

use crate::pages::live::WatchedPage;
use crate::problem::Problem;
use crate::request::filter::{FILTER, FilterRequest};
use crate::request::query::{NUMBER, Param, Query, decode};
use crate::routes::jobs::SEARCH_BUDGET;
use crate::routes::status::timed;
use crate::server::Server;
use domain::values::clock::TimeFormat;
use domain::values::name::JobId;
use ops::events::EventJson;
use ops::json::{JobJson, RecordJson};
use ops::metrics::history::{HistoryJson, history};
use ops::status::status;
use store::{EventPage, EventRange, Search, Store};

/// Rows of a list that is streamed.
const DEFAULT_ROWS: usize = 100;
const MAX_ROWS: usize = 200;
/// How long the streamed history is.
const HISTORY_RANGE: Duration = Duration::from_secs(3_600);
/// Events of the first message.
const FIRST_EVENTS: usize = 50;
/// A topic is read at most this often.
const INTERVAL: Duration = Duration::from_millis(450);
const HISTORY_INTERVAL: Duration = Duration::from_secs(5);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Topic {
    Status,
    /// The last hour of all queues.
    History,
    Events,
    Action(String),
    Job(JobId),
    List(String),
    /// The sections of a page.
    Page(WatchedPage),
}

/// The state of a topic at one time.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum State {
    /// Sent as a whole when it differs: the name of the event, and its data without the time of reading.
    Whole { event: &'static str, data: Value },
    /// Sent as what differs.
    Rows { order: Vec<String>, rows: BTreeMap<String, Value> },
    /// First the whole history, then its last points.
    Points { data: Value },
    /// Only new ones are sent.
    Log { last: u64, events: Vec<Value> },
    /// The HTML of a page by the id of its element: those that differ are sent.
    Sections { page: String, sections: BTreeMap<String, String> },
}

impl FromStr for Topic {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Self, Problem> {
        let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
        match (kind, rest) {
            ("status", "") => Ok(Self::Status),
            ("history", "") => Ok(Self::History),
            ("events", "") => Ok(Self::Events),
            ("action", id) if !id.is_empty() => Ok(Self::Action(id.to_owned())),
            ("job", id) => {
                let bad = |error| Problem::invalid(format!("invalid job `{id}` ({error})"));
                Ok(Self::Job(id.parse().map_err(bad)?))
            }
            ("list", query) => {
                let query = decode(query, false)
                    .ok_or_else(|| Problem::invalid("the query of a list is not UTF-8"))?;
                parse_list(&query)?;
                Ok(Self::List(query))
            }
            _ => Err(Problem::invalid(format!("unknown topic `{text}`"))
                .with_hint("the topics are status, history, events, action:ID, job:ID and list:QUERY")),
        }
    }
}

const LIST: &[Param] = &[Param::new("limit", NUMBER, "Rows")];

fn parse_list(query: &str) -> Result<(FilterRequest, usize), Problem> {
    let query = Query::parse(query, &[FILTER, LIST])?;
    Ok((FilterRequest::from_query(&query)?, query.bounded("limit", DEFAULT_ROWS, MAX_ROWS)?))
}

impl Topic {
    /// Whether it can change only with the store.
    pub(crate) fn is_in_store(&self) -> bool {
        match self {
            Self::Status | Self::History | Self::Events | Self::Job(_) | Self::List(_) | Self::Page(_) => {
                true
            }
            Self::Action(_) => false,
        }
    }

    /// Whether the route of the same resource needs the scope operate.
    pub(crate) fn needs_operate(&self) -> bool {
        matches!(self, Self::Action(_))
    }

    pub(crate) fn interval(&self) -> Duration {
        match self {
            Self::History => HISTORY_INTERVAL,
            Self::Status | Self::Events | Self::Job(_) | Self::List(_) | Self::Page(_) | Self::Action(_) => {
                INTERVAL
            }
        }
    }

    pub(crate) fn read(&self, server: &Server, store: &dyn Store) -> Result<State, Problem> {
        match self {
            Self::Status => {
                let found = status(store, &server.options.location.home, &TimeFormat::Full)?;
                let mut data = value(&timed(&found, store.now()?));
                // The time of reading alone is no news.
                data.as_object_mut().map(|fields| fields.remove("at"));
                Ok(State::Whole { event: "status", data })
            }
            Self::History => {
                let timeline = history(store, HISTORY_RANGE, None)?;
                Ok(State::Points { data: value(&HistoryJson::from(&timeline)) })
            }
            Self::Events => events(store),
            Self::Action(id) => {
                let action = server.actions.find(id);
                let data = action.map_or(Value::Null, |action| value(&action.json()));
                Ok(State::Whole { event: "action", data })
            }
            Self::Job(id) => {
                let record = store.record(id)?;
                let data = record.map_or(Value::Null, |record| value(&RecordJson::from(&record)));
                Ok(State::Whole { event: "job", data })
            }
            Self::List(query) => rows(store, query),
            Self::Page(page) => {
                let (page, sections) = (page.url().to_owned(), page.read(server, store)?);
                Ok(State::Sections { page, sections })
            }
        }
    }
}

fn value(json: &impl serde::Serialize) -> Value {
    serde_json::to_value(json).unwrap_or_default()
}

fn events(store: &dyn Store) -> Result<State, Problem> {
    let range = EventRange::Before(i64::MAX.unsigned_abs());
    let found = store.events(&EventPage { range, limit: FIRST_EVENTS, job: None })?;
    let last = found.last().map_or(0, |event| event.number);
    let events = found.into_iter().map(|event| value(&EventJson::from(event))).collect();
    Ok(State::Log { last, events })
}

fn rows(store: &dyn Store, query: &str) -> Result<State, Problem> {
    let (filter, limit) = parse_list(query)?;
    let budget = Some(SEARCH_BUDGET);
    let jobs =
        store.search(&Search { filter: filter.resolve(store)?, limit, budget, ..Search::default() })?.jobs;
    let order = jobs.iter().map(|job| job.id.to_string()).collect();
    let rows = jobs.iter().map(|job| (job.id.to_string(), value(&JobJson::from(job)))).collect();
    Ok(State::Rows { order, rows })
}

impl State {
    /// The event for a client that knows nothing of the topic yet.
    pub(crate) fn whole(&self) -> (&'static str, Value) {
        match self {
            Self::Whole { event, data } => (event, data.clone()),
            Self::Rows { order, rows } => {
                let upsert: Vec<&Value> = order.iter().filter_map(|id| rows.get(id)).collect();
                ("jobs", json!({ "upsert": upsert, "gone": [], "order": order }))
            }
            Self::Points { data } => ("history", data.clone()),
            Self::Log { events, .. } => ("event", json!(events)),
            Self::Sections { page, sections } => ("sections", json!({ "page": page, "sections": sections })),
        }
    }

    /// The event for a client that knows an earlier state.
    pub(crate) fn since(&self, before: &Self) -> (&'static str, Value) {
        match (self, before) {
            (Self::Rows { order, rows }, Self::Rows { rows: old, .. }) => {
                let upsert: Vec<&Value> = order
                    .iter()
                    .filter_map(|id| rows.get(id).filter(|row| old.get(id) != Some(row)))
                    .collect();
                let gone: Vec<&String> = old.keys().filter(|id| !rows.contains_key(*id)).collect();
                ("jobs", json!({ "upsert": upsert, "gone": gone, "order": order }))
            }
            (Self::Log { events, .. }, Self::Log { last, .. }) => {
                let is_new = |event: &&Value| event["number"].as_u64() > Some(*last);
                ("event", json!(events.iter().filter(is_new).collect::<Vec<_>>()))
            }
            (Self::Points { data }, Self::Points { data: old }) => {
                let is_new =
                    |point: &&Value| !old["points"].as_array().is_some_and(|old| old.contains(point));
                let points = data["points"].as_array().into_iter().flatten().filter(is_new);
                ("point", json!(points.collect::<Vec<_>>()))
            }
            (Self::Sections { page, sections }, Self::Sections { sections: old, .. }) => {
                let differs = |(id, html): &(&String, &String)| old.get(*id) != Some(*html);
                let sections: BTreeMap<_, _> = sections.iter().filter(differs).collect();
                ("sections", json!({ "page": page, "sections": sections }))
            }
            (
                Self::Whole { .. }
                | Self::Rows { .. }
                | Self::Points { .. }
                | Self::Log { .. }
                | Self::Sections { .. },
                _,
            ) => self.whole(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_sends_what_differs() {
        let state = |ids: &[(&str, u32)]| State::Rows {
            order: ids.iter().map(|(id, _)| (*id).to_owned()).collect(),
            rows: ids.iter().map(|(id, value)| ((*id).to_owned(), json!({ "id": id, "v": value }))).collect(),
        };
        let (before, after) = (state(&[("a", 1), ("b", 1)]), state(&[("c", 1), ("b", 2)]));
        let (event, data) = after.since(&before);
        assert_eq!(event, "jobs");
        let upsert = json!([{ "id": "c", "v": 1 }, { "id": "b", "v": 2 }]);
        assert_eq!(data, json!({ "upsert": upsert, "gone": ["a"], "order": ["c", "b"] }));
        assert_eq!(before.whole().1["order"], json!(["a", "b"]));
    }

    #[test]
    fn topics_are_parsed_and_others_refused() {
        for topic in ["status", "history", "events", "action:a-1", "job:x", "list:", "list:state%3Ddead"] {
            assert!(topic.parse::<Topic>().is_ok(), "{topic}");
        }
        for topic in
            ["", "statuses", "status:x", "job:", "job:a b", "list:sate%3Ddead", "list:%ff", "action:"]
        {
            assert!(topic.parse::<Topic>().is_err(), "{topic}");
        }
    }
}
