//! Batches, with an estimate of the time that they still need.

use serde::Serialize;

use super::actions::start;
use super::table::{Method, Route};
use crate::actions::ActionTargets;
use crate::doors::scope::Scope;
use crate::problem::Problem;
use crate::request::answer::Answer;
use crate::request::call::Call;
use crate::request::query::{NUMBER, Param};
use domain::batch::eta::{CompletionRate, EtaFacts};
use ops::jobs::batch::find;
use ops::jobs::change::{Verb, default_phases};
use ops::json::BatchJson;
use ops::worker::live::{live_workers, slots_for_new_jobs};
use store::{Batch, JobFilter, Store};

pub(crate) const ROUTES: &[Route] = &[
    Route::get("/api/v1/batches", Scope::Read, list)
        .about("The newest batches.")
        .takes(&[&[Param::new("limit", NUMBER, "At most this many; 100 unless given, at most 1,000")]])
        .answers(200, "Batch[]"),
    Route::get("/api/v1/batches/{batch}", Scope::Read, show)
        .about("A batch, with an estimate of the time that it still needs.")
        .answers(200, "BatchRecord")
        .fails(&[404, 422]),
    Route::change(Method::Post, "/api/v1/batches/{batch}/cancel", Scope::Operate, cancel)
        .about("Cancels the unfinished jobs of a batch.")
        .answers(202, "Action")
        .fails(&[404, 422, 429]),
];

#[derive(Serialize)]
struct BatchRecordJson<'a> {
    #[serde(flatten)]
    batch: BatchJson<'a>,
    /// In milliseconds; null if it cannot be estimated, or if the batch has finished.
    eta_ms: Option<u64>,
}

fn list(call: &Call<'_>) -> Result<Answer, Problem> {
    let limit = call.query().bounded("limit", 100, 1_000)?;
    Answer::json(&call.store()?.batches(limit)?.iter().map(BatchJson::from).collect::<Vec<_>>())
}

fn show(call: &Call<'_>) -> Result<Answer, Problem> {
    let store = call.store()?;
    let batch = find(store, &call.name("batch")?)?;
    Answer::json(&BatchRecordJson { batch: (&batch).into(), eta_ms: eta(store, &batch)? })
}

pub(crate) fn eta(store: &dyn Store, batch: &Batch) -> Result<Option<u64>, Problem> {
    if batch.finished_at.is_some() {
        return Ok(None);
    }
    let slots = slots_for_new_jobs(&live_workers(store)?);
    let facts = EtaFacts { slots, ..store.eta_facts(&batch.name)? };
    let left = CompletionRate::default().time_left(batch.total() - batch.finished(), &facts);
    Ok(left.map(|left| u64::try_from(left.as_millis()).unwrap_or(u64::MAX)))
}

fn cancel(call: &Call<'_>) -> Result<Answer, Problem> {
    let batch = find(call.store()?, &call.name("batch")?)?;
    let phases = default_phases(Verb::CANCEL);
    let filter = JobFilter { batch: Some(batch.name), phases, ..JobFilter::default() };
    let count = call.store()?.count(&filter, None)?.count;
    start(call, "cancel", Verb::CANCEL, ActionTargets::Filter { filter: Box::new(filter), count })
}
