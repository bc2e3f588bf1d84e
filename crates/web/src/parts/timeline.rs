//! A job's life to scale: waiting, attempts, and the pauses between them.

use maud::{Markup, html};

use super::time;
use domain::job::JobRecord;
use domain::job::outcome::OutcomeName;
use domain::values::timestamp::Timestamp;

/// An attempt that is shorter is drawn with this width, in thousandths of the whole.
const MIN_WIDTH: i64 = 6;
/// A narrower bar has no number, and a shorter pause no duration.
const MIN_NUMBERED: i64 = 14;
const MIN_PAUSE: i64 = 60;

/// `url` is the page of the job, which the bars lead to.
pub(crate) fn timeline(record: &JobRecord, now: Timestamp, url: &str) -> Markup {
    let begin = record.job.created_at.as_millis();
    let end = record.job.life.state.finished_at().unwrap_or(now).as_millis().max(begin + 1);
    let place = |at: Timestamp| (at.as_millis().clamp(begin, end) - begin) * 1_000 / (end - begin);
    html! {
        figure .timeline {
            svg role="group" aria-label=(in_words(record, now)) {
                rect .rest y="9" width="100%" height="2" {}
                @for (at, attempt) in record.history.iter().enumerate() {
                    @let until = attempt.ending.as_ref().map_or(now, |ending| ending.finished_at);
                    @let (from, until) = (place(attempt.started_at), place(until));
                    @let width = (until - from).max(MIN_WIDTH);
                    @let from = from.min(1_000 - width);
                    @let before = at.checked_sub(1).and_then(|at| record.history.get(at)).and_then(|other| other.ending.as_ref()).map_or(begin, |ending| ending.finished_at.as_millis());
                    @let pause = from - place(Timestamp::from_millis(before));
                    @if pause > MIN_PAUSE {
                        text .pause x=(percent(from - pause / 2)) y="7" { (time::span(attempt.started_at.since(Timestamp::from_millis(before)))) }
                    }
                    a href={ (url) "?attempt=" (attempt.number) "#log-bar" } {
                        title {
                            "attempt " (attempt.number)
                            @if let Some(ending) = &attempt.ending { ": " (ending.outcome) ", " (time::span(ending.duration)) }
                        }
                        rect class={ "a " (class(attempt.ending.as_ref().map(|ending| ending.outcome.kind()))) }
                            x=(percent(from)) width=(percent(width)) y="2" height="16" rx="2" {}
                        @if width >= MIN_NUMBERED { text .number x=(percent(from + width / 2)) y="14" { (attempt.number) } }
                    }
                }
            }
            figcaption {
                span { "enqueued " (time::clock(now, record.job.created_at)) }
                @if let Some(first) = record.history.first() {
                    span { "waited " (time::span(first.started_at.since(record.job.created_at))) }
                }
                @match record.job.life.state.finished_at() {
                    Some(at) => span { "ended " (time::clock(now, at)) },
                    None => span { "now" },
                }
            }
        }
    }
}

fn percent(thousandths: i64) -> String {
    format!("{}.{}%", thousandths / 10, thousandths % 10)
}

fn class(outcome: Option<OutcomeName>) -> &'static str {
    match outcome {
        None => "running",
        Some(OutcomeName::Success) => "done",
        Some(OutcomeName::Failure | OutcomeName::Signal | OutcomeName::Timeout | OutcomeName::SpawnError) => {
            "failed"
        }
        Some(OutcomeName::Lost | OutcomeName::Cancelled | OutcomeName::Released) => "interrupted",
    }
}

/// The drawing for readers who cannot see it.
fn in_words(record: &JobRecord, now: Timestamp) -> String {
    let attempts = record.history.iter().map(|attempt| match &attempt.ending {
        Some(ending) => {
            format!("attempt {} {} after {}", attempt.number, ending.outcome, time::span(ending.duration))
        }
        None => {
            format!("attempt {} runs since {}", attempt.number, time::span(now.since(attempt.started_at)))
        }
    });
    let attempts: Vec<String> = attempts.collect();
    if attempts.is_empty() { "no attempt yet".to_owned() } else { attempts.join(", ") }
}
