//! The queues: what waits in them, what ended, and what limits them.

mod change;
pub(super) mod queue;

use std::time::Duration;

use maud::{Markup, html};

use super::view::{Place, View};
use super::visit::Visit;
use crate::parts::number::{counted, grouped};
use crate::parts::{cli, sparkline, time};
use crate::problem::Problem;
use crate::request::query::encode;
use domain::job::life::StateName;
use domain::text::hostile::printable;
use domain::values::name::QueueName;
use ops::metrics::recent::{Recent, recent};
use store::QueueMetrics;

/// The charts of more queues would take too long to read.
const MAX_CHARTS: usize = 24;
const CHART: Duration = Duration::from_secs(24 * 3_600);
const BARS: usize = 48;

pub(super) fn show(visit: &Visit<'_>) -> Result<View, Problem> {
    let recent = recent(visit.store, None)?;
    let charts: Vec<Markup> = recent
        .queues
        .iter()
        .take(MAX_CHARTS)
        .map(|metrics| chart(visit, &metrics.queue.name))
        .collect::<Result<_, _>>()?;
    Ok(View::new("Queues", Place::Queues).with("queues", "Queues", content(visit, &recent, &charts)))
}

/// What ended in a queue over a day, in few bars.
fn chart(visit: &Visit<'_>, queue: &QueueName) -> Result<Markup, Problem> {
    let Some(timeline) = visit.store.history(CHART, Some(queue))? else {
        return Ok(html! {});
    };
    let steps = timeline.step_of(visit.now) + 1;
    let mut bars = vec![0; BARS];
    for (at, point) in timeline.points() {
        let bar = timeline.step_of(at) * BARS / steps;
        bars[bar.min(BARS - 1)] += point.activity.finished();
    }
    let ended: u64 = bars.iter().sum();
    let about = format!("{} finished in the last 24 hours, by the half hour", counted(ended, "job", "jobs"));
    Ok(sparkline::bars(&bars, "done", &about))
}

fn content(visit: &Visit<'_>, recent: &Recent, charts: &[Markup]) -> Markup {
    html! {
        div .bar {
            h1 { "Queues" }
            span { (counted(recent.queues.len() as u64, "queue", "queues")) }
            (cli::copyable("queuectl queue list"))
        }
        @if recent.queues.is_empty() {
            div .empty { p { "No queue yet: the first job creates one." } p { (cli::copyable("queuectl enqueue --queue mail -- echo hello")) } }
        } @else {
            div .scroll {
                table .rows.cards {
                    thead {
                        tr {
                            th scope="col" { "queue" }
                            th scope="col" .number { "waiting" }
                            th scope="col" .number { "oldest" }
                            th scope="col" .number { "running" }
                            th scope="col" .number { "per minute" }
                            th scope="col" .number { "p95 wait" }
                            th scope="col" .number { "p95 run" }
                            th scope="col" { "24 h" }
                            th scope="col" .number { "dead" }
                            th scope="col" { "limits" }
                            @if visit.may_operate() { th scope="col" { span .hidden { "actions" } } }
                        }
                    }
                    tbody {
                        @for (at, metrics) in recent.queues.iter().enumerate() { (row(visit, recent, metrics, charts.get(at))) }
                    }
                }
            }
            p .note { "Rates and times are those of the last hour." }
        }
    }
}

fn row(visit: &Visit<'_>, recent: &Recent, metrics: &QueueMetrics, chart: Option<&Markup>) -> Markup {
    let (queue, figures) = (&metrics.queue, recent.of(metrics));
    let name = queue.name.as_str();
    let own = visit.url(&format!("/queues/{}", encode(name)));
    html! {
        tr id={ "q-" (encode(name)) } {
            td { a .id href=(own) { (printable(name)) } }
            td .number data-label="waiting" { (linked(visit, metrics, &[StateName::Pending, StateName::Failed])) }
            td .number data-label="oldest" { (time::span_or_dash(figures.oldest)) }
            td .number data-label="running" { (linked(visit, metrics, &[StateName::Processing])) }
            td .number data-label="per minute" { (rate(recent.per_minute(figures.activity.finished()))) }
            td .number data-label="p95 wait" { (time::span_or_dash(figures.waited(0.95))) }
            td .number data-label="p95 run" { (time::span_or_dash(figures.ran(0.95))) }
            td data-label="24 h" { @if let Some(chart) = chart { (chart) } }
            td .number data-label="dead" { (linked(visit, metrics, &[StateName::Dead])) }
            td data-label="limits" { (change::limits(queue)) }
            @if visit.may_operate() {
                td {
                    div .actions {
                        @if queue.paused.is_some() { (change::resume(visit, name).markup()) }
                        @else { a href={ (own) "#change" } { "pause or limit" } }
                    }
                }
            }
        }
    }
}

/// How many jobs are in these states, as a link to them.
fn linked(visit: &Visit<'_>, metrics: &QueueMetrics, states: &[StateName]) -> Markup {
    let queue = &metrics.queue;
    let count: u64 = states.iter().filter_map(|state| queue.counts.get(state)).sum();
    let names: Vec<&str> = states.iter().map(|state| state.name()).collect();
    html! {
        @if count > 0 {
            a href=(visit.jobs_url(&[("queue", queue.name.as_str()), ("state", &names.join(","))])) { (grouped(count)) }
        } @else { span .zero { "0" } }
    }
}

/// A count per minute, exact where it is small.
fn rate(per_minute: f64) -> String {
    if per_minute < 10.0 { format!("{per_minute:.1}") } else { format!("{per_minute:.0}") }
}
