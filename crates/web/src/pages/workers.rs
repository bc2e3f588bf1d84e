//! The workers, and what each of them runs.

use maud::{Markup, html};

use super::view::{Place, View};
use super::visit::Visit;
use crate::parts::number::counted;
use crate::parts::{cli, job_row, time};
use crate::problem::Problem;
use domain::job::Job;
use domain::job::life::StateName;
use domain::text::hostile::printable;
use store::{JobFilter, Page, Phase, Worker};

/// More running jobs are on the page of jobs.
const MAX_RUNNING: usize = 200;

pub(super) fn show(visit: &Visit<'_>) -> Result<View, Problem> {
    let filter = JobFilter::in_phase(Phase::State(StateName::Processing));
    let running = visit.store.list(&filter, &Page { limit: MAX_RUNNING, after: None })?;
    let workers = &visit.status()?.workers;
    let view = View::new("Workers", Place::Workers);
    Ok(view.with("workers", "Workers", list(visit, workers)).with(
        "running",
        "Running jobs",
        jobs(visit, &running),
    ))
}

fn list(visit: &Visit<'_>, workers: &[Worker]) -> Markup {
    html! {
        div .bar { h1 { "Workers" } span { (counted(workers.len() as u64, "worker", "workers")) } (cli::copyable("queuectl worker list")) }
        @if workers.is_empty() {
            div .empty { p { "No worker runs, so no job starts. This starts one:" } p { (cli::copyable("queuectl worker start")) } }
        } @else {
            div .scroll {
                table .rows {
                    thead {
                        tr {
                            th scope="col" { "worker" } th scope="col" { "host" } th scope="col" .number { "process" }
                            th scope="col" { "state" } th scope="col" .number { "running" } th scope="col" { "started" }
                            th scope="col" { "heartbeat" } th scope="col" { "health" }
                        }
                    }
                    tbody { @for worker in workers { (row(visit, worker)) } }
                }
            }
        }
    }
}

fn row(visit: &Visit<'_>, worker: &Worker) -> Markup {
    html! {
        tr id=(worker.id) {
            td { a .id href=(visit.jobs_url(&[("worker", worker.id.as_str())])) { (printable(worker.id.as_str())) } }
            td { (printable(&worker.host)) }
            td .number { (worker.pid) }
            td { (worker.state.name()) }
            td .number { (worker.running) "/" (worker.concurrency) }
            td { (time::ago(visit.now, worker.started_at)) }
            td { (time::ago(visit.now, worker.last_heartbeat)) }
            td .error { (printable(worker.health.as_deref().unwrap_or("fine"))) }
        }
    }
}

fn jobs(visit: &Visit<'_>, running: &[Job]) -> Markup {
    html! {
        h2 { "Running" }
        @if running.is_empty() { p .empty { "No job runs." } } @else {
            div .scroll { table .rows.jobs { (job_row::head(false)) tbody { @for job in running { (job_row::row(visit, job, false)) } } } }
        }
    }
}
