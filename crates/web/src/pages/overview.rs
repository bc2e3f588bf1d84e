//! The overview: counts, what ended, queues, newest failures, and what comes next.

use std::collections::BTreeMap;
use std::time::Duration;

use maud::{Markup, html};

use super::queues::table::{rate, rows, waiting};
use super::queues::trends::Trends;
use super::view::{Place, View};
use super::visit::Visit;
use crate::parts::chart::Marks;
use crate::parts::job_row::cut;
use crate::parts::number::{counted, grouped};
use crate::parts::{chart, cli, state, time};
use crate::problem::Problem;
use crate::request::query::{Param, TEXT, encode};
use domain::job::cause::{Cause, CauseId};
use domain::job::handle::JobHandle;
use domain::job::life::StateName;
use domain::metrics::activity::Activity;
use domain::metrics::resolution::start_of_minute;
use domain::text::hostile::printable;
use domain::values::name::QueueName;
use domain::values::span::parse_span;
use ops::metrics::history::history;
use ops::metrics::recent::{Figures, Recent, recent};
use ops::upcoming::{Coming, upcoming};
use store::{FailedAttempt, QueueMetrics};

pub(super) const PARAMS: &[Param] = &[
    Param::new("range", TEXT, "How much time the chart covers: 15m, 1h, 6h, 24h, 7d, 90d"),
    Param::new("queue", TEXT, "Only this queue"),
];

const RANGES: [&str; 6] = ["15m", "1h", "6h", "24h", "7d", "90d"];
const DEFAULT_RANGE: &str = "1h";
const MAX_FAILURES: usize = 10;
/// Those of one cause are shown once.
const FAILURES_READ: usize = 200;
const MAX_COMING: usize = 5;
/// More queues are on their own page.
const MAX_QUEUES: usize = 12;

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
        .with("chart", "What ended", history_chart(visit, range, queue.as_ref(), &recent)?)
        .with("queues", "Queues", queues(visit, &recent, &visit.server.trends.read(visit.store)?))
        .with("failures", "Newest failures", newest(visit, &failures))
        .with("next", "What comes next", next(visit, &coming)))
}

