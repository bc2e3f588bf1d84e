//! Dead jobs by cause.

use serde::Deserialize;

use super::actions::start;
use super::table::{Method, Route};
use crate::actions::ActionTargets;
use crate::doors::scope::Scope;
use crate::problem::Problem;
use crate::request::answer::Answer;
use crate::request::call::Call;
use crate::request::filter::{FILTER, from_query};
use domain::values::name::QueueName;
use ops::jobs::change::Verb;
use ops::jobs::dlq::{find_cause, group_by_cause};
use store::{JobFilter, JobRef, Search};

pub(crate) const ROUTES: &[Route] = &[
    Route::get("/api/v1/causes", Scope::Read, list)
        .about("The dead jobs, grouped by what they died of.")
        .takes(&[FILTER])
        .answers(200, "Cause[]")
        .fails(&[422]),
    Route::change(Method::Post, "/api/v1/causes/{cause}/canary", Scope::Operate, canary)
        .about("Retries some jobs that died of a cause, the latest first, to see whether it is gone.")
        .optional_body("Canary")
        .answers(202, "Action")
        .fails(&[404, 422, 429]),
];

/// More are an action on all jobs of the cause.
const MAX_CANARIES: usize = 1_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Canary {
    count: usize,
    /// Only jobs in this queue.
    queue: Option<QueueName>,
}

impl Default for Canary {
    fn default() -> Self {
        Self { count: 1, queue: None }
    }
}

fn list(call: &Call<'_>) -> Result<Answer, Problem> {
    Answer::json(&group_by_cause(call.store()?, &from_query(call)?)?)
}

fn canary(call: &Call<'_>) -> Result<Answer, Problem> {
    let Canary { count, queue } = call.body_or_default()?;
    let store = call.store()?;
    let cause = Some(find_cause(store, call.param("cause"))?);
    let filter = JobFilter { cause, queue, ..JobFilter::default() };
    let found = store.search(&Search { filter, limit: count.clamp(1, MAX_CANARIES), ..Search::default() })?;
    let jobs: Vec<JobRef> = found
        .jobs
        .into_iter()
        .map(|job| JobRef { state: job.life.state.name(), id: job.id, number: job.number })
        .collect();
    start(call, "retry", Verb::Retry, ActionTargets::Jobs(jobs))
}
