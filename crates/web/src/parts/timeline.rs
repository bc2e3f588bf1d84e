//! A job's life to scale: waiting, attempts, and the pauses between them.

use maud::{Markup, html};

use super::time;
use domain::job::JobRecord;
use domain::job::outcome::OutcomeName;
use domain::values::timestamp::Timestamp;

/// An attempt that is shorter is drawn with this width, in thousandths of the whole.
const MIN_WIDTH: i64 = 6;

pub(crate) fn timeline(record: &JobRecord, now: Timestamp) -> Markup {
    let begin = record.job.created_at.as_millis();
    let end = record.job.life.state.finished_at().unwrap_or(now).as_millis().max(begin + 1);
    let place = |at: Timestamp| (at.as_millis().clamp(begin, end) - begin) * 1_000 / (end - begin);
    html! {
        figure .timeline {
            svg role="img" aria-label=(in_words(record, now)) {
                rect .rest y="9" width="100%" height="2" {}
                @for attempt in &record.history {
                    @let until = attempt.ending.as_ref().map_or(now, |ending| ending.finished_at);
                    @let (from, until) = (place(attempt.started_at), place(until));
                    @let width = (until - from).max(MIN_WIDTH);
                    @let from = from.min(1_000 - width);
                    rect class={ "a " (class(attempt.ending.as_ref().map(|ending| ending.outcome.kind()))) }
                        x=(percent(from)) width=(percent(width)) y="2" height="16" rx="2" {
                        title {
                            "attempt " (attempt.number)
                            @if let Some(ending) = &attempt.ending { ": " (ending.outcome) ", " (time::span(ending.duration)) }
                        }
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
