//! Batches, with an estimate of the time that they still need.

use super::actions::start;
use super::table::{Method, Route};
use crate::actions::ActionTargets;
use crate::doors::scope::Scope;
use crate::problem::Problem;
use crate::request::answer::Answer;
use crate::request::call::Call;
use crate::request::query::{NUMBER, Param};
use ops::jobs::batch::{eta_ms, find};
use ops::jobs::bulk::BulkChange;
use ops::jobs::change::Verb;
use ops::json::{BatchJson, BatchRecordJson};
use store::JobFilter;

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

fn list(call: &Call<'_>) -> Result<Answer, Problem> {
    let limit = call.query().bounded("limit", 100, 1_000)?;
    Answer::json(&call.store()?.batches(limit)?.iter().map(BatchJson::from).collect::<Vec<_>>())
}

fn show(call: &Call<'_>) -> Result<Answer, Problem> {
    let store = call.store()?;
    let batch = find(store, &call.name("batch")?)?;
    Answer::json(&BatchRecordJson { batch: (&batch).into(), eta_ms: eta_ms(store, &batch)? })
}

fn cancel(call: &Call<'_>) -> Result<Answer, Problem> {
    let batch = find(call.store()?, &call.name("batch")?)?;
    let phases = BulkChange::from(Verb::CANCEL).default_phases();
    let filter = JobFilter { batch: Some(batch.name), phases, ..JobFilter::default() };
    let count = call.store()?.count(&filter, None)?.count;
    start(call, "cancel", Verb::CANCEL, ActionTargets::Filter { filter: Box::new(filter), count })
}
