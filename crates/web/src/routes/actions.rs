//! Actions on many jobs: a dry run, a start, progress and a stop.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use serde::{Deserialize, Serialize};

use super::jobs::edit::{Fields, parse as parse_edit};
use super::table::{Method, Route};
use crate::actions::{Action, ActionTargets, NewAction};
use crate::doors::scope::Scope;
use crate::problem::Problem;
use crate::request::answer::Answer;
use crate::request::call::Call;
use crate::request::filter::FilterRequest;
use domain::job::life::StateName;
use domain::values::name::JobId;
use ops::jobs::bulk::{BulkChange, edit_many};
use ops::jobs::change::{Verb, by_state};
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
    /// The changes of `edit`.
    edit: Option<Fields>,
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
    change: BulkChange,
    is_final: bool,
    only: Option<StateName>,
}

impl ActionVerb {
    fn of(name: &'static str, verb: Verb) -> Self {
        Self { name, change: verb.into(), is_final: verb == Verb::Remove, only: None }
    }
}

fn create(call: &Call<'_>) -> Result<Answer, Problem> {
    let mut request: ActionRequest = call.body()?;
    let verb = requested_verb(call, &mut request)?;
    let (targets, preview) = select_jobs(call, &request, &verb)?;
    if request.dry_run {
        return Answer::json(&preview);
    }
    check_expected(&request, &verb, preview.count)?;
    start(call, verb.name, verb.change, targets)
}

fn requested_verb(call: &Call<'_>, request: &mut ActionRequest) -> Result<ActionVerb, Problem> {
    let edit = request.edit.take();
    if edit.is_some() && request.verb != "edit" {
        return Err(Problem::invalid(format!("`{}` takes no `edit`", request.verb)));
    }
    match request.verb.as_str() {
        "cancel" => Ok(ActionVerb::of("cancel", Verb::CANCEL)),
        "retry" => Ok(ActionVerb::of("retry", Verb::Retry)),
        "remove" => Ok(ActionVerb::of("remove", Verb::Remove)),
        "purge" => Ok(ActionVerb { only: Some(StateName::Dead), ..ActionVerb::of("purge", Verb::Remove) }),
        "edit" => {
            // As the edit of one job: a changed variable can change what its command does.
            call.require(Scope::Admin)?;
            let fields = edit.ok_or_else(|| Problem::invalid("`edit` needs the fields to change"))?;
            let change = edit_many(parse_edit(fields)?)?;
            Ok(ActionVerb { name: "edit", change, is_final: false, only: None })
        }
        unknown => Err(Problem::invalid(format!("unknown verb `{unknown}`"))
            .with_hint("the verbs are cancel, retry, edit, remove and purge")),
    }
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
        None => verb.change.changeable().collect(),
    };
    if filter.phases.is_empty() {
        let phases =
            verb.only.map_or_else(|| verb.change.default_phases(), |state| vec![Phase::State(state)]);
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
        if verb.change.applies_to(state) && verb.only.is_none_or(|only| only == state) {
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
    change: impl Into<BulkChange>,
    targets: ActionTargets,
) -> Result<Answer, Problem> {
    let (now, caller) = (call.store()?.now()?, call.parts.caller.key());
    let new = NewAction { name, change: change.into(), targets, by: call.by(), caller: &caller, now };
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
