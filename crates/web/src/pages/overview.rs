//! The overview: counts, what ended, queues, newest failures, and what comes next.

use std::collections::BTreeSet;
use std::time::Duration;

use maud::{Markup, html};

use super::view::{Place, View};
use super::visit::Visit;
use crate::parts::job_row::cut;
use crate::parts::number::{counted, grouped};
use crate::parts::{chart, cli, state, time};
use crate::problem::Problem;
use crate::request::query::{Param, TEXT, encode};
use domain::job::life::StateName;
use domain::text::hostile::printable;
use domain::values::name::QueueName;
use domain::values::span::parse_span;
use ops::metrics::history::history;
use ops::metrics::recent::{Recent, recent};
use ops::upcoming::{Coming, upcoming};
use store::{FailedAttempt, QueueMetrics};

pub(super) const PARAMS: &[Param] = &[
    Param::new("range", TEXT, "How much time the chart covers: 15m, 1h, 6h, 24h, 7d, 90d"),
    Param::new("queue", TEXT, "Only this queue"),
];

const RANGES: [&str; 6] = ["15m", "1h", "6h", "24h", "7d", "90d"];
const DEFAULT_RANGE: &str = "1h";
const MAX_FAILURES: usize = 10;
/// Several of one job are shown once.
const FAILURES_READ: usize = 40;
const MAX_COMING: usize = 5;

pub(super) fn show(visit: &Visit<'_>) -> Result<View, Problem> {
    let queue: Option<QueueName> = visit.query.read("queue")?;
    let range = visit.query.get("range").unwrap_or(DEFAULT_RANGE);
    let recent = recent(visit.store, None)?;
    let view = View::new("Overview", Place::Overview).with("counts", "Jobs by state", counts(visit)?);
    if visit.status()?.jobs.values().sum::<u64>() == 0 {
        return Ok(view.with("start", "Start", empty()));
    }
    let failures = latest(visit.store.newest_failures(None, FAILURES_READ)?);
    let (coming, _) = upcoming(visit.store, MAX_COMING)?;
    Ok(view
        .with("chart", "What ended", history_chart(visit, range, queue.as_ref())?)
        .with("queues", "Queues", queues(visit, &recent))
        .with("failures", "Newest failures", newest(visit, &failures))
        .with("next", "What comes next", next(visit, &coming)))
}

fn empty() -> Markup {
    html! {
        div .empty {
            h2 { "No jobs yet" }
            p { "A job is a shell command. This enqueues one:" }
            p { (cli::copyable("queuectl enqueue -- echo hello")) }
            p { "A worker runs it:" }
            p { (cli::copyable("queuectl worker start")) }
        }
    }
}

/// Each number leads to the jobs that it counts.
fn counts(visit: &Visit<'_>) -> Result<Markup, Problem> {
    let status = visit.status()?;
    let slots: u64 = status.workers.iter().map(|worker| u64::from(worker.concurrency)).sum();
    Ok(html! {
        h1 .hidden { "Overview" }
        ul .tiles {
            @for name in StateName::ALL {
                @let count = status.jobs.get(&name).copied().unwrap_or(0);
                li .none[count == 0] {
                    a href=(visit.jobs_url(&[("state", name.name())])) {
                        span .value { (grouped(count)) @if name == StateName::Processing { small { "/" (slots) } } }
                        (state::of_name(name))
                    }
                }
            }
        }
    })
}

fn history_chart(visit: &Visit<'_>, range: &str, queue: Option<&QueueName>) -> Result<Markup, Problem> {
    let span: Duration =
        parse_span(range).map_err(|error| Problem::invalid(format!("invalid range `{range}` ({error})")))?;
    if !RANGES.contains(&range) {
        return Err(Problem::invalid(format!("the ranges are {}", RANGES.join(", "))));
    }
    let timeline = history(visit.store, span, queue)?;
    let mut all = domain::metrics::activity::Activity::default();
    timeline.points().for_each(|(_, point)| all.add(&point.activity));
    let figures = ops::metrics::recent::Figures { activity: all, ..Default::default() };
    let link = |range: &str| {
        let queue = queue.map_or_else(String::new, |queue| format!("&queue={}", encode(queue.as_str())));
        visit.url(&format!("/?range={range}{queue}"))
    };
    Ok(html! {
        div .bar {
            h2 { @match queue { Some(queue) => { "Queue " (printable(queue.as_str())) }, None => "All queues" } }
            @if queue.is_some() { a href=(visit.url(&format!("/?range={range}"))) { "all queues" } }
            nav .ranges aria-label="Time" {
                @for known in RANGES {
                    a href=(link(known)) aria-current=[(known == range).then_some("true")] { (known) }
                }
            }
        }
        (chart::ended(&timeline, visit.now))
        p .figures {
            span { "waited " b { (time::span_or_dash(figures.waited(0.5))) } " p50 · " b { (time::span_or_dash(figures.waited(0.95))) } " p95" }
            span { "ran " b { (time::span_or_dash(figures.ran(0.5))) } " p50 · " b { (time::span_or_dash(figures.ran(0.95))) } " p95" }
            span { b { (grouped(all.started)) } " started · " b { (grouped(all.failed())) } " failed · " b { (grouped(all.died)) } " died" }
        }
    })
}

