//! The table of queues: what waits, how fast it is worked off, and what holds it back. Overview shows the busiest queues,
//! and the page of the queues all of them.

use maud::{Markup, html};

use super::change;
use super::trends::Trends;
use crate::pages::visit::Visit;
use crate::parts::number::{counted, grouped};
use crate::parts::{sparkline, time};
use crate::request::query::encode;
use domain::job::life::StateName;
use domain::text::hostile::printable;
use ops::metrics::recent::Recent;
use store::{Queue, QueueMetrics};

pub(in crate::pages) fn rows(
    visit: &Visit<'_>,
    recent: &Recent,
    queues: &[&QueueMetrics],
    trends: &Trends,
) -> Markup {
    html! {
        div .scroll {
            table .rows.cards {
                thead {
                    tr {
                        th scope="col" { "queue" }
                        th scope="col" .number { "waiting" }
                        th scope="col" .number { "oldest" }
                        th scope="col" .number { "running" }
                        th scope="col" .number { "rate" }
                        th scope="col" .number { "p95 wait" }
                        th scope="col" .number { "p95 run" }
                        th scope="col" .number { "dead" }
                        th scope="col" { "24 h" }
                        th scope="col" { "limits" }
                        @if visit.may_operate() { th scope="col" { span .hidden { "actions" } } }
                    }
                }
                tbody { @for queue in queues { (row(visit, recent, queue, trends)) } }
            }
        }
    }
}

/// How many of its jobs could run or will run again.
pub(in crate::pages) fn waiting(queue: &Queue) -> u64 {
    count(queue, &[StateName::Pending, StateName::Failed])
}

fn count(queue: &Queue, states: &[StateName]) -> u64 {
    states.iter().filter_map(|state| queue.counts.get(state)).sum()
}

fn row(visit: &Visit<'_>, recent: &Recent, metrics: &QueueMetrics, trends: &Trends) -> Markup {
    let (queue, figures) = (&metrics.queue, recent.of(metrics));
    let name = queue.name.as_str();
    let own = visit.url(&format!("/queues/{}", encode(name)));
    html! {
        tr id={ "q-" (encode(name)) } {
            td { a .id href=(own) { (printable(name)) } }
            td .number data-label="waiting" { (linked(visit, queue, &[StateName::Pending, StateName::Failed])) }
            td .number data-label="oldest" { (time::span_or_dash(figures.oldest)) }
            td .number data-label="running" {
                span {
                    (linked(visit, queue, &[StateName::Processing]))
                    @if let Some(limit) = queue.concurrency { span .zero { "/" (limit) } }
                }
            }
            td .number data-label="rate" { (rate(recent.per_minute(figures.activity.finished()))) }
            td .number data-label="p95 wait" { (time::span_or_dash(figures.waited(0.95))) }
            td .number data-label="p95 run" { (time::span_or_dash(figures.ran(0.95))) }
            td .number data-label="dead" { (linked(visit, queue, &[StateName::Dead])) }
            td data-label="24 h" { (day(trends.get(&queue.name).map(Vec::as_slice))) }
            td data-label="limits" { span { (change::limits(queue)) } }
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
fn linked(visit: &Visit<'_>, queue: &Queue, states: &[StateName]) -> Markup {
    let names: Vec<&str> = states.iter().map(|state| state.name()).collect();
    let count = count(queue, states);
    html! {
        @if count > 0 {
            a href=(visit.jobs_url(&[("queue", queue.name.as_str()), ("state", &names.join(","))])) { (grouped(count)) }
        } @else { span .zero { "0" } }
    }
}

/// What ended in each hour of the last day.
fn day(hours: Option<&[u64]>) -> Markup {
    let Some(hours) = hours else {
        return html! { span .zero { "–" } };
    };
    let (all, most) = (hours.iter().sum::<u64>(), hours.iter().copied().max().unwrap_or(0));
    let attempts = counted(all, "attempt", "attempts");
    sparkline::bars(hours, "done", &format!("{attempts} ended in 24 hours, at most {} in one", grouped(most)))
}

/// A rate in the unit that suits it.
pub(in crate::pages) fn rate(per_minute: f64) -> String {
    if per_minute > 0.0 && per_minute < 0.1 {
        "<0.1/min".to_owned()
    } else if per_minute >= 600.0 {
        format!("{:.0}/s", per_minute / 60.0)
    } else if per_minute >= 10.0 || per_minute == 0.0 {
        format!("{per_minute:.0}/min")
    } else {
        format!("{per_minute:.1}/min")
    }
}
