//! The diagnosis of `doctor`. It reads much, so its answer is kept for a while.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::http::StatusCode;

use super::table::Route;
use crate::doors::scope::Scope;
use crate::problem::Problem;
use crate::request::answer::Answer;
use crate::request::call::Call;
use domain::values::clock::TimeFormat;
use ops::doctor::{DiagnosisJson, diagnose};
use ops::escape::to_json;
use store::sqlite::Depth;

/// A diagnosis is made at most once in this time.
const KEPT: Duration = Duration::from_secs(10);

pub(crate) const ROUTES: &[Route] = &[Route::get("/api/v1/doctor", Scope::Read, show)
    .about("What `queuectl doctor` finds; at most once in 10 seconds.")
    .answers(200, "Diagnosis")];

/// The last diagnosis as JSON.
#[derive(Debug, Default)]
pub(crate) struct LastDiagnosis(Mutex<Option<(Instant, String)>>);

fn show(call: &Call<'_>) -> Result<Answer, Problem> {
    // Others wait for a diagnosis that is being made, and get it too.
    let mut last = call.server.diagnosis.0.lock().unwrap_or_else(PoisonError::into_inner);
    if last.as_ref().is_none_or(|(at, _)| at.elapsed() >= KEPT) {
        let args = &call.server.options.location_args;
        let diagnosis = diagnose(args, Depth::Quick, &|_| (), &TimeFormat::Full);
        let json = to_json(&DiagnosisJson::new(&diagnosis, None));
        *last = Some((Instant::now(), json.map_err(|error| Problem::invalid(error.to_string()))?));
    }
    let text = last.as_ref().map(|(_, text)| text.clone()).unwrap_or_default();
    Ok(Answer::text(StatusCode::OK, "application/json", text))
}
