//! The batches: how far each of them is.

use maud::{Markup, html};

use super::view::{Place, View};
use super::visit::Visit;
use crate::parts::number::grouped;
use crate::parts::{cli, state, time};
use crate::problem::Problem;
use domain::text::hostile::printable;
use store::Batch;

const ROWS: usize = 100;

pub(super) fn show(visit: &Visit<'_>) -> Result<View, Problem> {
    let batches = visit.store.batches(ROWS)?;
    Ok(View::new("Batches", Place::Batches).with("batches", "Batches", content(visit, &batches)))
}

fn content(visit: &Visit<'_>, batches: &[Batch]) -> Markup {
    html! {
        div .bar { h1 { "Batches" } (cli::copyable("queuectl batch list")) }
        @if batches.is_empty() {
            div .empty { p { "No batch yet. A batch is a name that several jobs share:" } p { (cli::copyable("queuectl enqueue --batch import -- echo one")) } }
        } @else {
            div .scroll {
                table .rows {
                    thead { tr { th scope="col" { "batch" } th scope="col" .number { "finished" } th scope="col" { "jobs" } th scope="col" { "began" } th scope="col" { "ended" } } }
                    tbody { @for batch in batches { (row(visit, batch)) } }
                }
            }
        }
    }
}

fn row(visit: &Visit<'_>, batch: &Batch) -> Markup {
    let name = batch.name.as_str();
    html! {
        tr id={ "b-" (name) } {
            td { a .id href=(visit.jobs_url(&[("batch", name)])) { (printable(name)) } }
            td .number { (grouped(batch.finished())) "/" (grouped(batch.total())) }
            td {
                @for (state, count) in &batch.counts {
                    a .plain href=(visit.jobs_url(&[("batch", name), ("state", state.name())])) { (state::of_name(*state)) " " (grouped(*count)) } " "
                }
            }
            td { (time::ago(visit.now, batch.created_at)) }
            td { @match batch.finished_at { Some(at) => (time::ago(visit.now, at)), None => "–" } }
        }
    }
}
