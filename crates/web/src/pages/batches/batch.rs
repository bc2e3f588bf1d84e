//! One batch: how far it is, and its jobs, failed ones first.

use maud::{Markup, html};

use super::{ORDER, count_of, end, states};
use crate::pages::view::{Place, View};
use crate::pages::visit::Visit;
use crate::parts::button::Act;
use crate::parts::number::{counted, grouped};
use crate::parts::{bar, cli, job_row};
use crate::problem::Problem;
use crate::request::query::encode;
use domain::job::Job;
use domain::text::hostile::printable;
use domain::values::name::BatchName;
use ops::jobs::batch::{eta_ms, find};
use store::{Batch, JobFilter, Page, Phase};

const ROWS: usize = 100;

pub(crate) fn show(visit: &Visit<'_>) -> Result<View, Problem> {
    let name: BatchName = visit.name("batch")?;
    let batch = find(visit.store, &name)?;
    let eta_ms = eta_ms(visit.store, &batch)?;
    let jobs = first_jobs(visit, &batch)?;
    Ok(View::new(format!("Batch {name}"), Place::Batches)
        .with("batch", "Batch", head(visit, &batch, eta_ms))
        .with("jobs-of-batch", "Its jobs", list(visit, &batch, &jobs)))
}

fn first_jobs(visit: &Visit<'_>, batch: &Batch) -> Result<Vec<Job>, Problem> {
    let mut jobs = Vec::new();
    for state in ORDER.into_iter().filter(|state| batch.counts.contains_key(state)) {
        let filter =
            JobFilter { batch: Some(batch.name.clone()), ..JobFilter::in_phase(Phase::State(state)) };
        let limit = ROWS - jobs.len();
        if limit > 0 {
            jobs.extend(visit.store.list(&filter, &Page { limit, after: None })?);
        }
    }
    Ok(jobs)
}

fn head(visit: &Visit<'_>, batch: &Batch, eta_ms: Option<u64>) -> Markup {
    let name = batch.name.as_str();
    let left = batch.total() - batch.finished();
    html! {
        div .bar {
            h1 { "Batch " (printable(name)) }
            a href=(visit.url("/batches")) { "all batches" }
            (cli::copyable(&cli::line(&["batch", "show", name])))
        }
        (bar::states(&count_of(batch)))
        p .facts {
            span { b { (grouped(batch.finished())) } " of " b { (grouped(batch.total())) } " finished" }
            span { @if batch.finished_at.is_some() { "ended " } @else { "ends " } (end(visit, batch, eta_ms)) }
            (states(visit, batch))
        }
        @if visit.may_operate() && left > 0 {
            div .actions { (cancel(visit, name, left).markup()) (cli::copyable(&cli::line(&["batch", "cancel", name]))) }
        }
    }
}

fn cancel<'a>(visit: &Visit<'_>, name: &str, left: u64) -> Act<'a> {
    Act {
        label: "cancel",
        method: "POST",
        path: visit.url(&format!("/api/v1/batches/{}/cancel", encode(name))),
        ask: format!(
            "Cancel the {} of batch {name}? Running ones are stopped.",
            counted(left, "unfinished job", "unfinished jobs")
        ),
        cli: cli::line(&["batch", "cancel", name]),
        type_in: if left > 1 { left.to_string() } else { String::new() },
        is_final: true,
        ..Act::default()
    }
}

fn list(visit: &Visit<'_>, batch: &Batch, jobs: &[Job]) -> Markup {
    html! {
        h2 { "Its jobs" }
        div .scroll { table .rows.jobs { (job_row::head(false)) tbody { @for job in jobs { (job_row::row(visit, job, false)) } } } }
        @if batch.total() > jobs.len() as u64 {
            p .pager { a href=(visit.jobs_url(&[("batch", batch.name.as_str())])) { "all " (grouped(batch.total())) } }
        }
    }
}
