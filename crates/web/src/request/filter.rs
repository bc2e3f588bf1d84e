//! Which jobs a request is about: the same filters in a query and in the body of an action.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::call::Call;
use super::query::{INTEGER, Param, Query, TEXT, TIME};
use crate::problem::Problem;
use domain::text::nearest::suggestion;
use domain::text::pattern::CommandPattern;
use domain::values::name::{BatchName, NameError, QueueName, ScheduleName, WorkerId};
use domain::values::span::parse_span;
use domain::values::timestamp::Timestamp;
use ops::jobs::dlq::find_cause;
use store::{EndReason, JobFilter, Phase, Store};

pub(crate) const FILTER: &[Param] = &[
    Param::new(
        "state",
        TEXT,
        "States, with commas: pending, processing, completed, failed, dead, cancelled; also ready, scheduled, blocked, paused",
    ),
    Param::new("queue", TEXT, "Jobs in this queue"),
    Param::new("tag", TEXT, "Jobs with this tag"),
    Param::new("batch", TEXT, "Jobs in this batch"),
    Param::new("schedule", TEXT, "Runs of this schedule"),
    Param::new("worker", TEXT, "Jobs that this worker runs"),
    Param::new("id", TEXT, "Jobs whose id begins like this"),
    Param::new("cause", TEXT, "Dead jobs that died of this cause"),
    Param::new("reason", TEXT, "Jobs that are dead or cancelled for this reason: retries_exhausted, user"),
    Param::new("exit_code", INTEGER, "Jobs whose last attempt had this exit code"),
    Param::new("since", TIME, "Jobs that changed then or later"),
    Param::new("until", TIME, "Jobs that last changed before this"),
    Param::new("like", TEXT, "Jobs whose command matches: * matches anything, ? one character"),
    Param::new("older_than", TEXT, "Jobs that have not changed for this long: 90, 1m30s, 7d"),
];

/// A filter as a client writes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct FilterRequest {
    pub(crate) state: Option<String>,
    pub(crate) queue: Option<String>,
    pub(crate) tag: Option<String>,
    pub(crate) batch: Option<String>,
    pub(crate) schedule: Option<String>,
    pub(crate) worker: Option<String>,
    pub(crate) id: Option<String>,
    pub(crate) cause: Option<String>,
    pub(crate) reason: Option<String>,
    pub(crate) exit_code: Option<i32>,
    pub(crate) since: Option<Timestamp>,
    pub(crate) until: Option<Timestamp>,
    pub(crate) like: Option<String>,
    pub(crate) older_than: Option<String>,
}

impl FilterRequest {
    pub(crate) fn from_query(query: &Query) -> Result<Self, Problem> {
        let get = |name| query.get(name).map(str::to_owned);
        Ok(Self {
            state: get("state"),
            queue: get("queue"),
            tag: get("tag"),
            batch: get("batch"),
            schedule: get("schedule"),
            worker: get("worker"),
            id: get("id"),
            cause: get("cause"),
            reason: get("reason"),
            exit_code: query.read("exit_code")?,
            since: query.read("since")?,
            until: query.read("until")?,
            like: get("like"),
            older_than: get("older_than"),
        })
    }

    /// As the body of a request has it; `None` if it selects every job.
    pub(crate) fn to_json(&self) -> Option<String> {
        let Ok(Value::Object(mut fields)) = serde_json::to_value(self) else {
            return None;
        };
        fields.retain(|_, value| !value.is_null());
        (!fields.is_empty()).then(|| Value::Object(fields).to_string())
    }

    /// Whether it selects every job.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether jobs have to be compared, one by one.
    pub(crate) fn is_search(&self) -> bool {
        let plain = Self { state: self.state.clone(), queue: self.queue.clone(), ..Self::default() };
        *self != plain
    }

    /// The filter; ages count from the store's present time.
    pub(crate) fn resolve(&self, store: &dyn Store) -> Result<JobFilter, Problem> {
        let age = self.older_than.as_deref().map(parse_age).transpose()?;
        let by_age = age.map(|age| store.now().map(|now| now.saturating_sub(age))).transpose()?;
        let changed_before = by_age.into_iter().chain(self.until).min();
        let command = self.like.as_deref().map(str::parse::<CommandPattern>).transpose();
        Ok(JobFilter {
            phases: self.state.as_deref().map(parse_phases).transpose()?.unwrap_or_default(),
            queue: parse_name::<QueueName>("queue", self.queue.as_deref())?,
            tag: self.tag.clone(),
            batch: parse_name::<BatchName>("batch", self.batch.as_deref())?,
            schedule: parse_name::<ScheduleName>("schedule", self.schedule.as_deref())?,
            worker: parse_name::<WorkerId>("worker", self.worker.as_deref())?,
            id_prefix: self.id.clone(),
            cause: self.cause.as_deref().map(|typed| find_cause(store, typed)).transpose()?,
            reason: self.reason.as_deref().map(parse_reason).transpose()?,
            exit_code: self.exit_code,
            changed_before,
            changed_after: self.since,
            command: command.map_err(|error| Problem::invalid(error.to_string()))?,
        })
    }
}

fn parse_age(text: &str) -> Result<Duration, Problem> {
    parse_span(text).map_err(|error| Problem::invalid(format!("invalid older_than `{text}` ({error})")))
}

fn parse_reason(typed: &str) -> Result<EndReason, Problem> {
    EndReason::from_name(typed).ok_or_else(|| {
        let known: Vec<&str> = EndReason::all().map(EndReason::name).collect();
        Problem::invalid(format!("unknown reason `{typed}`")).with_hint(suggestion(typed, "reasons", &known))
    })
}

fn parse_phases(text: &str) -> Result<Vec<Phase>, Problem> {
    let parse = |typed: &str| {
        Phase::from_name(typed).ok_or_else(|| {
            let hint = suggestion(typed, "states", &Phase::ALL.map(Phase::name));
            Problem::invalid(format!("unknown state `{typed}`")).with_hint(hint)
        })
    };
    text.split(',').map(str::trim).map(parse).collect()
}

fn parse_name<T: std::str::FromStr<Err = NameError>>(
    what: &str,
    typed: Option<&str>,
) -> Result<Option<T>, Problem> {
    let parse = |typed: &str| {
        typed.parse().map_err(|error| Problem::invalid(format!("invalid {what} `{typed}` ({error})")))
    };
    typed.map(parse).transpose()
}

/// The filter of a query.
pub(crate) fn from_query(call: &Call<'_>) -> Result<JobFilter, Problem> {
    FilterRequest::from_query(call.query())?.resolve(call.store()?)
}
