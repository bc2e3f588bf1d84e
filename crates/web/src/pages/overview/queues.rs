//! The table of the queues: what waits, how fast it is worked off, and what holds it back.

use maud::{Markup, html};

use super::rate;
use super::trends::Trends;
use crate::pages::visit::Visit;
use crate::parts::button::Act;
use crate::parts::job_row::cut;
use crate::parts::number::{counted, grouped};
use crate::parts::{cli, sparkline, state, time};
use crate::request::query::encode;
use domain::job::life::StateName;
use domain::text::hostile::printable;
use ops::metrics::recent::Recent;
use store::{Queue, QueueMetrics};

/// More queues are on their own page.
const MAX_QUEUES: usize = 12;

pub(super) fn section(visit: &Visit<'_>, recent: &Recent, trends: &Trends) -> Markup {
    let mut busiest: Vec<&QueueMetrics> = recent.queues.iter().collect();
    // Those that are paused or have work come first.
    busiest.sort_by_key(|metrics| {
        let waiting = waiting(&metrics.queue);
        std::cmp::Reverse((metrics.queue.paused.is_some(), waiting, metrics.activity.started))
    });
    let all = busiest.len();
    busiest.truncate(MAX_QUEUES);
    html! {
        div .bar {
            h2 { "Queues" }
            @if all > MAX_QUEUES { a href=(visit.url("/queues")) { "all " (counted(all as u64, "queue", "queues")) } }
        }
        (rows(visit, recent, &busiest, trends))
    }
}

pub(super) fn rows(visit: &Visit<'_>, recent: &Recent, queues: &[&QueueMetrics], trends: &Trends) -> Markup {
    html! {
        div .scroll {
            table .rows.queues {
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
                    }
                }
                tbody { @for queue in queues { (row(visit, recent, queue, trends)) } }
            }
        }
    }
}

fn waiting(queue: &Queue) -> u64 {
    let states = [StateName::Pending, StateName::Failed];
    states.iter().filter_map(|state| queue.counts.get(state)).sum()
}

fn row(visit: &Visit<'_>, recent: &Recent, metrics: &QueueMetrics, trends: &Trends) -> Markup {
    let (queue, figures) = (&metrics.queue, recent.of(metrics));
    let name = queue.name.as_str();
    let count = |state: StateName| queue.counts.get(&state).copied().unwrap_or(0);
    let linked = |states: &str, count: u64| {
        html! {
            @if count > 0 { a href=(visit.jobs_url(&[("queue", name), ("state", states)])) { (grouped(count)) } } @else { span .zero { "0" } }
        }
    };
    let hours = trends.get(&queue.name);
    html! {
        tr id={ "q-" (encode(name)) } {
            td { a href=(visit.url(&format!("/queues/{}", encode(name)))) { (printable(name)) } }
            td .number { (linked("pending,failed", waiting(queue))) }
            td .number { (time::span_or_dash(figures.oldest)) }
            td .number {
                (linked("processing", count(StateName::Processing)))
                @if let Some(limit) = queue.concurrency { span .zero { "/" (limit) } }
            }
            td .number { (rate(recent.per_minute(figures.activity.finished()))) }
            td .number { (time::span_or_dash(figures.waited(0.95))) }
            td .number { (time::span_or_dash(figures.ran(0.95))) }
            td .number { (linked("dead", count(StateName::Dead))) }
            td { @match hours { Some(hours) => (sparkline::bars(hours, "done", &label(hours))), None => span .zero { "–" } } }
            td { (limits(visit, queue)) }
        }
    }
}

fn label(hours: &[u64]) -> String {
    let (all, most) = (hours.iter().sum::<u64>(), hours.iter().copied().max().unwrap_or(0));
    format!("{} ended in 24 hours, at most {} in one", counted(all, "attempt", "attempts"), grouped(most))
}

fn limits(visit: &Visit<'_>, queue: &Queue) -> Markup {
    let name = queue.name.as_str();
    let path = visit.url(&format!("/api/v1/queues/{}/resume", encode(name)));
    let resume = Act {
        label: "resume",
        method: "POST",
        path,
        cli: cli::line(&["queue", "resume", name]),
        ..Act::default()
    };
    html! {
        @if let Some((_, pause)) = &queue.paused {
            span .state { span .icon.s-paused aria-hidden="true" { (state::icon("paused")) } " paused" }
            " by " (printable(&pause.by))
            @if let Some(reason) = &pause.reason { ": " (printable(&cut(reason))) }
            @if visit.may_operate() { " " (resume.markup()) }
        }
        @if let Some(limit) = queue.concurrency { span .limit { (limit) " at once" } " " }
        @if let Some(rate) = &queue.rate { span .limit { (rate) } }
        @if queue.paused.is_none() && queue.concurrency.is_none() && queue.rate.is_none() { span .zero { "–" } }
    }
}
