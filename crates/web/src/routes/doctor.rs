//! The diagnosis of `doctor`. It reads much, so its answer is kept for a while.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use serde::Deserialize;

use super::table::Route;
use crate::doors::scope::Scope;
use crate::problem::Problem;
use crate::request::answer::Answer;
use crate::request::call::Call;
use crate::server::Server;
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

/// A finding, as the last diagnosis has it.
#[derive(Debug, Deserialize)]
pub(crate) struct KnownFinding {
    pub(crate) check: String,
    pub(crate) level: String,
    pub(crate) said: String,
    pub(crate) advice: Option<String>,
}

#[derive(Deserialize)]
struct KnownDiagnosis {
    findings: Vec<KnownFinding>,
}

fn show(call: &Call<'_>) -> Result<Answer, Problem> {
    Ok(Answer::text(StatusCode::OK, "application/json", latest(call.server)?))
}

/// The findings for a page; none if they cannot be read.
pub(crate) fn last_findings(server: &Server) -> Vec<KnownFinding> {
    let diagnosis = latest(server).ok().and_then(|text| serde_json::from_str::<KnownDiagnosis>(&text).ok());
    diagnosis.map(|diagnosis| diagnosis.findings).unwrap_or_default()
}

fn latest(server: &Server) -> Result<String, Problem> {
    // Others wait for a diagnosis that is being made, and get it too.
    let mut last = server.diagnosis.0.lock().unwrap_or_else(PoisonError::into_inner);
    if last.as_ref().is_none_or(|(at, _)| at.elapsed() >= KEPT) {
        let args = &server.options.location_args;
        let diagnosis = diagnose(args, Depth::Quick, &|_| (), &TimeFormat::Full);
        let json = to_json(&DiagnosisJson::new(&diagnosis, None));
        *last = Some((Instant::now(), json.map_err(|error| Problem::invalid(error.to_string()))?));
    }
    Ok(last.as_ref().map(|(_, text)| text.clone()).unwrap_or_default())
}
