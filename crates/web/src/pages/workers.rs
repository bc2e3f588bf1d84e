//! The workers as lanes: each slot with the job that it runs.

mod lanes;
pub(super) mod worker;

use maud::{Markup, html};

use self::lanes::Lanes;
use super::view::{Place, View};
use super::visit::Visit;
use crate::parts::button::Act;
use crate::parts::cli;
use crate::parts::number::counted;
use crate::problem::Problem;
use ops::worker::live::live_and_dead_workers;
use store::Worker;

pub(super) fn show(visit: &Visit<'_>) -> Result<View, Problem> {
    let (live, dead) = live_and_dead_workers(visit.store)?;
    let lanes = Lanes::read(visit)?;
    let mut view =
        View::new("Workers", Place::Workers).with("workers", "Workers", list(visit, &live, &lanes));
    if !dead.is_empty() {
        view = view.with("silent", "Silent workers", silent(visit, &dead, &lanes));
    }
    Ok(view)
}

fn list(visit: &Visit<'_>, workers: &[Worker], lanes: &Lanes) -> Markup {
    let slots: u64 = workers.iter().map(|worker| u64::from(worker.concurrency)).sum();
    let busy: u64 = workers.iter().map(|worker| u64::from(worker.running.min(worker.concurrency))).sum();
    html! {
        div .bar {
            h1 { "Workers" }
            span { (counted(workers.len() as u64, "worker", "workers")) " · " (busy) " of " (counted(slots, "slot", "slots")) " busy" }
            @if visit.may_operate() && !workers.is_empty() { (drain(visit).markup()) (stop_now(visit).markup()) }
            (cli::copyable(&cli::typed("worker list")))
        }
        @if workers.is_empty() {
            div .empty { p { "No worker runs, so no job starts. This starts one:" } p { (cli::copyable(&cli::typed("worker start"))) } }
        } @else {
            @for worker in workers { (lanes.worker(visit, worker)) }
        }
    }
}

fn silent(visit: &Visit<'_>, workers: &[Worker], lanes: &Lanes) -> Markup {
    html! {
        h2 { "Silent" }
        p .note { "These workers did not say goodbye. Another worker takes over their jobs, unless their machine is gone for good." }
        @for worker in workers { (lanes.worker(visit, worker)) }
    }
}

/// All workers of this home on this machine.
fn drain<'a>(visit: &Visit<'_>) -> Act<'a> {
    Act {
        label: "drain",
        method: "POST",
        path: visit.url("/api/v1/workers/stop"),
        body: "{}".to_owned(),
        ask: "Drain all workers of this queue on this machine? They finish what they run, start nothing more, and exit."
            .to_owned(),
        cli: cli::line(&["worker", "stop"]),
        ..Act::default()
    }
}

fn stop_now<'a>(visit: &Visit<'_>) -> Act<'a> {
    Act {
        label: "stop now",
        body: r#"{"now":true}"#.to_owned(),
        ask: "Stop all workers of this queue on this machine now? Their running jobs are killed and run again later."
            .to_owned(),
        cli: cli::line(&["worker", "stop", "--now"]),
        type_in: "now".to_owned(),
        is_final: true,
        ..drain(visit)
    }
}