fn empty() -> Markup {
    html! {
        div .empty {
            h2 { "No jobs yet" }
            p { "A job is a shell command. This enqueues one:" }
            p { (cli::copyable(&cli::typed("enqueue -- echo hello"))) }
            p { "A worker runs it:" }
            p { (cli::copyable(&cli::typed("worker start"))) }
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

fn history_chart(
    visit: &Visit<'_>,
    range: &str,
    queue: Option<&QueueName>,
    recent: &Recent,
) -> Result<Markup, Problem> {
    let span: Duration =
        parse_span(range).map_err(|error| Problem::invalid(format!("invalid range `{range}` ({error})")))?;
    if !RANGES.contains(&range) {
        return Err(Problem::invalid(format!("the ranges are {}", RANGES.join(", "))));
    }
    let timeline = history(visit.store, span, queue)?;
    let starts = visit.store.worker_starts(start_of_minute(timeline.first_minute()))?;
    let mut all = Activity::default();
    timeline.points().for_each(|(_, point)| all.add(&point.activity));
    let figures = Figures { activity: all, ..Figures::default() };
    Ok(html! {
        (chart_bar(visit, range, queue, recent))
        (chart::ended(&timeline, visit.now, Marks { starts: &starts, shows_gaps: queue.is_none() }))
        div .figures {
            span { "waited p50 " b { (time::span_or_dash(figures.waited(0.5))) } " p95 " b { (time::span_or_dash(figures.waited(0.95))) } " " (chart::waits(&timeline, visit.now)) }
            span { "ran p50 " b { (time::span_or_dash(figures.ran(0.5))) } " p95 " b { (time::span_or_dash(figures.ran(0.95))) } " " (chart::runs(&timeline, visit.now)) }
            span { b { (grouped(all.started)) } " started · " b { (grouped(all.retries())) } " failed · " b { (grouped(all.died)) } " died" }
        }
    })
}

fn chart_bar(visit: &Visit<'_>, range: &str, queue: Option<&QueueName>, recent: &Recent) -> Markup {
    let link = |range: &str| {
        let queue = queue.map_or_else(String::new, |queue| format!("&queue={}", encode(queue.as_str())));
        visit.url(&format!("/?range={range}{queue}"))
    };
    let hour = recent.queues.iter().filter(|metrics| queue.is_none_or(|only| *only == metrics.queue.name));
    let hour: u64 = hour.map(|metrics| metrics.activity.finished()).sum();
    html! {
        div .bar {
            h2 { "What ended" }
            nav .ranges aria-label="Time" {
                @for known in RANGES {
                    a href=(link(known)) aria-current=[(known == range).then_some("true")] { (known) }
                }
            }
            form .choice method="get" action=(visit.url("/")) {
                input type="hidden" name="range" value=(range);
                select name="queue" aria-label="Queue" data-submit {
                    option value="" { "all queues" }
                    @for metrics in &recent.queues {
                        @let name = metrics.queue.name.as_str();
                        option value=(name) selected[queue.is_some_and(|only| only.as_str() == name)] { (printable(name)) }
                    }
                }
                noscript { button type="submit" { "Show" } }
            }
            span .rate { "jobs finished: " b { (rate(recent.per_minute(hour))) } " over the last hour" }
        }
    }
}

fn queues(visit: &Visit<'_>, recent: &Recent, trends: &Trends) -> Markup {
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

fn newest(visit: &Visit<'_>, failures: &[(FailedAttempt, usize)]) -> Markup {
    html! {
        h2 { "Newest failures" }
        @if failures.is_empty() {
            p .empty { "No attempt has failed." }
        } @else {
            ul .list.failures {
                @for (failed, alike) in failures {
                    @let url = visit.job_url(&failed.job);
                    li {
                        (state::of_name(failed.state))
                        " " (time::ago(visit.now, failed.finished_at))
                        " " a .id href=(url) title=(printable(failed.job.as_str())) { (printable(&handle(failed))) }
                        " " a .plain href=(visit.jobs_url(&[("queue", failed.queue.as_str())])) { (printable(failed.queue.as_str())) }
                        " " span .error { (printable(&cut(failed.error.as_deref().unwrap_or(failed.outcome.name())))) }
                        @if *alike > 1 { " " span .note title={ "So many of the last " (FAILURES_READ) " failures look alike" } { "×" (alike) } }
                        " " code { (printable(&cut(&failed.command))) }
                        span .links { a href={ (url) "#why" } { "explain" } " " a href={ (url) "?attempt=" (failed.attempt) "#log-bar" } { "log" } }
                    }
                }
            }
        }
    }
}

/// The newest failure of each cause, and how many look like it.
fn latest(failures: Vec<FailedAttempt>) -> Vec<(FailedAttempt, usize)> {
    let mut found: Vec<(FailedAttempt, usize)> = Vec::new();
    let mut places: BTreeMap<(QueueName, CauseId), usize> = BTreeMap::new();
    for failed in failures {
        let error = failed.error.as_deref().unwrap_or_default();
        let cause = Cause::new(failed.outcome.name().to_owned(), failed.exit_code, failed.signal, error).id();
        let place = *places.entry((failed.queue.clone(), cause)).or_insert(found.len());
        match found.get_mut(place) {
            Some((_, alike)) => *alike += 1,
            None => found.push((failed, 1)),
        }
    }
    found.truncate(MAX_FAILURES);
    found
}

fn handle(failed: &FailedAttempt) -> String {
    JobHandle { id: failed.job.clone(), number: Some(failed.number) }.short()
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
                        (time::due(visit.now, coming.at)) " " (coming.kind.name()) " "
                        @match (&coming.schedule, &coming.id) {
                            (Some(schedule), _) => (printable(schedule.as_str())),
                            (None, Some(id)) => a .id href=(visit.job_url(id)) { (printable(&JobHandle { id: id.clone(), number: coming.number }.short())) },
                            (None, None) => {},
                        }
                        " " code { (printable(&cut(&coming.command))) }
                    }
                }
            }
        }
        @if coming.len() == MAX_COMING { p .more { "more: " (cli::copyable(&cli::typed("upcoming"))) } }
    }
}
