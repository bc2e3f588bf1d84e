//! One hook: the deliveries that wait for it, and how the last tries ended.

use maud::{Markup, html};

use super::{condition, target, test, trigger, waiting};
use crate::pages::view::{Place, View};
use crate::pages::visit::Visit;
use crate::parts::button::Act;
use crate::parts::job_row::cut;
use crate::parts::number::grouped;
use crate::parts::{cli, time};
use crate::problem::Problem;
use crate::request::query::encode;
use domain::text::hostile::printable;
use domain::values::name::HookName;
use ops::hook::{deliveries, find};
use store::{Hook, HookDeliveries, TryResult, WaitingDelivery};

/// How many waiting deliveries are shown.
const MAX_WAITING: usize = 50;

pub(crate) fn show(visit: &Visit<'_>) -> Result<View, Problem> {
    let name: HookName = visit.name("hook")?;
    let hook = find(visit.store, &name)?;
    let found = deliveries(visit.store, &name, MAX_WAITING)?;
    Ok(View::new(format!("Hook {name}"), Place::Hooks)
        .with("hook", "Hook", head(visit, &hook))
        .with("waiting", "Waiting deliveries", queue(visit, &hook, &found))
        .with("tries", "Last tries", tries(visit, &found.results)))
}

fn head(visit: &Visit<'_>, hook: &Hook) -> Markup {
    let name = hook.name.as_str();
    let remove = Act {
        label: "remove",
        method: "DELETE",
        path: visit.url(&format!("/api/v1/hooks/{}", encode(name))),
        ask: format!("Remove hook {name} and its undelivered events?"),
        cli: cli::line(&["hook", "remove", name]),
        then: visit.url("/hooks"),
        is_final: true,
        ..Act::default()
    };
    html! {
        div .bar {
            h1 { "Hook " (printable(name)) }
            a href=(visit.url("/hooks")) { "all hooks" }
            (cli::copyable(&cli::line(&["hook", "show", name])))
        }
        dl {
            dt { "on" } dd { (trigger(hook)) }
            dt { "delivers to" } dd { code { (printable(target(hook))) } }
            dt { "condition" } dd { (condition(visit, hook)) }
            dt { "last delivered" } dd { @match hook.delivered_at { Some(at) => (time::ago(visit.now, at)), None => "never" } }
            dt { "given up" } dd {
                (grouped(hook.gave_up))
                @if let Some(at) = hook.gave_up_at { " · last " (time::ago(visit.now, at)) }
            }
            dt { "added" } dd { (time::ago(visit.now, hook.created_at)) " by " (printable(&hook.created_by)) }
        }
        @if visit.may_administer() {
            div .actions { (test(visit, hook).markup()) (remove.markup()) (cli::copyable(&cli::line(&["hook", "test", name]))) }
        }
    }
}

fn queue(visit: &Visit<'_>, hook: &Hook, found: &HookDeliveries) -> Markup {
    html! {
        @let name = hook.name.as_str();
        @let can_retry = visit.may_operate() && !found.waiting.is_empty();
        div .bar {
            h2 { "Waiting" } span { (waiting(hook)) }
            @if can_retry { (retry(visit, hook, "try all now", None).markup()) }
            (cli::copyable(&cli::line(&["hook", "deliveries", name])))
        }
        @if found.waiting.is_empty() { p .empty { "No event waits to be delivered." } } @else {
            div .scroll {
                table .rows {
                    thead { tr { th scope="col" { "delivery" } th scope="col" { "event" } th scope="col" { "since" } th scope="col" .number { "tries" } th scope="col" { "next try" } @if can_retry { th scope="col" { span .hidden { "actions" } } } } }
                    tbody { @for delivery in &found.waiting { (delivery_row(visit, hook, delivery)) } }
                }
            }
        }
    }
}

/// Lets the workers try one delivery now, or all.
fn retry<'a>(visit: &Visit<'_>, hook: &Hook, label: &'a str, delivery: Option<&str>) -> Act<'a> {
    let name = hook.name.as_str();
    let (part, words) = match delivery {
        Some(id) => (format!("/deliveries/{}", encode(id)), vec!["hook", "retry", name, id]),
        None => (String::new(), vec!["hook", "retry", name]),
    };
    Act {
        label,
        method: "POST",
        path: visit.url(&format!("/api/v1/hooks/{}{part}/retry", encode(name))),
        cli: cli::line(&words),
        ..Act::default()
    }
}

fn delivery_row(visit: &Visit<'_>, hook: &Hook, delivery: &WaitingDelivery) -> Markup {
    html! {
        tr id={ "d-" (encode(&delivery.name)) } {
            td .id { (printable(&delivery.name)) }
            td .command title=(printable(&cut(&delivery.payload))) { (printable(&cut(&delivery.payload))) }
            td { (time::ago(visit.now, delivery.created_at)) }
            td .number { (delivery.tries) }
            td { @if delivery.is_sending { "now" } @else { (time::ago(visit.now, delivery.due_at)) } }
            @if visit.may_operate() { td { @if !delivery.is_sending { div .actions { (retry(visit, hook, "try now", Some(&delivery.name)).markup()) } } } }
        }
    }
}

fn tries(visit: &Visit<'_>, results: &[TryResult]) -> Markup {
    html! {
        h2 { "Last tries" }
        @if results.is_empty() { p .empty { "A worker has not tried to deliver anything yet. A test from here is not among the tries." } } @else {
            ul .list {
                @for tried in results {
                    li {
                        @match &tried.error {
                            None => span .state { span .icon.s-completed aria-hidden="true" { "✓" } " delivered" },
                            Some(_) => span .state { span .icon.s-dead aria-hidden="true" { "✕" } " failed" },
                        }
                        " " (time::ago(visit.now, tried.at)) " " code { (printable(&tried.delivery)) }
                        @if let Some(error) = &tried.error { " " span .error { (printable(&cut(error))) } }
                    }
                }
            }
        }
    }
}
