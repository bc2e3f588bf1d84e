//! The output of an attempt: its rows, and what leads to others.

use maud::{Markup, html};

use super::follow::list;
use super::lines::{self, MAX_ROWS, Wanted, Window};
use crate::pages::view::{Place, View};
use crate::pages::visit::Visit;
use crate::parts::cli;
use crate::parts::log_lines::LogRow;
use crate::parts::number::{counted, grouped};
use crate::problem::Problem;
use crate::request::query::{NUMBER, Param, TEXT, encode};
use crate::routes::logs::parse_stream;
use domain::job::{Attempt, JobRecord};
use domain::text::hostile::printable;
use ops::jobs::logs::choose;

pub(in crate::pages) const PARAMS: &[Param] = &[
    Param::new("attempt", NUMBER, "The output of this attempt"),
    Param::new("stream", TEXT, "Only this stream: stdout or stderr"),
    Param::new("q", TEXT, "Mark lines with this text, and begin with the first"),
    Param::new("line", NUMBER, "From this line on"),
];

/// The page that has nothing but the output.
pub(super) fn show(visit: &Visit<'_>) -> Result<View, Problem> {
    let record = super::record(visit)?;
    let handle = record.job.handle();
    let title = html! {
        div .bar {
            h1 { "Output of job " a .id href=(visit.job_url(&record.job.id)) { (printable(&handle)) } }
            (crate::parts::state::of_job(&record.job, visit.now))
            code .plain { (printable(&crate::parts::job_row::cut(&record.job.command))) }
        }
    };
    let view = View::new(format!("Output of job {handle}"), Place::Jobs).with("job", "Job", title);
    with_log(view, visit, &record, "/log")
}

/// The sections of the output; `below` is the page within those of the job.
pub(super) fn with_log(
    view: View,
    visit: &Visit<'_>,
    record: &JobRecord,
    below: &'static str,
) -> Result<View, Problem> {
    let home = &visit.server.options.location.home;
    let Some(attempt) = choose(record, home, visit.query.read("attempt")?)? else {
        let none = html! { h2 { "Output" } p .empty { "There is none: the job has not run yet." } };
        return Ok(view.with("log-bar", "Output", none).with_script("log.js"));
    };
    let log = Log { visit, record, attempt, below };
    let view = view.with("log-bar", "Output", log.bar()).with_script("log.js");
    // A followed log is too long to be rendered for each change of the job.
    let lines = if visit.is_load {
        log.lines()?
    } else {
        html! {}
    };
    Ok(view.with_still("log", "Lines", lines))
}

struct Log<'a> {
    visit: &'a Visit<'a>,
    record: &'a JobRecord,
    attempt: &'a Attempt,
    below: &'static str,
}

