//! One job: what it is, its attempts to scale, why it waits or died, its output and its events.

mod actions;
mod diff;
pub(super) mod follow;
mod graph;
pub(crate) mod lines;
mod log;

use maud::{Markup, html};

use super::Page;
use super::view::{Place, View};
use super::visit::Visit;
use crate::parts::number::{bytes, counted};
use crate::parts::timeline::timeline;
use crate::parts::{cli, state, time};
use crate::problem::Problem;
use domain::job::cause::Cause;
use domain::job::graph::Node;
use domain::job::{Attempt, JobRecord};
use domain::log as output;
use domain::text::hostile::printable;
use domain::values::clock::TimeFormat;
use ops::OpError;
use ops::jobs::explain::explain;

pub(super) use self::log::PARAMS;

/// The pages below that of a job.
pub(super) const PAGES: &[Page] = &[
    Page { path: "/jobs/{id}/log", query: &[PARAMS], show: log::show },
    Page { path: "/jobs/{id}/graph", query: &[], show: graph::show },
    Page { path: "/jobs/{id}/diff", query: &[diff::PARAMS], show: diff::show },
];

/// As many jobs around this one are named; the page of the graph has the others.
const MAX_NEIGHBOURS: usize = 40;

pub(super) fn show(visit: &Visit<'_>) -> Result<View, Problem> {
    let record = record(visit)?;
    let view = View::new(format!("Job {}", record.job.handle()), Place::Jobs)
        .with("job", "Job", head(visit, &record)?)
        .with("life", "Attempts", attempts(visit, &record))
        .with("why", "Why", why(visit, &record)?);
    let view = log::with_log(view, visit, &record, "")?;
    let view = if visit.may_administer() { view.with_script("forms.js") } else { view };
    Ok(view.with("around", "Dependencies", around(visit, &record)?).with(
        "details",
        "Details",
        details(visit, &record)?,
    ))
}

fn record(visit: &Visit<'_>) -> Result<JobRecord, Problem> {
    let id = visit.job()?;
    visit.store.prepare_logs(&visit.server.options.location.home.join(output::FOLDER))?;
    Ok(visit.store.record(&id)?.ok_or_else(|| OpError::NoSuchJob(id.clone()))?)
}

fn head(visit: &Visit<'_>, record: &JobRecord) -> Result<Markup, Problem> {
    let job = &record.job;
    Ok(html! {
        div .bar {
            h1 { (state::of_job(job, visit.now)) " " span .id { (printable(&job.handle())) } }
            button .quiet type="button" data-copy=(job.id) title="Copy the id" aria-label="Copy the id" { "copy" }
            @if let Some(name) = job.name() { b { (printable(name)) } }
            a .plain href=(visit.jobs_url(&[("queue", job.queue.as_str())])) { "queue " (printable(job.queue.as_str())) }
            @if let Some(batch) = &job.batch { a .plain href=(visit.jobs_url(&[("batch", batch.as_str())])) { "batch " (printable(batch.as_str())) } }
            @if let Some(schedule) = &record.schedule { a .plain href=(visit.jobs_url(&[("schedule", schedule.as_str())])) { "schedule " (printable(schedule.as_str())) } }
            @for tag in &job.tags { a .chip href=(visit.jobs_url(&[("tag", tag)])) { (printable(tag)) } }
            (actions::buttons(visit, record))
        }
        pre .command { (output_text(&job.command)) }
        (facts(visit, record))
        (actions::edit(visit, record))
        @if let Some(error) = &job.latest.error { p .problem { (printable(error)) } }
        (alike(visit, record)?)
    })
}

/// Leads from a dead job to those that died of the same cause, where all of them are retried.
fn alike(visit: &Visit<'_>, record: &JobRecord) -> Result<Markup, Problem> {
    let cause = Cause::of(&record.job.life, &record.job.latest).map(|cause| cause.id());
    let known = cause.map(|cause| visit.store.cause(cause)).transpose()?.flatten();
    let others = known.map_or(0, |known| known.count.saturating_sub(1));
    Ok(html! {
        @if let Some(cause) = cause.filter(|_| others > 0) {
            p { a href=(visit.url(&format!("/dead/{cause}"))) { (counted(others, "other dead job has", "other dead jobs have")) " the same cause" } }
        }
    })
}

/// What describes the job in one line.
fn facts(visit: &Visit<'_>, record: &JobRecord) -> Markup {
    let job = &record.job;
    html! {
        p .facts {
            span { "priority " (job.priority) }
            span { (job.life.tries()) " of " (counted(u64::from(job.life.max_retries) + 1, "try", "tries")) }
            span { "enqueued " (time::ago(visit.now, job.created_at)) }
            @if let Some(at) = job.life.state.finished_at() { span { "ended " (time::ago(visit.now, at)) } }
            @if let Some(timeout) = job.timeout { span { "timeout " (time::span(timeout)) } }
            @if let Some(cwd) = &job.cwd { span { "in " code { (printable(cwd)) } } }
        }
    }
}

/// Text with lines, in which nothing hides.
fn output_text(text: &str) -> String {
    domain::text::hostile::printable_lines(text).into_owned()
}

