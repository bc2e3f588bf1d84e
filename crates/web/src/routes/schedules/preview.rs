//! The next times of a schedule that does not exist yet.

use serde::Serialize;

use super::request::NewScheduleRequest;
use crate::problem::Problem;
use crate::request::answer::Answer;
use crate::request::call::Call;
use crate::request::query::{Param, TEXT, TIME};
use domain::schedule::{NEXT_RUNS, When};
use domain::values::clock::{Clock, TimeFormat};
use domain::values::timestamp::Timestamp;
use jiff::tz::TimeZone;
use ops::schedule::json::description;

pub(super) const PARAMS: &[Param] = &[
    Param::new("cron", TEXT, "A cron expression"),
    Param::new("tz", TEXT, "Its time zone"),
    Param::new("every", TEXT, "A period"),
    Param::new("at", TIME, "A time"),
];

#[derive(Default, Serialize)]
struct PreviewJson {
    /// What is wrong with the times; null if they are valid.
    problem: Option<String>,
    description: Option<String>,
    next: Vec<TimeJson>,
}

#[derive(Serialize)]
struct TimeJson {
    at: Timestamp,
    /// On the clock of the expression's zone.
    zoned: Option<String>,
}

/// Invalid times are an answer, not a failure: a form asks while its user types.
pub(super) fn preview(call: &Call<'_>) -> Result<Answer, Problem> {
    let query = call.query();
    let now = call.store()?.now()?;
    let text = |name: &str| query.get(name).map(str::to_owned);
    let at = query.read::<Timestamp>("at").map_err(|problem| problem.line());
    let when = at.and_then(|at| {
        NewScheduleRequest::when_of(
            text("cron").as_deref(),
            text("tz").as_deref(),
            text("every").as_deref(),
            at,
        )
        .and_then(|when| Ok((when.first(now).map_err(|error| Problem::invalid(error.to_string()))?, when)))
        .map_err(|problem| problem.line())
    });
    match when {
        Ok((first, when)) => Answer::json(&of(&when, first, now)),
        Err(problem) => Answer::json(&PreviewJson { problem: Some(problem), ..PreviewJson::default() }),
    }
}

fn of(when: &When, first: Timestamp, now: Timestamp) -> PreviewJson {
    let clock = Clock::new(now, TimeFormat::Short(TimeZone::UTC));
    let times = std::iter::successors(Some(first), |at| when.next_after(now, *at)).take(NEXT_RUNS);
    let next = times.map(|at| TimeJson { at, zoned: when.zone_name().map(|_| when.shown(at, &clock)) });
    PreviewJson { problem: None, description: Some(description(when, &clock)), next: next.collect() }
}
