//! Whether the server and its store work, metrics, and the description of the API.

use axum::http::StatusCode;
use serde_json::json;

use super::table::{Method, Produces, Route};
use crate::doors::scope::Scope;
use crate::http_metrics;
use crate::openapi;
use crate::problem::Problem;
use crate::request::answer::Answer;
use crate::request::call::Call;
use ops::metrics::{measure, prometheus};

pub(crate) const ROUTES: &[Route] = &[
    Route::open(Method::Get, "/healthz", alive)
        .about("Answers while the server runs.")
        .answers(200, "Health"),
    Route::open(Method::Get, "/readyz", ready)
        .about("Answers while the store can be read.")
        .answers(200, "Health")
        .fails(&[500, 503]),
    Route::get("/metrics", Scope::Metrics, metrics)
        .about("Metrics in the text format of Prometheus; the scope `metrics` is enough.")
        .producing(&[Produces::Text]),
    Route::get("/api/v1/openapi.json", Scope::Read, document)
        .about("Describes this API.")
        .answers(200, "Document"),
];

fn alive(_: &Call<'_>) -> Result<Answer, Problem> {
    Answer::json(&json!({ "status": "ok" }))
}

fn ready(call: &Call<'_>) -> Result<Answer, Problem> {
    call.store()?.has_worker()?;
    alive(call)
}

fn metrics(call: &Call<'_>) -> Result<Answer, Problem> {
    let measured = measure(call.store()?, &call.server.options.location, None)?;
    let text = prometheus::text(&measured) + &http_metrics::text(call.server);
    Ok(Answer::text(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", text))
}

#[expect(clippy::unnecessary_wraps, reason = "a handler may fail; this one cannot")]
fn document(call: &Call<'_>) -> Result<Answer, Problem> {
    let text = openapi::document_at(&call.server.options.base_path);
    Ok(Answer::text(StatusCode::OK, "application/json", text))
}
