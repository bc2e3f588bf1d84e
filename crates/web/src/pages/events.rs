//! The event log: what people and workers did.

use maud::{Markup, html};

use super::view::{Place, View};
use super::visit::Visit;
use crate::parts::{cli, time};
use crate::problem::Problem;
use crate::request::query::{NUMBER, Param, TEXT, encode};
use domain::text::hostile::printable;
use store::{Event, EventPage, EventRange};

pub(super) const PARAMS: &[Param] = &[
    Param::new("before", NUMBER, "Events before this number"),
    Param::new("job", TEXT, "Events of this job"),
];

const ROWS: usize = 100;

pub(super) fn show(visit: &Visit<'_>) -> Result<View, Problem> {
    let before = visit.query.read("before")?.unwrap_or(i64::MAX.unsigned_abs());
    let page = EventPage { range: EventRange::Before(before), limit: ROWS, job: visit.query.read("job")? };
    let mut events = visit.store.events(&page)?;
    events.reverse();
    Ok(View::new("Events", Place::Events).with("events", "Events", content(visit, &events)))
}

fn content(visit: &Visit<'_>, events: &[Event]) -> Markup {
    let job = visit.query.get("job");
    let older = events.last().filter(|_| events.len() == ROWS).map(|event| {
        let job = job.map_or_else(String::new, |job| format!("&job={}", encode(job)));
        visit.url(&format!("/events?before={}{job}", event.number))
    });
    html! {
        div .bar {
            h1 { "Events" }
            @if let Some(job) = job { a .chip href=(visit.url("/events")) title="Remove this filter" { "job:" (printable(job)) " ×" } }
            (cli::copyable("queuectl events"))
        }
        @if events.is_empty() { p .empty { "Nothing has happened yet." } } @else {
            div .scroll {
                table .rows {
                    thead { tr { th scope="col" { "time" } th scope="col" { "event" } th scope="col" { "by" } th scope="col" { "job" } th scope="col" { "detail" } } }
                    tbody {
                        @for event in events {
                            tr id={ "e" (event.number) } {
                                td { (time::clock(visit.now, event.at)) }
                                td { (printable(&event.event)) }
                                td { (printable(&event.by)) }
                                td { @if let Some(job) = &event.job { a .id href=(visit.job_url(job)) { (printable(job.as_str())) } } }
                                td .error { (printable(event.detail.as_deref().unwrap_or_default())) }
                            }
                        }
                    }
                }
            }
        }
        p .pager { @if let Some(older) = older { a rel="next" href=(older) { "older" } } }
    }
}
