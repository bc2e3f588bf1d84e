//! Actions on many jobs: a dry run, a start, progress and a stop.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use serde::{Deserialize, Serialize};

use super::table::{Method, Route};
use crate::actions::{Action, ActionTargets, NewAction};
use crate::doors::scope::Scope;
use crate::problem::Problem;
use crate::request::answer::Answer;
use crate::request::call::Call;
use crate::request::filter::FilterRequest;
use domain::job::life::StateName;
use domain::values::name::JobId;
use ops::jobs::change::{Verb, by_state, changeable, default_phases};
use store::{JobFilter, JobRef, Phase, Store};

pub(crate) const ROUTES: &[Route] = &[
    Route::change(Method::Post, "/api/v1/actions", Scope::Operate, create)
        .about("Changes all jobs of a filter or a list of ids, in the background; with `dry_run` it only counts them.")
        .body("NewAction")
        .answers(202, "ActionOrPreview")
        .fails(&[400, 409, 415, 422, 429]),
    Route::get("/api/v1/actions", Scope::Operate, list)
        .about("The latest actions of this server.")
        .answers(200, "Action[]"),
    Route::get("/api/v1/actions/{action}", Scope::Operate, show)
        .about("The progress of an action.")
        .answers(200, "Action")
        .fails(&[404]),
    Route::change(Method::Delete, "/api/v1/actions/{action}", Scope::Operate, stop)
        .about("Stops an action; what it has changed stays changed.")
        .answers(200, "Action")
        .fails(&[404]),
];

/// A dry run counts for at most this long.
const COUNT_BUDGET: Duration = Duration::from_secs(2);
/// At most this many ids are given one by one.
const MAX_IDS: usize = 10_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ActionRequest {
    verb: String,
    filter: Option<FilterRequest>,
    ids: Option<Vec<JobId>>,
    #[serde(default)]
    dry_run: bool,
    /// How many jobs the caller has seen.
    expect: Option<u64>,
}

#[derive(Serialize)]
struct PreviewJson {
    count: u64,
    exact: bool,
    by_state: BTreeMap<&'static str, u64>,
}

/// A verb of the API: its name, what it does, whether it destroys, and the only state that it is for.
struct ActionVerb {
    name: &'static str,
    verb: Verb,
    is_final: bool,
    only: Option<StateName>,
}

const VERBS: [ActionVerb; 4] = [
    ActionVerb { name: "cancel", verb: Verb::CANCEL, is_final: false, only: None },
    ActionVerb { name: "retry", verb: Verb::Retry, is_final: false, only: None },
    ActionVerb { name: "remove", verb: Verb::Remove, is_final: true, only: None },
    ActionVerb { name: "purge", verb: Verb::Remove, is_final: true, only: Some(StateName::Dead) },
];

fn create(call: &Call<'_>) -> Result<Answer, Problem> {
    let request: ActionRequest = call.body()?;
    let verb = VERBS.iter().find(|verb| verb.name == request.verb).ok_or_else(|| {
        Problem::invalid(format!("unknown verb `{}`", request.verb))
            .with_hint("the verbs are cancel, retry, remove and purge")
    })?;
    let (targets, preview) = select_jobs(call, &request, verb)?;
    if request.dry_run {
        return Answer::json(&preview);
    }
    check_expected(&request, verb, preview.count)?;
    start(call, verb.name, verb.verb, targets)
}

/// What cannot be undone must not hit more jobs than the caller has seen.
fn check_expected(request: &ActionRequest, verb: &ActionVerb, count: u64) -> Result<(), Problem> {
    match request.expect {
        None if verb.is_final => {
            Err(Problem::invalid(format!("`{}` needs `expect`: the number of jobs", verb.name))
                .with_hint("`dry_run` counts them"))
        }
        Some(expected) if count > expected => {
            Err(Problem::conflict(format!("{count} jobs match by now, more than the expected {expected}")))
        }
        Some(_) | None => Ok(()),
    }
}