impl Log<'_> {
    /// The same page with some parameters changed.
    fn url(&self, changes: &[(&str, &str)]) -> String {
        let is_kept = |name: &str| !changes.iter().any(|(changed, _)| *changed == name);
        let kept = self.visit.query.pairs().filter(|(name, _)| is_kept(name));
        let all = kept.chain(changes.iter().copied().filter(|(_, value)| !value.is_empty()));
        let pairs: Vec<String> = all.map(|(name, value)| format!("{name}={}", encode(value))).collect();
        let query = if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) };
        format!("{}{}{query}#log-bar", self.visit.job_url(&self.record.job.id), self.below)
    }

    fn bar(&self) -> Markup {
        let (visit, attempt) = (self.visit, self.attempt);
        let id = &self.record.job.id;
        let (number, latest) = (attempt.number, self.record.history.last().map_or(0, |last| last.number));
        let stream = visit.query.get("stream").unwrap_or("");
        let download =
            format!("/api/v1/jobs/{}/attempts/{number}/log?as=text&limit=16777216", encode(id.as_str()));
        let before = self.record.history.iter().rev().find(|known| known.number < number);
        html! {
            div .bar.log-bar data-latest=(latest) {
                h2 { "Output" }
                (self.attempts())
                nav .ranges aria-label="Stream" {
                    @for (name, value) in [("stdout+stderr", ""), ("stdout", "stdout"), ("stderr", "stderr")] {
                        a href=(self.url(&[("stream", value), ("line", "")])) aria-current=[(stream == value).then_some("true")] { (name) }
                    }
                }
                form .find method="get" action={ (visit.job_url(id)) (self.below) } role="search" {
                    input type="hidden" name="attempt" value=(number);
                    @if !stream.is_empty() { input type="hidden" name="stream" value=(stream); }
                    input type="search" name="q" value=[visit.query.get("q")] placeholder="find   /" aria-label="Find in the output";
                    span #found role="status" data-own {}
                }
                span .scripted data-own {
                    button type="button" data-log="previous" aria-label="Previous match" title="Previous match (N)" { "▴" }
                    button type="button" data-log="next" aria-label="Next match" title="Next match (n)" { "▾" }
                    button type="button" data-log="times" aria-pressed="false" title="Time of each line (t)" { "times" }
                    button type="button" data-log="wrap" aria-pressed="true" title="Wrap long lines (w)" { "wrap" }
                    button type="button" data-log="follow" aria-pressed="false" title="Follow the output (f)" { "follow" }
                }
                @if let Some(before) = before {
                    @let query = format!("a={}&b={number}", before.number);
                    a href={ (visit.job_url(id)) "/diff?" (query) } data-key="d" { "diff with " (before.number) }
                }
                a href=(visit.url(&download)) download { "download" }
            }
        }
    }

    fn attempts(&self) -> Markup {
        html! {
            nav .ranges.attempts aria-label="Attempt" {
                @for known in &self.record.history {
                    a href=(self.url(&[("attempt", &known.number.to_string()), ("line", "")]))
                        aria-current=[(known.number == self.attempt.number).then_some("true")] { (known.number) }
                }
            }
        }
    }

    /// The rows; output that is gone says so.
    fn lines(&self) -> Result<Markup, Problem> {
        let query = self.visit.query;
        let wanted = Wanted {
            only: parse_stream(query.get("stream"))?,
            text: query.get("q").map(str::to_owned),
            from: query.read("line")?,
            row: None,
            with_hits: true,
        };
        let window = match lines::read(self.visit, self.record, self.attempt, wanted.clone()) {
            Ok(window) => window,
            Err(problem) => return Ok(gone(self.visit, &problem)),
        };
        let list = list(self.visit.server, &self.record.job.id, self.attempt, &window, self.visit.now);
        let is_running = self.attempt.ending.is_none();
        Ok(html! {
            (list)
            @if window.rows.is_empty() {
                p .note #log-empty {
                    @if wanted.only.is_some() { "Nothing on this stream." } @else if is_running { "It has printed nothing so far." } @else { "It printed nothing." }
                }
            }
            (self.pager(&window, &wanted))
        })
    }

    fn pager(&self, window: &Window, wanted: &Wanted) -> Markup {
        let number = |row: &LogRow| match row {
            LogRow::Line(line) => Some(line.number),
            LogRow::Cut { .. } => None,
        };
        let first = window.rows.iter().find_map(number).unwrap_or(1);
        let last = window.rows.iter().rev().find_map(number).unwrap_or(1);
        let (total, earlier) = (window.lines, first.saturating_sub(MAX_ROWS as u64).max(1).to_string());
        let next_hit = window.hits.iter().find(|hit| **hit > last);
        html! {
            p .pager #log-pager {
                (cli::copyable(&cli::line(&["logs", self.record.job.id.as_str(), "--attempt", &self.attempt.number.to_string()])))
                span #log-place { "lines " (grouped(first)) "–" (grouped(last)) " of " (grouped(total)) }
                @if first > 1 { a href=(self.url(&[("line", "1")])) { "beginning" } a href=(self.url(&[("line", &earlier)])) { "earlier" } }
                @if last < total { a href=(self.url(&[("line", &(last + 1).to_string())])) { "later" } a href=(self.url(&[("line", ""), ("q", "")])) { "end" } }
                @if wanted.text.is_some() {
                    span { (counted(window.hits.len() as u64, "line has the text", "lines have the text")) }
                    @if let Some(hit) = next_hit { a href=(self.url(&[("line", &hit.to_string())])) { "next match" } }
                    a href=(self.url(&[("q", ""), ("line", "")])) { "end the search" }
                }
            }
        }
    }
}

fn gone(visit: &Visit<'_>, problem: &Problem) -> Markup {
    html! {
        p .empty {
            (printable(problem.detail()))
            @if let Some(hint) = problem.hint() { ". " (cli::sentence(visit.now, hint)) }
        }
    }
}
