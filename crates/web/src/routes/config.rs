//! Settings, and names to complete.

use serde::Deserialize;
use serde_json::json;

use super::table::{Method, Route};
use crate::doors::scope::Scope;
use crate::problem::Problem;
use crate::request::answer::Answer;
use crate::request::call::Call;
use crate::request::query::{Param, TEXT};
use domain::settings::SettingKey;
use domain::values::name::JobId;
use ops::OpError;
use ops::config::{get, list, set};
use ops::error::chain;
use store::settings::in_force;
use store::{Phase, Store};

/// How many names are suggested.
const MAX_SUGGESTIONS: usize = 20;
/// How many of the newest batches are searched.
const BATCHES_SEARCHED: usize = 1_000;

pub(crate) const ROUTES: &[Route] = &[
    Route::get("/api/v1/config", Scope::Read, all).about("All settings.").answers(200, "Setting[]"),
    Route::get("/api/v1/config/{key}", Scope::Read, show)
        .about("A setting.")
        .answers(200, "Setting")
        .fails(&[422]),
    Route::change(Method::Put, "/api/v1/config/{key}", Scope::Admin, change)
        .about("Changes a setting; workers adopt it within a second.")
        .body("SettingValue")
        .answers(200, "Setting")
        .fails(&[412, 415, 422]),
    Route::change(Method::Delete, "/api/v1/config/{key}", Scope::Admin, reset)
        .about("Returns a setting to its default.")
        .answers(200, "Setting")
        .fails(&[412, 422]),
    Route::get("/api/v1/config/{key}/check", Scope::Read, check)
        .about("What is wrong with a value of a setting, beside the other settings; changes nothing.")
        .takes(&[&[Param::new("value", TEXT, "The value")]])
        .answers(200, "SettingCheck")
        .fails(&[422]),
    Route::get("/api/v1/suggest", Scope::Read, suggest)
        .about("Names that begin with a text, at most 20.")
        .takes(&[&[
            Param::new(
                "field",
                r#"{"enum":["queue","batch","schedule","hook","worker","id","state","setting"]}"#,
                "What is named",
            ),
            Param::new("prefix", TEXT, "How the name begins"),
        ]])
        .answers(200, "Name[]")
        .fails(&[422]),
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewValue {
    value: String,
}

fn key(call: &Call<'_>) -> Result<SettingKey, Problem> {
    Ok(call.param("key").parse::<SettingKey>().map_err(OpError::from)?)
}

fn all(call: &Call<'_>) -> Result<Answer, Problem> {
    Answer::json(&list(call.store()?)?)
}

fn show(call: &Call<'_>) -> Result<Answer, Problem> {
    Answer::json(&get(call.store()?, key(call)?)?)
}

fn change(call: &Call<'_>) -> Result<Answer, Problem> {
    let new: NewValue = call.body()?;
    Answer::json(&set(call.store()?, key(call)?, Some(&new.value), call.by())?)
}

fn reset(call: &Call<'_>) -> Result<Answer, Problem> {
    Answer::json(&set(call.store()?, key(call)?, None, call.by())?)
}

/// An invalid value is an answer, not a failure: a form asks while its user types.
fn check(call: &Call<'_>) -> Result<Answer, Problem> {
    let mut settings = in_force(call.store()?)?;
    let value = call.query().get("value").unwrap_or_default();
    let checked = settings.set(key(call)?, value);
    Answer::json(&json!({ "value": value, "problem": checked.err().map(|error| chain(&error)) }))
}

fn suggest(call: &Call<'_>) -> Result<Answer, Problem> {
    let prefix = call.query().get("prefix").unwrap_or_default();
    let field = call.query().get("field").ok_or_else(|| Problem::invalid("`field` is missing"))?;
    let mut names = names(call.store()?, field, prefix)?;
    names.retain(|name| name.starts_with(prefix));
    names.truncate(MAX_SUGGESTIONS);
    Answer::json(&names)
}

fn names(store: &dyn Store, field: &str, prefix: &str) -> Result<Vec<String>, Problem> {
    let text = |name: &dyn std::fmt::Display| name.to_string();
    Ok(match field {
        "queue" => store.queues()?.iter().map(|queue| text(&queue.name)).collect(),
        "batch" => store.batches(BATCHES_SEARCHED)?.iter().map(|batch| text(&batch.name)).collect(),
        "schedule" => store.schedules()?.iter().map(|(schedule, _)| text(&schedule.name)).collect(),
        "hook" => store.hooks()?.iter().map(|hook| text(&hook.name)).collect(),
        "worker" => store.workers()?.iter().map(|worker| text(&worker.id)).collect(),
        "id" => match prefix.parse::<JobId>() {
            Ok(prefix) => {
                store.ids_with_prefix(&prefix, MAX_SUGGESTIONS)?.iter().map(|id| text(id)).collect()
            }
            Err(_) => Vec::new(),
        },
        "state" => Phase::ALL.map(Phase::name).map(str::to_owned).to_vec(),
        "setting" => SettingKey::ALL.map(SettingKey::name).map(str::to_owned).to_vec(),
        other => return Err(Problem::invalid(format!("nothing is suggested for `{other}`"))),
    })
}
