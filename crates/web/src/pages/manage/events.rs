//! The event log: what people and workers did.

use maud::{Markup, html};

use crate::pages::view::{Place, View};
use crate::pages::visit::Visit;
use crate::parts::job_row::cut;
use crate::parts::{cli, time};
use crate::problem::Problem;
use crate::request::query::{NUMBER, Param, TEXT, encode};
use crate::routes::events::read;
use domain::text::hostile::printable;
use domain::values::name::JobId;
use store::{Event, EventRange};

pub(in crate::pages) const PARAMS: &[Param] = &[
    Param::new("before", NUMBER, "Events before this number"),
    Param::new("job", TEXT, "Events of this job"),
    Param::new("by", TEXT, "Events by this user or token"),
    Param::new("event", TEXT, "Events of this kind: cancel, retry, pause"),
];

const ROWS: usize = 100;
const FILTERS: [&str; 3] = ["by", "event", "job"];

pub(in crate::pages) fn show(visit: &Visit<'_>) -> Result<View, Problem> {
    let before = visit.query.read("before")?.unwrap_or(i64::MAX.unsigned_abs());
    let job: Option<JobId> = visit.query.read("job")?;
    let (by, kind) = (visit.query.get("by"), visit.query.get("event"));
    let is_shown =
        |event: &Event| by.is_none_or(|by| event.by == by) && kind.is_none_or(|kind| event.event == kind);
    let (events, next) = read(visit.store, EventRange::Before(before), job.as_ref(), ROWS, is_shown)?;
    Ok(View::new("Events", Place::Events).with("events", "Events", content(visit, &events, next)))
}

/// The page with one filter changed; an empty value removes it.
fn filtered(visit: &Visit<'_>, name: &str, value: &str) -> String {
    let kept = visit.query.pairs().filter(|(known, _)| *known != name && *known != "before");
    let pairs = kept.chain([(name, value)]).filter(|(_, value)| !value.is_empty());
    let pairs: Vec<String> = pairs.map(|(name, value)| format!("{name}={}", encode(value))).collect();
    visit.url(&format!("/events?{}", pairs.join("&")))
}

fn content(visit: &Visit<'_>, events: &[Event], next: Option<EventRange>) -> Markup {
    let job = visit.query.get("job");
    let words: Vec<&str> = ["events"].into_iter().chain(job).collect();
    html! {
        div .bar {
            h1 { "Events" }
            @for name in FILTERS {
                @if let Some(value) = visit.query.get(name) {
                    a .chip href=(filtered(visit, name, "")) title="Remove this filter" { (name) ":" (printable(value)) " ×" }
                }
            }
            (cli::copyable(&cli::line(&words)))
        }
        (filters(visit))
        @if events.is_empty() {
            div .empty {
                @if visit.query.pairs().next().is_some() { p { "No event matches." } p { a href=(visit.url("/events")) { "all events" } } }
                @else { p { "Nothing has happened yet. This follows what happens:" } p { (cli::copyable(&cli::typed("events --follow"))) } }
            }
        } @else { (table(visit, events)) }
        p .pager {
            @if visit.query.get("before").is_some() { a href=(filtered(visit, "before", "")) { "newest" } }
            @if let Some(EventRange::Before(number)) = next {
                a rel="next" href=(visit.url(&format!("/events?{}", visit.query.with("before", &number.to_string())))) {
                    @if events.is_empty() { "search older events: these were only the latest" } @else { "older" }
                }
            }
        }
    }
}

fn filters(visit: &Visit<'_>) -> Markup {
    html! {
        form .inline.filters action=(visit.url("/events")) method="get" {
            @for (name, label, example) in [("by", "by", "root via dashboard"), ("event", "event", "retry"), ("job", "job", "its id")] {
                label .row { span { (label) } input name=(name) value=[visit.query.get(name)] placeholder=(example) autocomplete="off"; }
            }
            button type="submit" { "filter" }
        }
    }
}

fn table(visit: &Visit<'_>, events: &[Event]) -> Markup {
    html! {
        div .scroll {
            table .rows.cards {
                thead { tr { th scope="col" { "time" } th scope="col" { "event" } th scope="col" { "by" } th scope="col" { "job" } th scope="col" { "detail" } } }
                tbody {
                    @for event in events {
                        tr id={ "e" (event.number) } {
                            td data-label="time" { (time::clock(visit.now, event.at)) }
                            td data-label="event" { a .plain href=(filtered(visit, "event", &event.event)) { (printable(&event.event)) } }
                            td data-label="by" { a .plain href=(filtered(visit, "by", &event.by)) { (printable(&event.by)) } }
                            td data-label="job" { @if let Some(job) = &event.job { a .id href=(visit.job_url(job)) { (printable(&cut(job.as_str()))) } } }
                            td .error data-label="detail" { (printable(event.detail.as_deref().unwrap_or_default())) }
                        }
                    }
                }
            }
        }
    }
}
