//! One job: what it is, its attempts to scale, why it waits or died, its output and its events.

mod actions;

use maud::{Markup, html};

use super::log::{self, MAX_ROWS, Wanted};
use super::view::{Place, View};
use super::visit::Visit;
use crate::parts::number::{bytes, grouped};
use crate::parts::timeline::timeline;
use crate::parts::{cli, log_lines, state, time};
use crate::problem::Problem;
use crate::request::query::{NUMBER, Param, TEXT, encode};
use crate::routes::logs::parse_stream;
use domain::job::{Attempt, JobRecord};
use domain::log as output;
use domain::text::hostile::printable;
use domain::values::clock::TimeFormat;
use jiff::tz::TimeZone;
use ops::OpError;
use ops::jobs::explain::explain;
use ops::jobs::logs::choose;

pub(super) const PARAMS: &[Param] = &[
    Param::new("attempt", NUMBER, "The output of this attempt"),
    Param::new("stream", TEXT, "Only this stream: stdout or stderr"),
    Param::new("q", TEXT, "Only lines with this text"),
    Param::new("line", NUMBER, "From this line on"),
];

pub(super) fn show(visit: &Visit<'_>) -> Result<View, Problem> {
    let id = visit.job()?;
    visit.store.prepare_logs(&visit.server.options.location.home.join(output::FOLDER))?;
    let record = visit.store.record(&id)?.ok_or_else(|| OpError::NoSuchJob(id.clone()))?;
    let view = View::new(format!("Job {}", record.job.handle()), Place::Jobs)
        .with("job", "Job", head(visit, &record))
        .with("life", "Attempts", attempts(visit, &record))
        .with("why", "Why", why(visit, &record)?);
    Ok(view.with("log", "Output", log_section(visit, &record)?).with(
        "details",
        "Details",
        details(visit, &record),
    ))
}

