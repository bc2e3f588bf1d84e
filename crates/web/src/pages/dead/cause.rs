//! One cause: its jobs, and the retry of one of them before the rest. The retried job is in the URL, so the page shows how
//! it runs however often it is loaded.

use maud::{Markup, html};

use super::trend::Trends;
use super::{actions, jobs_of_cause, only_queue, restricted};
use crate::pages::view::{Place, View};
use crate::pages::visit::Visit;
use crate::parts::button::Act;
use crate::parts::job_row::cut;
use crate::parts::number::{counted, grouped};
use crate::parts::{cli, job_row, state, time};
use crate::problem::Problem;
use crate::request::query::{Param, TEXT, encode};
use domain::job::life::StateName;
use domain::job::{Ending, Job, JobRecord};
use domain::text::hostile::printable;
use domain::values::name::JobId;
use ops::OpError;
use ops::jobs::dlq::{CauseGroup, find_cause, group_by_cause};
use store::{JobFilter, Phase, Search};

pub(crate) const PARAMS: &[Param] =
    &[Param::new("canary", TEXT, "The job that was retried before the others"), super::PARAMS[0]];

const ROWS: usize = 50;

pub(crate) fn show(visit: &Visit<'_>) -> Result<View, Problem> {
    let canary: Option<JobId> = visit.query.read("canary")?;
    let canary = canary.map(|id| visit.store.record(&id)).transpose()?.flatten();
    let group = find(visit)?;
    if group.is_none() && canary.is_none() {
        let typed = visit.param("cause");
        let detail =
            format!("no dead job has the cause `{typed}`; its jobs may have been retried or removed");
        return Err(Problem::not_found(detail).with_hint("the page Dead has the causes that are there now"));
    }
    let mut view = View::new("Cause", Place::Dead).with("cause", "Cause", head(visit, group.as_ref())?);
    if let Some(record) = &canary {
        view = view.with("canary", "The job that was retried first", trial(visit, record, group.as_ref()));
    }
    let Some(group) = &group else { return Ok(view) };
    let queue = visit.query.read("queue")?;
    let filter =
        JobFilter { cause: Some(group.id), queue, ..JobFilter::in_phase(Phase::State(StateName::Dead)) };
    let found = visit.store.search(&Search { filter, limit: ROWS, ..Search::default() })?;
    Ok(view.with("jobs-of-cause", "Its jobs", jobs(visit, group, &found.jobs)))
}

/// `None` if no dead job has the cause any more.
fn find(visit: &Visit<'_>) -> Result<Option<CauseGroup>, Problem> {
    match find_cause(visit.store, visit.param("cause")) {
        Ok(id) => {
            let Some(queue) = visit.query.read("queue")? else {
                return Ok(visit.store.cause(id)?.map(CauseGroup::from));
            };
            let of_queue = JobFilter { queue: Some(queue), ..JobFilter::default() };
            Ok(group_by_cause(visit.store, &of_queue)?.into_iter().find(|group| group.id == id))
        }
        Err(OpError::NoSuch { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn head(visit: &Visit<'_>, group: Option<&CauseGroup>) -> Result<Markup, Problem> {
    let Some(group) = group else {
        return Ok(html! {
            div .bar { h1 { "Cause" } a href=(restricted(visit, "/dead", None)) { "all causes" } }
            p .empty { "No dead job has this cause any more" @if let Some(queue) = only_queue(visit) { " in queue " (printable(queue)) } "." }
        });
    };
    let trends = Trends::read(visit, std::iter::once(group), visit.query.read("queue")?.as_ref())?;
    Ok(html! {
        div .bar { h1 { (counted(group.count, "dead job", "dead jobs")) }
            @if let Some(queue) = only_queue(visit) {
                a .chip href=(visit.url(&format!("/dead/{}", encode(&group.id.to_string())))) title="Remove this filter" { "queue:" (printable(queue)) " ×" }
            }
            a href=(restricted(visit, "/dead", None)) { "all causes" }
        }
        pre .command { (printable(&cut(&group.message))) }
        div .cause-head {
            dl {
                dt { "reason" } dd { (group.reason.replace('_', " ")) }
                dt { "queues" } dd { @for queue in &group.queues {
                    a href=(visit.url(&format!("/queues/{}", encode(queue.as_str())))) { (printable(queue.as_str())) } " "
                } }
                dt { "first" } dd { (time::ago(visit.now, group.first_at)) }
                dt { "last" } dd { (time::ago(visit.now, group.last_at)) }
            }
            (trends.markup(group))
        }
        (actions::of_cause(visit, group))
    })
}

/// How the retried job does, and what follows from it.
fn trial(visit: &Visit<'_>, record: &JobRecord, group: Option<&CauseGroup>) -> Markup {
    let job = &record.job;
    let last = record.history.last().and_then(|attempt| attempt.ending.as_ref());
    let state = job.life.state.name();
    html! {
        h2 { "Retried first" }
        div .trial {
            p {
                (state::of_job(job, visit.now)) " "
                a .id href=(visit.job_url(&job.id)) { (printable(&job.handle())) } " "
                (progress(visit, job, last))
            }
            @match state {
                StateName::Completed => (succeeded(visit, group)),
                StateName::Dead => p { "It died again, so the cause is still there: " a href=(visit.job_url(&job.id)) { "see its output, or edit and retry it" } "." },
                StateName::Cancelled => p { "It was cancelled." },
                StateName::Pending | StateName::Processing | StateName::Failed => (running(visit, job)),
            }
        }
    }
}

fn progress(visit: &Visit<'_>, job: &Job, last: Option<&Ending>) -> Markup {
    let since = job.life.state.lease().map(|lease| lease.started_at);
    html! {
        @match (since, last) {
            (Some(since), _) => { "runs, started " (time::ago(visit.now, since)) },
            (None, Some(ending)) if job.life.state.name().is_finished() => {
                "after " (time::span(ending.duration))
                @if let Some(error) = &ending.error { " · " span .error { (printable(&cut(error))) } }
            },
            (None, _) => "waits for a worker",
        }
    }
}

fn running(visit: &Visit<'_>, job: &Job) -> Markup {
    let cancel = Act {
        label: "stop here",
        method: "POST",
        path: visit.url(&format!("/api/v1/jobs/{}/cancel", encode(job.id.as_str()))),
        cli: cli::line(&["cancel", job.id.as_str()]),
        ..Act::default()
    };
    html! {
        p { "The others wait until it has ended." }
        @if visit.may_operate() { div .actions { (cancel.markup()) } }
    }
}

fn succeeded(visit: &Visit<'_>, group: Option<&CauseGroup>) -> Markup {
    let Some(group) = group else {
        return html! { p { "It succeeded, and it was the last job of this cause. " a href=(restricted(visit, "/dead", None)) { "All causes" } } };
    };
    let label = format!("retry the other {}", grouped(group.count));
    html! {
        p { "It succeeded, so the cause seems to be gone." }
        @if visit.may_operate() {
            div .actions {
                (actions::retry(visit, group, &label).markup())
                a href=(restricted(visit, "/dead", None)) { "stop here" }
            }
        }
    }
}

fn jobs(visit: &Visit<'_>, group: &CauseGroup, jobs: &[Job]) -> Markup {
    html! {
        h2 { "Its jobs" }
        div .scroll { table .rows.jobs { (job_row::head(false)) tbody { @for job in jobs { (job_row::row(visit, job, false)) } } } }
        @if group.count > jobs.len() as u64 {
            p .pager { a href=(jobs_of_cause(visit, group)) { "all " (grouped(group.count)) } }
        }
    }
}
