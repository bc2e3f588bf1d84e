//! Jobs: listing, showing, enqueuing and changing them.

mod change;
pub(super) mod edit;
mod enqueue;
mod list;

pub(crate) use self::list::enter_search;

use std::time::Duration;

use super::table::{Method, Route};
use crate::doors::scope::Scope;
use crate::problem::Problem;
use crate::request::answer::Answer;
use crate::request::call::Call;
use crate::request::filter::{FILTER, FilterRequest};
use crate::request::query::{NUMBER, Param, TIME};
use domain::values::clock::TimeFormat;
use ops::OpError;
use ops::jobs::enqueue::document::MAX_DOCUMENT_BYTES;
use ops::jobs::explain::explain;
use ops::json::{CountJson, ExplanationJson, FailedAttemptJson, GraphJson, RecordJson};

/// A request reads for at most this long, then it answers with what it has found.
pub(crate) const SEARCH_BUDGET: Duration = Duration::from_millis(150);
/// A larger graph is cut.
const MAX_GRAPH_NODES: usize = 400;

pub(crate) const ROUTES: &[Route] = &[
    Route::get("/api/v1/jobs", Scope::Read, list::list)
        .about("Jobs that match, newest first unless one state has an order of its own; `Link` names the next page.")
        .takes(&[FILTER, list::PAGE])
        .answers(200, "Job[]")
        .fails(&[422]),
    Route::get("/api/v1/count", Scope::Read, count)
        .about("How many jobs match, by state and queue; not `exact` if the time was up before all were compared.")
        .takes(&[FILTER])
        .answers(200, "Count")
        .fails(&[422]),
    Route::get("/api/v1/failures", Scope::Read, failures)
        .about("The newest failed attempts.")
        .takes(&[&[
            Param::new("before", TIME, "Attempts that ended before this"),
            Param::new("limit", NUMBER, "At most this many; 20 unless given, at most 1,000"),
        ]])
        .answers(200, "FailedAttempt[]")
        .fails(&[422]),
    Route::change(Method::Post, "/api/v1/jobs", Scope::Admin, enqueue::enqueue)
        .about("Enqueues a job, or all jobs of an array or none. With `Idempotency-Key` a repeated request finds the same jobs.")
        .takes(&[enqueue::PARAMS])
        .body("JobRequest")
        .max_body(MAX_DOCUMENT_BYTES)
        .answers(201, "Enqueued")
        .fails(&[400, 404, 409, 413, 415, 422, 507]),
    Route::get("/api/v1/jobs/{id}", Scope::Read, show)
        .about("A job with its events and attempts; `id` is its id or its number.")
        .answers(200, "JobRecord")
        .fails(&[404]),
    Route::change(Method::Patch, "/api/v1/jobs/{id}", Scope::Admin, edit::edit)
        .about("Changes fields of a job that is not running; null returns a field to its default.")
        .body("JobEdit")
        .answers(200, "JobRecord")
        .fails(&[404, 409, 412, 415, 422]),
    Route::change(Method::Delete, "/api/v1/jobs/{id}", Scope::Operate, change::remove)
        .about("Deletes a job that is not running, with its history.")
        .answers_nothing()
        .fails(&[404, 409, 412]),
    Route::change(Method::Post, "/api/v1/jobs/{id}/cancel", Scope::Operate, change::cancel)
        .about("Cancels a job, and the jobs that depend on it; a running command gets SIGTERM first.")
        .answers(200, "CancelledJob")
        .fails(&[404, 409]),
    Route::change(Method::Post, "/api/v1/jobs/{id}/retry", Scope::Operate, edit::retry)
        .about("Runs a job again with fresh retries; with `edit` it is changed first, which needs the scope admin.")
        .optional_body("Retry")
        .answers(200, "Job")
        .fails(&[404, 409, 415, 422]),
    Route::change(Method::Post, "/api/v1/jobs/{id}/pause", Scope::Operate, change::pause)
        .about("Stops the command of a running job until it is resumed.")
        .answers(200, "Job")
        .fails(&[404, 409]),
    Route::change(Method::Post, "/api/v1/jobs/{id}/resume", Scope::Operate, change::resume)
        .about("Resumes the command of a paused job.")
        .answers(200, "Job")
        .fails(&[404, 409]),
    Route::change(Method::Post, "/api/v1/jobs/{id}/clone", Scope::Admin, edit::clone)
        .about("Enqueues a copy of a job, with some fields changed.")
        .optional_body("JobEdit")
        .answers(201, "Job")
        .fails(&[404, 415, 422]),
    Route::get("/api/v1/jobs/{id}/explain", Scope::Read, explained)
        .about("Why a job does not run, and when it probably starts.")
        .answers(200, "Explanation")
        .fails(&[404]),
    Route::get("/api/v1/jobs/{id}/graph", Scope::Read, graph)
        .about("The jobs that a job depends on, and those that depend on it.")
        .answers(200, "Graph")
        .fails(&[404]),
];

fn count(call: &Call<'_>) -> Result<Answer, Problem> {
    let request = FilterRequest::from_query(call.query())?;
    let _place = if request.is_search() { Some(enter_search(call)?) } else { None };
    let store = call.store()?;
    let count = store.count(&request.resolve(store)?, Some(SEARCH_BUDGET))?;
    Answer::json(&CountJson::from(&count))
}

fn failures(call: &Call<'_>) -> Result<Answer, Problem> {
    let limit = call.query().bounded("limit", 20, 1_000)?;
    let failures = call.store()?.newest_failures(call.query().read("before")?, limit)?;
    Answer::json(&failures.iter().map(FailedAttemptJson::from).collect::<Vec<_>>())
}

fn show(call: &Call<'_>) -> Result<Answer, Problem> {
    let id = call.job()?;
    let record = call.store()?.record(&id)?.ok_or(OpError::NoSuchJob(id))?;
    Answer::json(&RecordJson::from(&record))
}

fn explained(call: &Call<'_>) -> Result<Answer, Problem> {
    let explanation = explain(call.store()?, &call.job()?, &TimeFormat::Full)?;
    Answer::json(&ExplanationJson::from(&explanation))
}

fn graph(call: &Call<'_>) -> Result<Answer, Problem> {
    let id = call.job()?;
    let graph = call.store()?.graph(&id, MAX_GRAPH_NODES)?.ok_or(OpError::NoSuchJob(id))?;
    Answer::json(&GraphJson::from(&graph))
}
