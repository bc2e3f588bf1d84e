//! Schedules, and their calendar.

mod calendar;
mod preview;
mod request;

use axum::http::StatusCode;

use self::request::NewScheduleRequest;
use super::queues::requested_pause;
use super::table::{Method, Route};
use crate::doors::scope::Scope;
use crate::problem::Problem;
use crate::request::answer::Answer;
use crate::request::call::Call;
use crate::request::query::encode;
use ops::OpError;
use ops::json::EnqueuedJson;
use ops::schedule::json::{ScheduleJson, ScheduleRecordJson, ScheduleSummaryJson};
use ops::schedule::{add, find, remove, run, set_pause};

pub(crate) const ROUTES: &[Route] = &[
    Route::get("/api/v1/schedules", Scope::Read, list)
        .about("All schedules, each with its latest run.")
        .answers(200, "ScheduleSummary[]"),
    Route::change(Method::Post, "/api/v1/schedules", Scope::Admin, create)
        .about("Adds a schedule.")
        .body("NewSchedule")
        .answers(201, "Schedule")
        .fails(&[400, 409, 415, 422]),
    Route::get("/api/v1/schedules/{schedule}", Scope::Read, show)
        .about("A schedule with its latest runs.")
        .answers(200, "ScheduleRecord")
        .fails(&[404, 422]),
    Route::change(Method::Delete, "/api/v1/schedules/{schedule}", Scope::Admin, delete)
        .about("Removes a schedule; its jobs stay.")
        .answers_nothing()
        .fails(&[404, 412, 422]),
    Route::change(Method::Post, "/api/v1/schedules/{schedule}/pause", Scope::Operate, pause)
        .about("Keeps a schedule from enqueuing jobs.")
        .optional_body("Pause")
        .answers(200, "Schedule")
        .fails(&[404, 415, 422]),
    Route::change(Method::Post, "/api/v1/schedules/{schedule}/resume", Scope::Operate, resume)
        .about("Resumes a paused schedule.")
        .answers(200, "Schedule")
        .fails(&[404, 422]),
    Route::change(Method::Post, "/api/v1/schedules/{schedule}/run", Scope::Operate, run_now)
        .about("Enqueues the job of a schedule now.")
        .answers(201, "EnqueuedJob")
        .fails(&[404, 422]),
    Route::get("/api/v1/calendar", Scope::Read, calendar::calendar)
        .about("The runs of all schedules in a time, past and future; of very many only the numbers.")
        .takes(&[calendar::PARAMS])
        .answers(200, "CalendarEntry[]")
        .fails(&[422]),
    Route::get("/api/v1/calendar/preview", Scope::Read, preview::preview)
        .about("The next times of a schedule that does not exist yet, or what is wrong with them.")
        .takes(&[preview::PARAMS])
        .answers(200, "SchedulePreview"),
];

fn list(call: &Call<'_>) -> Result<Answer, Problem> {
    let schedules = call.store()?.schedules()?;
    Answer::json(&schedules.iter().map(ScheduleSummaryJson::from).collect::<Vec<_>>())
}

fn create(call: &Call<'_>) -> Result<Answer, Problem> {
    let request: NewScheduleRequest = call.body()?;
    let schedule =
        add(call.store()?, request.resolve()?, request::caller(&call.server.options.location), call.by())?;
    let path = call.path(&format!("/schedules/{}", encode(schedule.name.as_str())));
    Ok(Answer::json(&ScheduleJson::from(&schedule))?.with_status(StatusCode::CREATED).at(&path))
}

fn show(call: &Call<'_>) -> Result<Answer, Problem> {
    let (schedule, runs) = find(call.store()?, &call.name("schedule")?)?;
    Answer::json(&ScheduleRecordJson { schedule: (&schedule).into(), runs: &runs })
}

fn delete(call: &Call<'_>) -> Result<Answer, Problem> {
    remove(call.store()?, &call.name("schedule")?, call.by())?;
    Ok(Answer::empty())
}

fn pause(call: &Call<'_>) -> Result<Answer, Problem> {
    let pause = requested_pause(call)?;
    let schedule = set_pause(call.store()?, &call.name("schedule")?, Some(&pause), call.by())?;
    Answer::json(&ScheduleJson::from(&schedule))
}

fn resume(call: &Call<'_>) -> Result<Answer, Problem> {
    let schedule = set_pause(call.store()?, &call.name("schedule")?, None, call.by())?;
    Answer::json(&ScheduleJson::from(&schedule))
}

fn run_now(call: &Call<'_>) -> Result<Answer, Problem> {
    let store = call.store()?;
    let enqueued = run(store, &call.name("schedule")?, call.by())?;
    let id = enqueued.id();
    let job = store.find(id)?.ok_or_else(|| OpError::NoSuchJob(id.clone()))?;
    let json = EnqueuedJson { job: (&job).into(), existing: !enqueued.is_created() };
    let path = call.path(&format!("/jobs/{}", encode(id.as_str())));
    Ok(Answer::json(&json)?.with_status(StatusCode::CREATED).at(&path))
}
