//! What can be done with a schedule.

use maud::{Markup, html};

use crate::pages::visit::Visit;
use crate::parts::button::Act;
use crate::parts::{cli, form};
use crate::request::query::encode;
use domain::schedule::Schedule;

fn post<'a>(visit: &Visit<'_>, schedule: &Schedule, label: &'a str, verb: &str) -> Act<'a> {
    let name = schedule.name.as_str();
    Act {
        label,
        method: "POST",
        path: visit.url(&format!("/api/v1/schedules/{}/{verb}", encode(name))),
        cli: cli::line(&["schedule", verb, name]),
        ..Act::default()
    }
}

/// In a row of the list.
pub(super) fn short(visit: &Visit<'_>, schedule: &Schedule) -> Markup {
    html! {
        div .actions {
            (post(visit, schedule, "run now", "run").markup())
            @if schedule.paused.is_some() { (post(visit, schedule, "resume", "resume").markup()) }
            @else { (post(visit, schedule, "pause", "pause").markup()) }
        }
    }
}

/// On the page of the schedule.
pub(super) fn all(visit: &Visit<'_>, schedule: &Schedule) -> Markup {
    let name = schedule.name.as_str();
    let remove = Act {
        label: "remove",
        method: "DELETE",
        path: visit.url(&format!("/api/v1/schedules/{}", encode(name))),
        ask: format!("Remove schedule {name}? The jobs that it has enqueued stay."),
        cli: cli::line(&["schedule", "remove", name]),
        then: visit.url("/schedules"),
        is_final: true,
        ..Act::default()
    };
    html! {
        @if visit.may_operate() {
            div .actions {
                (post(visit, schedule, "run now", "run").markup())
                @if schedule.paused.is_some() { (post(visit, schedule, "resume", "resume").markup()) }
                @if visit.may_administer() { (remove.markup()) }
                (cli::copyable(&cli::line(&["schedule", "run", name])))
            }
        }
    }
}

/// The form that pauses it, with a reason.
pub(super) fn pause(visit: &Visit<'_>, schedule: &Schedule) -> Markup {
    let name = schedule.name.as_str();
    let path = visit.url(&format!("/api/v1/schedules/{}/pause", encode(name)));
    let effect =
        html! { "It enqueues nothing until it is resumed; runs that are due meanwhile are left out." };
    html! {
        h2 { "Pause" }
        (form::pause(&path, &cli::line(&["schedule", "pause", name]), &effect))
    }
}
