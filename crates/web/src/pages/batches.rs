//! The batches: how far each of them is.

pub(super) mod batch;

use maud::{Markup, html};

use super::view::{Place, View};
use super::visit::Visit;
use crate::parts::number::{counted, grouped};
use crate::parts::{bar, cli, state, time};
use crate::problem::Problem;
use crate::request::query::encode;
use domain::job::life::StateName;
use domain::text::hostile::printable;
use ops::jobs::batch::eta_ms;
use store::Batch;

const ROWS: usize = 100;
/// The estimates of more batches would take too long.
const MAX_ESTIMATED: usize = 10;

/// The states of the jobs of a batch: failed ones first, finished ones last.
const ORDER: [StateName; 6] = [
    StateName::Dead,
    StateName::Failed,
    StateName::Cancelled,
    StateName::Processing,
    StateName::Pending,
    StateName::Completed,
];

pub(super) fn show(visit: &Visit<'_>) -> Result<View, Problem> {
    let mut batches = visit.store.batches(ROWS)?;
    // Failed first, then unfinished; both from new to old.
    batches.sort_by_key(|batch| (batch.unsuccessful() == 0, batch.finished_at.is_some()));
    Ok(View::new("Batches", Place::Batches).with("batches", "Batches", content(visit, &batches)?))
}

fn content(visit: &Visit<'_>, batches: &[Batch]) -> Result<Markup, Problem> {
    let unfinished = batches.iter().filter(|batch| batch.finished_at.is_none()).take(MAX_ESTIMATED);
    let etas: Vec<(&Batch, Option<u64>)> =
        unfinished.map(|batch| Ok((batch, eta_ms(visit.store, batch)?))).collect::<Result<_, Problem>>()?;
    let eta_of =
        |batch: &Batch| etas.iter().find(|(known, _)| known.name == batch.name).and_then(|(_, eta)| *eta);
    Ok(html! {
        div .bar { h1 { "Batches" } span { (counted(batches.len() as u64, "batch", "batches")) } (cli::copyable(&cli::typed("batch list"))) }
        @if batches.is_empty() {
            div .empty { p { "No batch yet. A batch is a name that several jobs share:" } p { (cli::copyable(&cli::typed("enqueue --batch import -- echo one"))) } }
        } @else {
            div .scroll {
                table .rows.cards {
                    thead { tr {
                        th scope="col" { "batch" } th scope="col" { "progress" } th scope="col" .number { "finished" }
                        th scope="col" { "jobs" } th scope="col" { "began" } th scope="col" { "end" }
                    } }
                    tbody { @for batch in batches { (row(visit, batch, eta_of(batch))) } }
                }
            }
        }
    })
}

fn row(visit: &Visit<'_>, batch: &Batch, eta_ms: Option<u64>) -> Markup {
    let name = batch.name.as_str();
    html! {
        tr id={ "b-" (encode(name)) } {
            td { a .id href=(visit.url(&format!("/batches/{}", encode(name)))) { (printable(name)) } }
            td .wide-cell data-label="progress" { (bar::states(&count_of(batch))) }
            td .number data-label="finished" { (grouped(batch.finished())) "/" (grouped(batch.total())) }
            td data-label="jobs" { (states(visit, batch)) }
            td data-label="began" { (time::ago(visit.now, batch.created_at)) }
            td data-label="end" { span { @if batch.finished_at.is_some() { "ended " } (end(visit, batch, eta_ms)) } }
        }
    }
}

fn count_of(batch: &Batch) -> impl Fn(StateName) -> u64 + '_ {
    |state| batch.counts.get(&state).copied().unwrap_or(0)
}

/// The jobs of each state, failed ones first.
fn states(visit: &Visit<'_>, batch: &Batch) -> Markup {
    let name = batch.name.as_str();
    html! {
        @for state in ORDER {
            @if let Some(count) = batch.counts.get(&state) {
                a .plain.gap href=(visit.jobs_url(&[("batch", name), ("state", state.name())])) { (state::of_name(state)) " " (grouped(*count)) }
            }
        }
    }
}

/// When it ended, or probably will.
fn end(visit: &Visit<'_>, batch: &Batch, eta_ms: Option<u64>) -> Markup {
    html! {
        @match (batch.finished_at, eta_ms) {
            (Some(at), _) => (time::ago(visit.now, at)),
            (None, Some(left)) => { "in about " (time::span(std::time::Duration::from_millis(left))) },
            (None, None) => span .zero { "not known" },
        }
    }
}
