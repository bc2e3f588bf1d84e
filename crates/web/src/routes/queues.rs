//! Queues: their jobs, limits and pauses.

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::table::{Method, Route};
use crate::doors::scope::Scope;
use crate::problem::Problem;
use crate::request::answer::Answer;
use crate::request::call::Call;
use domain::job::limits::Limits;
use domain::job::retry_rules::ExitCodes;
use domain::queue::rate::Rate;
use domain::values::name::QueueName;
use ops::OpError;
use ops::error::Named;
use ops::json::QueueJson;
use ops::queues::{MAX_CONCURRENCY, pause, remove, resume, set};
use store::{Pause, Queue, QueueUpdate, Update};

pub(crate) const ROUTES: &[Route] = &[
    Route::get("/api/v1/queues", Scope::Read, list).about("All queues.").answers(200, "Queue[]"),
    Route::get("/api/v1/queues/{queue}", Scope::Read, show)
        .about("A queue.")
        .answers(200, "Queue")
        .fails(&[404, 422]),
    Route::change(Method::Patch, "/api/v1/queues/{queue}", Scope::Operate, change)
        .about("Changes the limits of a queue; null removes one. A queue that does not exist is created.")
        .body("QueueEdit")
        .answers(200, "Queue")
        .fails(&[412, 415, 422]),
    Route::change(Method::Delete, "/api/v1/queues/{queue}", Scope::Operate, delete)
        .about("Removes a queue that has no jobs.")
        .answers_nothing()
        .fails(&[404, 409, 412, 422]),
    Route::change(Method::Post, "/api/v1/queues/{queue}/pause", Scope::Operate, pause_queue)
        .about("Keeps the jobs of a queue from starting; running jobs continue.")
        .optional_body("Pause")
        .answers(200, "Queue")
        .fails(&[415, 422]),
    Route::change(Method::Post, "/api/v1/queues/{queue}/resume", Scope::Operate, resume_queue)
        .about("Resumes a paused queue.")
        .answers(200, "Queue")
        .fails(&[422]),
];

/// Why something is paused.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct PauseRequest {
    reason: Option<String>,
}

/// The limits to change. A field that is absent stays as it is.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct QueueEdit {
    #[serde(deserialize_with = "present")]
    concurrency: Option<Value>,
    #[serde(deserialize_with = "present")]
    rate: Option<Value>,
    #[serde(deserialize_with = "present")]
    limits: Option<Value>,
    #[serde(deserialize_with = "present")]
    retry_on: Option<Value>,
    #[serde(deserialize_with = "present")]
    no_retry_on: Option<Value>,
}

/// Tells null from an absent field.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl QueueEdit {
    fn update(self) -> Result<QueueUpdate, Problem> {
        let update = QueueUpdate {
            concurrency: read(self.concurrency, "concurrency", concurrency)?,
            rate: read(self.rate, "rate", |value| {
                let text = value.as_str().ok_or("expected a text such as \"10/m\"")?;
                text.parse::<Rate>().map_err(|error| error.to_string())
            })?,
            limits: read(self.limits, "limits", from_json::<Limits>)?,
            retry_on: read(self.retry_on, "retry_on", from_json::<ExitCodes>)?,
            no_retry_on: read(self.no_retry_on, "no_retry_on", from_json::<ExitCodes>)?,
        };
        if update == QueueUpdate::default() {
            return Err(Problem::invalid("no changes given")
                .with_hint("the fields are concurrency, rate, limits, retry_on, no_retry_on"));
        }
        Ok(update)
    }
}

fn concurrency(value: Value) -> Result<u32, String> {
    let limit: Option<u32> = serde_json::from_value(value).ok();
    let limit = limit.filter(|limit| (1..=MAX_CONCURRENCY).contains(limit));
    limit.ok_or_else(|| format!("must be a whole number from 1 to {MAX_CONCURRENCY}, or null"))
}

fn from_json<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, String> {
    serde_json::from_value(value).map_err(|error| error.to_string())
}

fn read<T>(
    value: Option<Value>,
    name: &str,
    read: impl FnOnce(Value) -> Result<T, String>,
) -> Result<Update<T>, Problem> {
    match value {
        None => Ok(Update::Keep),
        Some(Value::Null) => Ok(Update::Clear),
        Some(value) => {
            read(value).map(Update::Set).map_err(|error| Problem::invalid(format!("invalid {name}: {error}")))
        }
    }
}

fn list(call: &Call<'_>) -> Result<Answer, Problem> {
    Answer::json(&call.store()?.queues()?.iter().map(QueueJson::from).collect::<Vec<_>>())
}

fn show(call: &Call<'_>) -> Result<Answer, Problem> {
    let (name, queues): (QueueName, Vec<Queue>) = (call.name("queue")?, call.store()?.queues()?);
    let Some(queue) = queues.iter().find(|queue| queue.name == name) else {
        let known = queues.iter().map(|queue| queue.name.as_str());
        return Err(OpError::no_such(Named::Queue, name.as_str(), known).into());
    };
    Answer::json(&QueueJson::from(queue))
}

fn change(call: &Call<'_>) -> Result<Answer, Problem> {
    let update = call.body::<QueueEdit>()?.update()?;
    let changed = set(call.store()?, &call.name("queue")?, &update, call.by())?;
    Answer::json(&QueueJson::from(&changed.queue))
}

fn delete(call: &Call<'_>) -> Result<Answer, Problem> {
    remove(call.store()?, &call.name("queue")?, call.by())?;
    Ok(Answer::empty())
}

/// The pause that a request asks for.
pub(crate) fn requested_pause(call: &Call<'_>) -> Result<Pause, Problem> {
    let reason = call.body_or_default::<PauseRequest>()?.reason;
    Ok(Pause { by: call.by().to_owned(), reason: reason.filter(|reason| !reason.is_empty()) })
}

fn pause_queue(call: &Call<'_>) -> Result<Answer, Problem> {
    let changed = pause(call.store()?, &call.name("queue")?, &requested_pause(call)?)?;
    Answer::json(&QueueJson::from(&changed.queue))
}

fn resume_queue(call: &Call<'_>) -> Result<Answer, Problem> {
    let changed = resume(call.store()?, &call.name("queue")?, call.by())?;
    Answer::json(&QueueJson::from(&changed.queue))
}