fn attempts(visit: &Visit<'_>, record: &JobRecord) -> Markup {
    html! {
        h2 { "Attempts" }
        @if record.history.is_empty() {
            p .empty { "It has not run yet." }
        } @else {
            (timeline(record, visit.now, &visit.job_url(&record.job.id)))
            div .scroll {
                table .rows.cards {
                    thead {
                        tr {
                            th scope="col" .number { "attempt" }
                            th scope="col" { "outcome" }
                            th scope="col" { "started" }
                            th scope="col" .number { "ran" }
                            th scope="col" .number { "cpu" }
                            th scope="col" .number { "memory" }
                            th scope="col" .number { "output" }
                            th scope="col" { "worker" }
                        }
                    }
                    tbody { @for attempt in record.history.iter().rev() { (attempt_row(visit, record, attempt)) } }
                }
            }
        }
    }
}

fn attempt_row(visit: &Visit<'_>, record: &JobRecord, attempt: &Attempt) -> Markup {
    let link = format!("{}?attempt={}#log-bar", visit.job_url(&record.job.id), attempt.number);
    let ending = attempt.ending.as_ref();
    html! {
        tr id={ "a" (attempt.number) } {
            td .number data-label="attempt" { a href=(link) { (attempt.number) } }
            td data-label="outcome" {
                @match ending {
                    Some(ending) => @match &ending.error {
                        Some(error) => (printable(error)),
                        None => (ending.outcome),
                    },
                    None => (state::badge("processing")),
                }
            }
            td data-label="started" { (time::clock(visit.now, attempt.started_at)) }
            td .number data-label="ran" { @match ending { Some(ending) => (time::span(ending.duration)), None => (time::span(visit.now.since(attempt.started_at))) } }
            td .number data-label="cpu" { (time::span_or_dash(ending.and_then(|ending| ending.usage.cpu))) }
            td .number data-label="memory" { (ending.and_then(|ending| ending.usage.max_rss_bytes).map_or_else(|| "–".to_owned(), bytes)) }
            td .number data-label="output" { (ending.map_or_else(|| "–".to_owned(), |ending| bytes(ending.log_bytes))) }
            td .note data-label="worker" { (printable(attempt.worker.as_str())) " on " (printable(&attempt.host)) }
        }
    }
}

fn why(visit: &Visit<'_>, record: &JobRecord) -> Result<Markup, Problem> {
    let explained = explain(visit.store, &record.job.id, &TimeFormat::Full)?;
    let explanation = &explained.explanation;
    Ok(html! {
        div .bar { h2 { "Why" } (cli::copyable(&cli::line(&["explain", record.job.id.as_str()]))) }
        ul .list { @for reason in &explanation.reasons { li { (cli::sentence(visit.now, &reason.message)) } } }
        @if let Some(start) = explanation.probable_start { p { "It will probably start " (time::ago(visit.now, start)) "." } }
    })
}

/// The jobs that it depends on and that need it, with their states.
fn around(visit: &Visit<'_>, record: &JobRecord) -> Result<Markup, Problem> {
    let Some(graph) = visit.store.graph(&record.job.id, MAX_NEIGHBOURS)? else {
        return Ok(html! {});
    };
    let node = |at: usize| graph.nodes.get(at);
    let before: Vec<&Node> =
        graph.edges.iter().filter(|edge| edge.job == 0).filter_map(|edge| node(edge.depends_on)).collect();
    let after: Vec<&Node> =
        graph.edges.iter().filter(|edge| edge.depends_on == 0).filter_map(|edge| node(edge.job)).collect();
    Ok(html! {
        p .around {
            b { "depends on " }
            @if before.is_empty() { "–" } @for other in before { span .neighbour { (graph::named(visit, other)) } }
            b { "needed by " }
            @if after.is_empty() { "–" } @for other in after { span .neighbour { (graph::named(visit, other)) } }
            @if graph.nodes.len() > 1 {
                a href={ (visit.job_url(&record.job.id)) "/graph" } data-key="G" { "graph" @if graph.is_cut { " of all" } }
            }
        }
    })
}

fn details(visit: &Visit<'_>, record: &JobRecord) -> Result<Markup, Problem> {
    let job = &record.job;
    let inputs = visit.store.inputs(&job.id)?;
    let variables =
        inputs.as_ref().and_then(|inputs| inputs.environment.as_ref()).map(|all| all.iter().count());
    let stdin = inputs.and_then(|inputs| inputs.stdin).map(|stdin| stdin.len() as u64);
    Ok(html! {
        div .columns {
            div {
                h2 { "Details" }
                dl {
                    dt { "id" } dd { span .id { (printable(job.id.as_str())) } }
                    dt { "number" } dd { (job.number) }
                    dt { "changed" } dd { (time::ago(visit.now, job.updated_at)) }
                    dt { "environment" } dd { @match variables { Some(count) => { (counted(count as u64, "variable", "variables")) ", whose values stay in the store" }, None => "that of the worker" } }
                    @if let Some(stdin) = stdin { dt { "standard input" } dd { (bytes(stdin)) } }
                    @if let Some(key) = &job.unique_key { dt { "unique key" } dd { code { (printable(key)) } } }
                }
                p { (cli::copyable(&cli::line(&["show", job.id.as_str()]))) }
            }
            div {
                h2 { "Events" }
                @if record.events.is_empty() { p .note { "No user has changed it." } }
                ul .list {
                    @for event in record.events.iter().rev() {
                        li { b { (printable(&event.event)) } " by " (printable(&event.by)) " " (time::ago(visit.now, event.at)) }
                    }
                }
            }
        }
    })
}
