//! Workers: listing and stopping them.

use std::time::Duration;

use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::json;

use super::table::{Method, Route};
use crate::doors::scope::Scope;
use crate::problem::Problem;
use crate::request::answer::Answer;
use crate::request::call::Call;
use domain::values::name::WorkerId;
use domain::values::span::parse_span;
use engine::forget;
use ops::json::WorkerJson;
use ops::worker::live::live_workers;
use ops::worker::stop::{Scope as StopScope, order};
use store::settings::in_force;
use store::{Store, StoreError};

pub(crate) const ROUTES: &[Route] = &[
    Route::get("/api/v1/workers", Scope::Read, list).about("The live workers.").answers(200, "Worker[]"),
    Route::get("/api/v1/workers/{worker}", Scope::Read, show)
        .about("A worker.")
        .answers(200, "Worker")
        .fails(&[404, 422]),
    Route::change(Method::Post, "/api/v1/workers/stop", Scope::Operate, stop)
        .about("Orders workers to finish their running jobs and exit; answers with those workers at once.")
        .optional_body("Stop")
        .answers(202, "Worker[]")
        .fails(&[415, 422]),
    Route::change(Method::Post, "/api/v1/workers/{worker}/stop", Scope::Operate, stop_one)
        .about("Orders one worker to finish its running jobs and exit; answers with it at once.")
        .optional_body("StopWorker")
        .answers(202, "Worker")
        .fails(&[404, 415, 422]),
    Route::change(Method::Post, "/api/v1/workers/{worker}/forget", Scope::Operate, forget_worker)
        .about("Releases the jobs of a worker whose machine is gone for good.")
        .answers(200, "ForgottenWorker")
        .fails(&[404, 409, 422]),
];

/// How long running jobs may still take.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct GraceRequest {
    now: bool,
    timeout: Option<String>,
}

impl GraceRequest {
    fn resolve(&self, store: &dyn Store) -> Result<Option<Duration>, Problem> {
        match self.timeout.as_deref().map(parse_span).transpose() {
            Ok(Some(_)) if self.now => Err(Problem::invalid("`now` and `timeout` exclude each other")),
            Ok(Some(timeout)) => Ok(Some(timeout)),
            Ok(None) if self.now => Ok(Some(Duration::ZERO)),
            Ok(None) => Ok(in_force(store)?.shutdown_grace),
            Err(error) => Err(Problem::invalid(format!("invalid timeout ({error})"))),
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct StopRequest {
    now: bool,
    timeout: Option<String>,
    everywhere: bool,
}

fn list(call: &Call<'_>) -> Result<Answer, Problem> {
    Answer::json(&live_workers(call.store()?)?.iter().map(WorkerJson::from).collect::<Vec<_>>())
}

fn show(call: &Call<'_>) -> Result<Answer, Problem> {
    let id: WorkerId = call.name("worker")?;
    let workers = call.store()?.workers()?;
    let worker = workers.iter().find(|worker| worker.id == id).ok_or(StoreError::NoSuchWorker(id))?;
    Answer::json(&WorkerJson::from(worker))
}

fn stop(call: &Call<'_>) -> Result<Answer, Problem> {
    let StopRequest { now, timeout, everywhere } = call.body_or_default()?;
    let grace = GraceRequest { now, timeout };
    let store = call.store()?;
    let home = &call.server.options.location.home;
    let scope = if everywhere { StopScope::Everywhere } else { StopScope::Home(home) };
    let stopping = order(store, scope, grace.resolve(store)?, call.by())?;
    let workers: Vec<WorkerJson<'_>> = stopping.workers.iter().map(WorkerJson::from).collect();
    Ok(Answer::json(&workers)?.with_status(StatusCode::ACCEPTED))
}

fn stop_one(call: &Call<'_>) -> Result<Answer, Problem> {
    let grace: GraceRequest = call.body_or_default()?;
    let (id, store): (WorkerId, _) = (call.name("worker")?, call.store()?);
    let stopping = order(store, StopScope::Worker(&id), grace.resolve(store)?, call.by())?;
    let worker = stopping.workers.first().ok_or(StoreError::NoSuchWorker(id))?;
    Ok(Answer::json(&WorkerJson::from(worker))?.with_status(StatusCode::ACCEPTED))
}

fn forget_worker(call: &Call<'_>) -> Result<Answer, Problem> {
    let (id, store): (WorkerId, _) = (call.name("worker")?, call.store()?);
    let leases = forget(store, &id)?;
    store.note("worker_forget", call.by(), id.as_str())?;
    let jobs: Vec<&str> = leases.iter().map(|lease| lease.job.as_str()).collect();
    Answer::json(&json!({ "worker": id.as_str(), "jobs": jobs }))
}