/// The jobs, and how many there are in each state. A dry run counts for a bounded time; a change counts exactly.
fn select_jobs(
    call: &Call<'_>,
    request: &ActionRequest,
    verb: &ActionVerb,
) -> Result<(ActionTargets, PreviewJson), Problem> {
    let store = call.store()?;
    match (&request.filter, &request.ids) {
        (Some(filter), None) if filter.is_empty() => Err(Problem::invalid("the filter is empty")
            .with_hint("name at least a state, as in {\"state\": \"dead\"}")),
        (Some(filter), None) => {
            let filter = restrict(filter.resolve(store)?, verb)?;
            let found = store.count(&filter, request.dry_run.then_some(COUNT_BUDGET))?;
            let (filter, count) = (Box::new(filter), found.count);
            Ok((ActionTargets::Filter { filter, count }, preview(count, found.is_exact, found.by_state)))
        }
        (None, Some(ids)) if ids.len() > MAX_IDS => {
            Err(Problem::invalid(format!("at most {MAX_IDS} ids can be given; use a filter")))
        }
        (None, Some(ids)) => {
            let jobs = find_all(store, ids, verb)?;
            let preview = preview(jobs.len() as u64, true, by_state(&jobs));
            Ok((ActionTargets::Jobs(jobs), preview))
        }
        (Some(_), Some(_)) | (None, None) => Err(Problem::invalid("give either `filter` or `ids`")),
    }
}

fn preview(count: u64, exact: bool, states: BTreeMap<StateName, u64>) -> PreviewJson {
    let by_state = states.into_iter().map(|(state, count)| (state.name(), count)).collect();
    PreviewJson { count, exact, by_state }
}

/// Only states that the verb can change. The caller must not believe that others are included.
fn restrict(filter: JobFilter, verb: &ActionVerb) -> Result<JobFilter, Problem> {
    let allowed: Vec<Phase> = match verb.only {
        Some(state) => vec![Phase::State(state)],
        None => changeable(verb.verb).collect(),
    };
    if filter.phases.is_empty() {
        let phases = verb.only.map_or_else(|| default_phases(verb.verb), |state| vec![Phase::State(state)]);
        return Ok(JobFilter { phases, ..filter });
    }
    match filter.phases.iter().find(|phase| !allowed.contains(phase)) {
        Some(phase) => {
            Err(Problem::invalid(format!("{} does not apply to {} jobs", verb.name, phase.name())))
        }
        None => Ok(filter),
    }
}

fn find_all(store: &dyn Store, ids: &[JobId], verb: &ActionVerb) -> Result<Vec<JobRef>, Problem> {
    let mut jobs = Vec::new();
    for id in ids {
        let Some(job) = store.find(id)? else {
            continue;
        };
        let state = job.life.state.name();
        if verb.verb.applies_to(state) && verb.only.is_none_or(|only| only == state) {
            jobs.push(JobRef { id: job.id, number: job.number, state });
        }
    }
    // In the order of a selection: from new to old.
    jobs.sort_by_key(|job| std::cmp::Reverse(job.number));
    jobs.dedup_by_key(|job| job.number);
    Ok(jobs)
}

/// Starts an action on these jobs.
pub(crate) fn start(
    call: &Call<'_>,
    name: &'static str,
    verb: Verb,
    targets: ActionTargets,
) -> Result<Answer, Problem> {
    let (now, caller) = (call.store()?.now()?, call.parts.caller.key());
    let new = NewAction { name, verb, targets, by: call.by(), caller: &caller, now };
    let action = call.server.actions.start(call.server, new)?;
    let path = call.path(&format!("/actions/{}", action.id));
    Ok(Answer::json(&action.json())?.with_status(StatusCode::ACCEPTED).at(&path))
}

fn find(call: &Call<'_>) -> Result<Arc<Action>, Problem> {
    let id = call.param("action");
    let missing = || Problem::not_found(format!("this server knows no action `{id}`"));
    call.server.actions.find(id).ok_or_else(missing)
}

fn list(call: &Call<'_>) -> Result<Answer, Problem> {
    Answer::json(&call.server.actions.list().iter().map(|action| action.json()).collect::<Vec<_>>())
}

fn show(call: &Call<'_>) -> Result<Answer, Problem> {
    Answer::json(&find(call)?.json())
}

fn stop(call: &Call<'_>) -> Result<Answer, Problem> {
    let action = find(call)?;
    action.stop();
    Answer::json(&action.json())
}
