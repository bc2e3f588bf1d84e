//! The job that a handle on the command line stands for, and the job that a verb takes if no handle is given.

use std::collections::HashSet;

use crate::confirm::is_interactive;
use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::render::table::truncate_middle;
use crate::render::text::printable;
use crate::verbs::manage::change::report_and_continue;
use domain::job::life::StateName;
use domain::values::name::JobId;
use ops::OpError;
use ops::error::HOW_TO_LIST_JOBS;
use ops::jobs::handle;
use ops::jobs::handle::{Handle, MAX_CANDIDATES, Place, Resolution};
use store::{JobFilter, Page, Phase, Store};

/// Jobs that were named one by one.
#[derive(Debug)]
pub(crate) struct NamedJobs {
    pub(crate) ids: Vec<JobId>,
    /// Whether a handle was ambiguous, or a number that no job has. It was reported, and the verb continues with the other jobs.
    pub(crate) worst: Option<Exit>,
}

impl From<JobId> for NamedJobs {
    fn from(id: JobId) -> Self {
        Self { ids: vec![id], worst: None }
    }
}

/// Jobs to change or wait for, without duplicates. An invalid handle is refused before anything is done.
pub(crate) fn resolve_ids(context: &Context, typed: &[String]) -> Result<NamedJobs, Failure> {
    let handles: Vec<Handle> = typed.iter().map(|typed| parse(typed)).collect::<Result<_, _>>()?;
    let mut named = NamedJobs { ids: Vec::with_capacity(handles.len()), worst: None };
    let mut known = HashSet::with_capacity(handles.len());
    for (handle, typed) in handles.iter().zip(typed) {
        match resolve(context, handle, typed, Purpose::Change) {
            Ok(id) => named.ids.extend(known.insert(id.clone()).then_some(id)),
            Err(failure) if failure.exit == Exit::Conflict || matches!(handle, Handle::Number(_)) => {
                named.worst = named.worst.max(Some(report_and_continue(context, &failure)));
            }
            Err(failure) => return Err(failure),
        }
    }
    Ok(named)
}

/// As [`resolve_ids`], for one job.
pub(crate) fn resolve_id(context: &Context, typed: &str) -> Result<JobId, Failure> {
    resolve(context, &parse(typed)?, typed, Purpose::Change)
}

/// The id of a job that is only read.
pub(crate) fn resolve_id_to_show(context: &Context, typed: &str) -> Result<JobId, Failure> {
    resolve(context, &parse(typed)?, typed, Purpose::Show)
}

/// The given job, or the latest one.
pub(crate) fn resolve_or_latest(context: &Context, typed: Option<&str>) -> Result<JobId, Failure> {
    match typed {
        Some(typed) => resolve_id_to_show(context, typed),
        None => latest(context.store()?),
    }
}

/// The latest job, for a verb that changes it. In a script no person sees which job that is, so a handle is required.
pub(crate) fn latest_to_change(context: &Context) -> Result<JobId, Failure> {
    if is_interactive() { latest(context.store()?) } else { Err(no_jobs_given()) }
}

/// As [`latest_to_change`], of the jobs that have not ended.
pub(crate) fn latest_unfinished_to_change(context: &Context) -> Result<JobId, Failure> {
    if !is_interactive() {
        return Err(no_jobs_given());
    }
    let states = StateName::ALL.into_iter().filter(|state| !state.is_finished());
    let unfinished = JobFilter { phases: states.map(Phase::State).collect(), ..JobFilter::default() };
    let latest = context.store()?.list(&unfinished, &Page { limit: 1, after: None })?.into_iter().next();
    latest.map(|job| job.id).ok_or_else(|| Failure::new(Exit::NotFound, "no job is waiting or running"))
}

pub(crate) fn no_jobs_given() -> Failure {
    Failure::usage("no jobs given").with_hint(
        "give ids or numbers, or select with --state, --queue, --tag, --batch, --older-than or --command-like",
    )
}

fn latest(store: &dyn Store) -> Result<JobId, Failure> {
    store.latest()?.ok_or_else(no_jobs)
}

fn no_jobs() -> Failure {
    Failure::new(Exit::NotFound, "there are no jobs").with_hint("try `queuectl enqueue echo hi`")
}

fn parse(typed: &str) -> Result<Handle, Failure> {
    Ok(typed.parse().map_err(|source| OpError::BadName { what: "id", typed: typed.to_owned(), source })?)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Show,
    Change,
}

/// The id that the handle stands for. If there is no such job, the id as typed: the verb reports that, and continues with
/// the other jobs.
///
/// A chosen id may be the beginning of another: after job `build-1` is deleted, a script that names it must not change
/// `build-10`. And any text may be the end of a generated id. So a script that changes jobs must name them by their whole
/// ids, by numbers, or by the beginnings of generated ids, which are never ids of other jobs. At a terminal the user reads
/// which job was used.
fn resolve(context: &Context, handle: &Handle, typed: &str, purpose: Purpose) -> Result<JobId, Failure> {
    let store = context.store()?;
    let may_guess = purpose == Purpose::Show || is_interactive();
    match handle::resolve(store, handle)? {
        Resolution::Job(id) | Resolution::Nothing(id) => Ok(id),
        Resolution::Part { only, place, .. }
            if may_guess || place == Place::Beginning && only.is_generated() =>
        {
            let has = if place == Place::Beginning { "starting" } else { "ending" };
            context.hint(&format!("using {only} (the only id {has} with \"{typed}\")"))?;
            Ok(only)
        }
        Resolution::Part { typed, only, .. } => {
            context.hint(&format!("\"{typed}\" is a part of {only}; scripts must give the whole id"))?;
            Ok(typed)
        }
        Resolution::NoNumber(number) => {
            Err(Failure::new(Exit::NotFound, format!("there is no job %{number}"))
                .with_hint(HOW_TO_LIST_JOBS))
        }
        Resolution::NoJobs => Err(no_jobs()),
        Resolution::Ambiguous(candidates) => Err(ambiguous(store, typed, &candidates)?),
    }
}

/// A longer command is shortened.
const MAX_LABEL_WIDTH: usize = 40;

/// Names the candidates with what tells them apart.
fn ambiguous(store: &dyn Store, typed: &str, candidates: &[JobId]) -> Result<Failure, Failure> {
    let mut described = Vec::new();
    for id in candidates.iter().take(MAX_CANDIDATES) {
        if let Some(job) = store.find(id)? {
            let id = if job.id.is_generated() { String::new() } else { format!(" {}", job.id) };
            let label = truncate_middle(&printable(job.label()), MAX_LABEL_WIDTH);
            described.push(format!("{}{id} ({}, {label})", job.number, job.life.state.name().name()));
        }
    }
    if candidates.len() > MAX_CANDIDATES {
        described.push("and more".to_owned());
    }
    let failure = Failure::new(Exit::Conflict, format!("several jobs match \"{typed}\""));
    Ok(failure.with_hint(described.join(", ")))
}
