//! One queue: what happened in it, what holds it back, who serves it, and what limits it.

use std::time::Duration;

use maud::{Markup, html};

use super::change;
use crate::pages::view::{Place, View};
use crate::pages::visit::Visit;
use crate::parts::chart::Marks;
use crate::parts::number::grouped;
use crate::parts::{chart, cli, job_row, state, time};
use crate::problem::Problem;
use crate::request::query::{Param, TEXT, encode};
use domain::job::life::StateName;
use domain::metrics::resolution::start_of_minute;
use domain::schedule::Schedule;
use domain::text::hostile::printable;
use domain::values::clock::TimeFormat;
use domain::values::name::QueueName;
use domain::values::span::parse_span;
use ops::OpError;
use ops::error::Named;
use ops::jobs::explain::{JobExplanation, explain};
use ops::metrics::history::history;
use store::{JobFilter, Order, Phase, Queue, Search, Worker};

pub(crate) const PARAMS: &[Param] =
    &[Param::new("range", TEXT, "How much time the chart covers: 1h, 6h, 24h, 7d, 90d")];

const RANGES: [&str; 5] = ["1h", "6h", "24h", "7d", "90d"];
const DEFAULT_RANGE: &str = "24h";
/// The next job of a queue is looked for no longer.
const SEARCH_BUDGET: Duration = Duration::from_millis(100);

pub(crate) fn show(visit: &Visit<'_>) -> Result<View, Problem> {
    let name: QueueName = visit.name("queue")?;
    let queues = visit.store.queues()?;
    let Some(queue) = queues.iter().find(|queue| queue.name == name) else {
        let known = queues.iter().map(|queue| queue.name.as_str());
        return Err(OpError::no_such(Named::Queue, name.as_str(), known).into());
    };
    let mut view = View::new(format!("Queue {name}"), Place::Queues)
        .with("queue", "Queue", head(visit, queue))
        .with("chart", "What ended", history_chart(visit, &name)?)
        .with("head", "What holds it back", held_back(visit, queue)?)
        .with("serves", "Who serves it", around(visit, queue)?);
    if visit.may_operate() {
        view = view.with("forms", "Pause or limit", change::forms(visit, queue)).with_script("forms.js");
    }
    Ok(view)
}

fn head(visit: &Visit<'_>, queue: &Queue) -> Markup {
    let name = queue.name.as_str();
    html! {
        div .bar {
            h1 { "Queue " (printable(name)) }
            a href=(visit.url("/queues")) { "all queues" }
            (cli::copyable(&cli::line(&["list", "--queue", name])))
        }
        p .facts { (change::limits(queue)) }
        ul .tiles {
            @for state in StateName::ALL {
                @let count = queue.counts.get(&state).copied().unwrap_or(0);
                li .none[count == 0] {
                    a href=(visit.jobs_url(&[("queue", name), ("state", state.name())])) {
                        span .value { (grouped(count)) }
                        (state::of_name(state))
                    }
                }
            }
        }
    }
}

fn history_chart(visit: &Visit<'_>, queue: &QueueName) -> Result<Markup, Problem> {
    let range = visit.query.get("range").unwrap_or(DEFAULT_RANGE);
    if !RANGES.contains(&range) {
        return Err(Problem::invalid(format!("the ranges are {}", RANGES.join(", "))));
    }
    let span = parse_span(range).map_err(|error| Problem::invalid(error.to_string()))?;
    let timeline = history(visit.store, span, Some(queue))?;
    let starts = visit.store.worker_starts(start_of_minute(timeline.first_minute()))?;
    let own = visit.url(&format!("/queues/{}", encode(queue.as_str())));
    Ok(html! {
        div .bar {
            h2 { "What ended" }
            nav .ranges aria-label="Time" {
                @for known in RANGES {
                    a href={ (own) "?range=" (known) } aria-current=[(known == range).then_some("true")] { (known) }
                }
            }
        }
        (chart::ended(&timeline, visit.now, Marks { starts: &starts, shows_gaps: false }))
    })
}

/// Why the job does not run that is claimed next.
fn held_back(visit: &Visit<'_>, queue: &Queue) -> Result<Markup, Problem> {
    let explained = next_in_line(visit, queue)?;
    Ok(html! {
        h2 { "What holds it back" }
        @match explained {
            None => p .empty { "No job waits in this queue." },
            Some(explained) => {
                ul .list {
                    @for reason in &explained.explanation.reasons { li { (cli::sentence(visit.now, &reason.message)) } }
                }
                p .note {
                    "This is true of the next job, "
                    a .id href=(visit.job_url(&explained.job.id)) { (printable(&explained.job.handle())) }
                    ": " code { (printable(&job_row::cut(explained.job.label()))) }
                    @if let Some(at) = explained.explanation.probable_start { " · it probably starts " (time::ago(visit.now, at)) }
                }
            },
        }
    })
}

fn next_in_line(visit: &Visit<'_>, queue: &Queue) -> Result<Option<JobExplanation>, Problem> {
    let filter = JobFilter { queue: Some(queue.name.clone()), ..JobFilter::default() };
    let waiting = [StateName::Pending, StateName::Failed].map(Phase::State).to_vec();
    // Jobs of a paused queue, and jobs that wait for others, are in no order of claims.
    let searches = [(Order::Claim, Vec::new()), (Order::Soonest, Vec::new()), (Order::Oldest, waiting)];
    let mut next = None;
    for (order, phases) in searches {
        if next.is_none() {
            let filter = JobFilter { phases, ..filter.clone() };
            let search = Search { filter, order, limit: 1, budget: Some(SEARCH_BUDGET), ..Search::default() };
            next = visit.store.search(&search)?.jobs.pop();
        }
    }
    let explained = next.map(|job| explain(visit.store, &job.id, &TimeFormat::Full));
    Ok(explained.transpose()?)
}

/// Its workers and its schedules.
fn around(visit: &Visit<'_>, queue: &Queue) -> Result<Markup, Problem> {
    let workers = &visit.status()?.workers;
    let workers: Vec<&Worker> =
        workers.iter().filter(|worker| worker.served.has_queue(&queue.name)).collect();
    let default = QueueName::default_queue();
    let schedules = visit.store.schedules()?;
    let is_here = |schedule: &&Schedule| schedule.job.queue.as_ref().unwrap_or(&default) == &queue.name;
    let schedules: Vec<&Schedule> = schedules.iter().map(|(schedule, _)| schedule).filter(is_here).collect();
    Ok(html! {
        div .columns {
            div {
                h2 { "Workers" }
                @if workers.is_empty() {
                    div .empty { p { "No worker serves this queue." } p { (cli::copyable(&cli::line(&["worker", "start", "--queue", queue.name.as_str()]))) } }
                } @else {
                    ul .list { @for worker in workers { li {
                        a .id href=(visit.url(&format!("/workers/{}", encode(worker.id.as_str())))) { (printable(worker.id.as_str())) }
                        " on " (printable(&worker.host)) " · " (worker.running) "/" (worker.concurrency) " · " (worker.state.name())
                    } } }
                }
            }
            div {
                h2 { "Schedules" }
                @if schedules.is_empty() { p .empty { "No schedule enqueues into this queue." } } @else {
                    ul .list { @for schedule in schedules { li {
                        a .id href=(visit.url(&format!("/schedules/{}", encode(schedule.name.as_str())))) { (printable(schedule.name.as_str())) }
                        " " (printable(&schedule.when.to_string()))
                        @if let Some(at) = schedule.next_runs(1).first() { " · " (time::ago(visit.now, *at)) }
                    } } }
                }
            }
        }
    })
}
