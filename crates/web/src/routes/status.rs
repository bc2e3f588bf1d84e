//! The status of the queue, and what comes next.

use std::time::Duration;

use serde::Serialize;

use super::table::Route;
use crate::doors::scope::Scope;
use crate::problem::Problem;
use crate::request::answer::Answer;
use crate::request::call::Call;
use crate::request::query::{NUMBER, Param, TEXT};
use domain::values::clock::TimeFormat;
use domain::values::span::parse_span;
use domain::values::timestamp::Timestamp;
use ops::json::StatusJson;
use ops::metrics::history::{HistoryJson, history};
use ops::metrics::recent::{LastHourJson, recent};
use ops::status::{Status, status};
use ops::upcoming::upcoming;

pub(crate) const ROUTES: &[Route] = &[
    Route::get("/api/v1/status", Scope::Read, read)
        .about("Jobs by state, queues, workers, problems, and the last hour.")
        .answers(200, "Status"),
    Route::get("/api/v1/history", Scope::Read, past)
        .about("What happened over a time that ends now, in at most 300 points.")
        .takes(&[&[
            Param::new("range", TEXT, "How long: 15m, 24h, 7d; 1h unless given, at most 90d"),
            Param::new("queue", TEXT, "Only of this queue"),
        ]])
        .answers(200, "History")
        .fails(&[404, 422]),
    Route::get("/api/v1/upcoming", Scope::Read, next)
        .about("Retries, delayed jobs and schedules in the order of time.")
        .takes(&[&[Param::new("limit", NUMBER, "At most this many; 100 unless given, at most 1,000")]])
        .answers(200, "Coming[]"),
];

const MIN_RANGE: Duration = Duration::from_secs(60);
const MAX_RANGE: Duration = Duration::from_secs(90 * 86_400);

/// A status with the last hour. The stream leaves the hour out, because it has the history.
#[derive(Serialize)]
struct ReportJson<'a> {
    #[serde(flatten)]
    status: TimedStatusJson<'a>,
    last_hour: LastHourJson,
}

/// The status with the time at which it was read, and the version of the program.
#[derive(Serialize)]
pub(crate) struct TimedStatusJson<'a> {
    at: Timestamp,
    version: &'static str,
    #[serde(flatten)]
    status: StatusJson<'a>,
}

fn read(call: &Call<'_>) -> Result<Answer, Problem> {
    let store = call.store()?;
    let found = status(store, &call.server.options.location.home, &TimeFormat::Full)?;
    let last_hour = (&recent(store, None)?).into();
    Answer::json(&ReportJson { status: timed(&found, store.now()?), last_hour })
}

pub(crate) fn timed(status: &Status, at: Timestamp) -> TimedStatusJson<'_> {
    TimedStatusJson { at, version: env!("CARGO_PKG_VERSION"), status: status.into() }
}

fn past(call: &Call<'_>) -> Result<Answer, Problem> {
    let typed = call.query().get("range").unwrap_or("1h");
    let bad = |error| Problem::invalid(format!("invalid range `{typed}` ({error})"));
    let range = parse_span(typed).map_err(bad)?;
    if !(MIN_RANGE..=MAX_RANGE).contains(&range) {
        return Err(Problem::invalid("`range` must be from 1m to 90d"));
    }
    let queue = call.query().read("queue")?;
    Answer::json(&HistoryJson::from(&history(call.store()?, range, queue.as_ref())?))
}

fn next(call: &Call<'_>) -> Result<Answer, Problem> {
    let limit = call.query().bounded("limit", 100, 1_000)?;
    Answer::json(&upcoming(call.store()?, limit)?.0)
}