fn head(visit: &Visit<'_>, record: &JobRecord) -> Markup {
    let job = &record.job;
    html! {
        div .bar {
            h1 { (state::of_job(job, visit.now)) " " span .id { (printable(&job.handle())) } }
            @if let Some(name) = job.name() { b { (printable(name)) } }
            a .plain href=(visit.jobs_url(&[("queue", job.queue.as_str())])) { "queue " (printable(job.queue.as_str())) }
            @if let Some(batch) = &job.batch { a .plain href=(visit.jobs_url(&[("batch", batch.as_str())])) { "batch " (printable(batch.as_str())) } }
            @if let Some(schedule) = &record.schedule { a .plain href=(visit.jobs_url(&[("schedule", schedule.as_str())])) { "schedule " (printable(schedule.as_str())) } }
            @for tag in &job.tags { a .chip href=(visit.jobs_url(&[("tag", tag)])) { (printable(tag)) } }
        }
        pre .command { (output_text(&job.command)) }
        @if let Some(error) = &job.latest.error { p .problem { (printable(error)) } }
        (actions::buttons(visit, record))
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
            (timeline(record, visit.now))
            div .scroll {
                table .rows {
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
    let link = format!("{}?attempt={}#log", visit.job_url(&record.job.id), attempt.number);
    let ending = attempt.ending.as_ref();
    html! {
        tr id={ "a" (attempt.number) } {
            td .number { a href=(link) { (attempt.number) } }
            td {
                @match ending {
                    Some(ending) => @match &ending.error {
                        Some(error) => (printable(error)),
                        None => (ending.outcome),
                    },
                    None => (state::badge("processing")),
                }
            }
            td { (time::clock(visit.now, attempt.started_at)) }
            td .number { @match ending { Some(ending) => (time::span(ending.duration)), None => (time::span(visit.now.since(attempt.started_at))) } }
            td .number { (time::span_or_dash(ending.and_then(|ending| ending.usage.cpu))) }
            td .number { (ending.and_then(|ending| ending.usage.max_rss_bytes).map_or_else(|| "–".to_owned(), bytes)) }
            td .number { (ending.map_or_else(|| "–".to_owned(), |ending| bytes(ending.log_bytes))) }
            td .note { (printable(attempt.worker.as_str())) " on " (printable(&attempt.host)) }
        }
    }
}

fn why(visit: &Visit<'_>, record: &JobRecord) -> Result<Markup, Problem> {
    let explained = explain(visit.store, &record.job.id, &TimeFormat::Short(TimeZone::UTC))?;
    let explanation = &explained.explanation;
    Ok(html! {
        h2 { "Why" }
        ul .list { @for reason in &explanation.reasons { li { (cli::with_code(&reason.message)) } } }
        @if let Some(start) = explanation.probable_start { p { "It will probably start " (time::ago(visit.now, start)) "." } }
        @if !record.job.depends_on.is_empty() {
            p { "It depends on: " @for id in &record.job.depends_on { a .id href=(visit.job_url(id)) { (printable(id.as_str())) } " " } }
        }
    })
}

/// The output of one attempt; output that is gone says so.
fn log_section(visit: &Visit<'_>, record: &JobRecord) -> Result<Markup, Problem> {
    let query = visit.query;
    let home = &visit.server.options.location.home;
    let Some(attempt) = choose(record, home, query.read("attempt")?)? else {
        return Ok(html! { h2 #output { "Output" } p .empty { "There is none: the job has not run yet." } });
    };
    let wanted =
        Wanted { only: parse_stream(query.get("stream"))?, text: query.get("q"), from: query.read("line")? };
    let read = log::read(visit, record, attempt, &wanted);
    let url = |changes: &[(&str, &str)]| log_url(visit, record, changes);
    let download = format!(
        "/api/v1/jobs/{}/attempts/{}/log?as=text&limit=16777216",
        encode(record.job.id.as_str()),
        attempt.number
    );
    Ok(html! {
        div .bar {
            h2 #output { "Output of attempt " (attempt.number) }
            nav .ranges aria-label="Attempt" {
                @for known in &record.history {
                    a href=(url(&[("attempt", &known.number.to_string()), ("line", "")])) aria-current=[(known.number == attempt.number).then_some("true")] { (known.number) }
                }
            }
            nav .ranges aria-label="Stream" {
                @for (name, value) in [("both", ""), ("stdout", "stdout"), ("stderr", "stderr")] {
                    a href=(url(&[("stream", value)])) aria-current=[(query.get("stream").unwrap_or("") == value).then_some("true")] { (name) }
                }
            }
            form .find method="get" action=(visit.job_url(&record.job.id)) role="search" {
                input type="hidden" name="attempt" value=(attempt.number);
                input type="search" name="q" value=[query.get("q")] placeholder="find in the output" aria-label="Find in the output";
            }
            a href=(visit.url(&download)) download { "download" }
            (cli::copyable(&cli::line(&["logs", record.job.id.as_str(), "--attempt", &attempt.number.to_string()])))
        }
        @match &read {
            Err(problem) => p .empty { (printable(problem.detail())) @if let Some(hint) = problem.hint() { ". " (cli::with_code(hint)) } },
            Ok(window) if window.rows.is_empty() => p .empty {
                @if wanted.text.is_some() { "No line has this text." } @else if attempt.ending.is_none() { "It has printed nothing so far." } @else { "It printed nothing." }
            },
            Ok(window) => {
                @let base = log_base(visit, record, attempt.number);
                (log_lines::rows(visit, &window.rows, &base))
                (pager(&window.rows, window.lines, &wanted, url))
            },
        }
    })
}

fn pager(
    rows: &[log_lines::LogRow],
    lines: u64,
    wanted: &Wanted<'_>,
    url: impl Fn(&[(&str, &str)]) -> String,
) -> Markup {
    let number = |row: &log_lines::LogRow| match row {
        log_lines::LogRow::Line { number, .. } => Some(*number),
        log_lines::LogRow::Cut { .. } => None,
    };
    let (first, last) =
        (rows.iter().find_map(number).unwrap_or(1), rows.iter().rev().find_map(number).unwrap_or(1));
    let earlier = first.saturating_sub(MAX_ROWS as u64).max(1).to_string();
    html! {
        p .pager {
            span { "lines " (grouped(first)) "–" (grouped(last)) " of " (grouped(lines)) }
            @if first > 1 && wanted.text.is_none() { a href=(url(&[("line", "1")])) { "beginning" } a href=(url(&[("line", &earlier)])) { "earlier" } }
            @if last < lines && wanted.from.is_some() { a href=(url(&[("line", &(last + 1).to_string())])) { "later" } }
            @if wanted.from.is_some() { a href=(url(&[("line", "")])) { "end" } }
            @if wanted.text.is_some() { a href=(url(&[("q", "")])) { "all lines" } }
        }
    }
}

fn log_url(visit: &Visit<'_>, record: &JobRecord, changes: &[(&str, &str)]) -> String {
    let is_kept = |name: &str| !changes.iter().any(|(changed, _)| *changed == name);
    let kept = visit.query.pairs().filter(|(name, _)| is_kept(name));
    let all = kept.chain(changes.iter().copied().filter(|(_, value)| !value.is_empty()));
    let pairs: Vec<String> = all.map(|(name, value)| format!("{name}={}", encode(value))).collect();
    format!("{}?{}#log", visit.job_url(&record.job.id), pairs.join("&"))
}

/// The URL that links to single lines extend.
fn log_base(visit: &Visit<'_>, record: &JobRecord, attempt: u32) -> String {
    format!("{}?attempt={attempt}&", visit.job_url(&record.job.id))
}

fn details(visit: &Visit<'_>, record: &JobRecord) -> Markup {
    let job = &record.job;
    html! {
        h2 { "Details" }
        dl {
            dt { "id" } dd { span .id { (printable(job.id.as_str())) } }
            dt { "number" } dd { (job.number) }
            dt { "priority" } dd { (job.priority) }
            dt { "tries" } dd { (job.life.tries()) " of " (u64::from(job.life.max_retries) + 1) }
            dt { "enqueued" } dd { (time::ago(visit.now, job.created_at)) }
            dt { "changed" } dd { (time::ago(visit.now, job.updated_at)) }
            @if let Some(timeout) = job.timeout { dt { "timeout" } dd { (time::span(timeout)) } }
            @if let Some(cwd) = &job.cwd { dt { "directory" } dd { code { (printable(cwd)) } } }
            @if let Some(key) = &job.unique_key { dt { "unique key" } dd { code { (printable(key)) } } }
        }
        @if !record.events.is_empty() {
            h2 { "Events" }
            ul .list { @for event in record.events.iter().rev() { li { (time::ago(visit.now, event.at)) " " b { (printable(&event.event)) } " by " (printable(&event.by)) } } }
        }
        p { (cli::copyable(&cli::line(&["show", job.id.as_str()]))) }
    }
}
