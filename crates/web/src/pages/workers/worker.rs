//! One worker: its slots, its condition, and the jobs that it runs.

use maud::html;

use super::lanes::{Lanes, condition, drain, forget, is_live, served, stop_now};
use crate::pages::view::{Place, View};
use crate::pages::visit::Visit;
use crate::parts::{cli, time};
use crate::problem::Problem;
use domain::text::hostile::printable;
use domain::values::name::WorkerId;
use store::{ServedJobs, WorkerState};

pub(crate) fn show(visit: &Visit<'_>) -> Result<View, Problem> {
    let id: WorkerId = visit.name("worker")?;
    let workers = visit.store.workers()?;
    let Some(worker) = workers.iter().find(|worker| worker.id == id) else {
        return Err(Problem::not_found(format!("worker `{id}` does not run; it may have stopped"))
            .with_hint("the page Workers has those that run now"));
    };
    let lanes = Lanes::read(visit)?;
    let queues = match &worker.served {
        ServedJobs::InOrder(queues) => queues.as_slice(),
        ServedJobs::All | ServedJobs::Batch(_) | ServedJobs::Job(_) => &[],
    };
    let content = html! {
        div .bar {
            h1 { "Worker " (printable(id.as_str())) }
            (condition(visit, worker))
            a href=(visit.url("/workers")) { "all workers" }
            (cli::copyable(&cli::line(&["list", "--worker", id.as_str()])))
        }
        dl {
            dt { "host" } dd { (printable(&worker.host)) ", process " (worker.pid) }
            dt { "supervisor" } dd { @match worker.supervisor_pid { Some(pid) => { "process " (pid) }, None => "none: nothing restarts it" } }
            dt { "serves" } dd {
                @if queues.is_empty() { (served(&worker.served)) }
                @for queue in queues { a href=(visit.url(&format!("/queues/{}", crate::request::query::encode(queue.as_str())))) { (printable(queue.as_str())) } " " }
            }
            dt { "slots" } dd { (lanes.jobs(worker).len()) " of " (worker.concurrency) " busy" }
            dt { "started" } dd { (time::ago(visit.now, worker.started_at)) }
            dt { "heartbeat" } dd { (time::ago(visit.now, worker.last_heartbeat)) }
            dt { "health" } dd { (printable(worker.health.as_deref().unwrap_or("fine"))) }
            dt { "files" } dd { code { (printable(&worker.folder.display().to_string())) } }
        }
        @if visit.may_operate() {
            div .actions {
                @if !is_live(visit, worker) { (forget(visit, worker).markup()) } @else {
                    @if worker.state == WorkerState::Running { (drain(visit, worker).markup()) }
                    (stop_now(visit, worker).markup())
                }
            }
        }
    };
    let slots = html! { h2 { "Slots" } (lanes.lanes(visit, worker)) };
    Ok(View::new(format!("Worker {id}"), Place::Workers)
        .with("worker", "Worker", content)
        .with("slots", "Slots", slots))
}