fn queues(visit: &Visit<'_>, recent: &Recent) -> Markup {
    html! { h2 { "Queues" } (queue_table(visit, recent)) }
}

pub(super) fn queue_table(visit: &Visit<'_>, recent: &Recent) -> Markup {
    html! {
        div .scroll {
            table .rows {
                thead {
                    tr {
                        th scope="col" { "queue" }
                        th scope="col" .number { "waiting" }
                        th scope="col" .number { "oldest" }
                        th scope="col" .number { "running" }
                        th scope="col" .number { "per minute" }
                        th scope="col" .number { "p95 wait" }
                        th scope="col" .number { "p95 run" }
                        th scope="col" .number { "dead" }
                        th scope="col" { "limits" }
                    }
                }
                tbody { @for queue in &recent.queues { (queue_row(visit, recent, queue)) } }
            }
        }
    }
}

fn queue_row(visit: &Visit<'_>, recent: &Recent, metrics: &QueueMetrics) -> Markup {
    let (queue, figures) = (&metrics.queue, recent.of(metrics));
    let name = queue.name.as_str();
    let count =
        |states: &[StateName]| -> u64 { states.iter().filter_map(|state| queue.counts.get(state)).sum() };
    let linked = |states: &str, count: u64| {
        html! {
            @if count > 0 { a href=(visit.jobs_url(&[("queue", name), ("state", states)])) { (grouped(count)) } } @else { span .zero { "0" } }
        }
    };
    html! {
        tr id={ "q-" (encode(name)) } {
            td { a href=(visit.url(&format!("/?queue={}", encode(name)))) { (printable(name)) } }
            td .number { (linked("pending,failed", count(&[StateName::Pending, StateName::Failed]))) }
            td .number { (time::span_or_dash(figures.oldest)) }
            td .number { (linked("processing", count(&[StateName::Processing]))) }
            td .number { (rate(recent.per_minute(figures.activity.finished()))) }
            td .number { (time::span_or_dash(figures.waited(0.95))) }
            td .number { (time::span_or_dash(figures.ran(0.95))) }
            td .number { (linked("dead", count(&[StateName::Dead]))) }
            td {
                @if let Some((_, pause)) = &queue.paused {
                    span .state { span .icon.s-paused aria-hidden="true" { "⏸" } " paused" }
                    " by " (printable(&pause.by))
                    @if let Some(reason) = &pause.reason { ": " (printable(&cut(reason))) }
                }
                @if let Some(limit) = queue.concurrency { " " (limit) " at once" }
                @if let Some(rate) = &queue.rate { " " (rate) }
            }
        }
    }
}

fn newest(visit: &Visit<'_>, failures: &[FailedAttempt]) -> Markup {
    html! {
        h2 { "Newest failures" }
        @if failures.is_empty() {
            p .empty { "No attempt has failed." }
        } @else {
            ul .list {
                @for failed in failures {
                    li {
                        (state::of_name(failed.state))
                        " " (time::ago(visit.now, failed.finished_at))
                        " " a .id href=(visit.job_url(&failed.job)) { (printable(&handle(failed))) }
                        " " a .plain href=(visit.jobs_url(&[("queue", failed.queue.as_str())])) { (printable(failed.queue.as_str())) }
                        " " span .error { (printable(&cut(failed.error.as_deref().unwrap_or(failed.outcome.name())))) }
                        " " code { (printable(&cut(&failed.command))) }
                    }
                }
            }
        }
    }
}

/// A count per minute, exact where it is small.
fn rate(per_minute: f64) -> String {
    if per_minute < 10.0 { format!("{per_minute:.1}") } else { format!("{per_minute:.0}") }
}

/// The latest failure of each job.
fn latest(failures: Vec<FailedAttempt>) -> Vec<FailedAttempt> {
    let mut seen = BTreeSet::new();
    failures.into_iter().filter(|failed| seen.insert(failed.number)).take(MAX_FAILURES).collect()
}

fn handle(failed: &FailedAttempt) -> String {
    domain::job::handle::JobHandle { id: failed.job.clone(), number: Some(failed.number) }.short()
}

fn next(visit: &Visit<'_>, coming: &[Coming]) -> Markup {
    html! {
        h2 { "Next" }
        @if coming.is_empty() {
            p .empty { "Nothing is planned: no schedule, no delayed job, no retry." }
        } @else {
            ul .list {
                @for coming in coming {
                    li {
                        (time::ago(visit.now, coming.at)) " " (coming.kind.name()) " "
                        @match (&coming.schedule, &coming.id) {
                            (Some(schedule), _) => (printable(schedule.as_str())),
                            (None, Some(id)) => a .id href=(visit.job_url(id)) { (printable(&shown(coming, id.as_str()))) },
                            (None, None) => {},
                        }
                        " " code { (printable(&cut(&coming.command))) }
                    }
                }
            }
        }
        @if coming.len() == MAX_COMING { p .more { (counted(MAX_COMING as u64, "entry", "entries")) " of more: " (cli::copyable("queuectl upcoming")) } }
    }
}

fn shown(coming: &Coming, id: &str) -> String {
    coming.number.map_or_else(|| id.to_owned(), |number| number.to_string())
}
