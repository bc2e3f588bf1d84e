//! The hooks: what waits to be delivered, and what fails.

mod add;
pub(in crate::pages) mod hook;

use maud::{Markup, html};

use crate::pages::view::{Place, View};
use crate::pages::visit::Visit;
use crate::parts::button::Act;
use crate::parts::job_row::cut;
use crate::parts::number::{counted, grouped};
use crate::parts::{cli, time};
use crate::problem::Problem;
use crate::request::query::encode;
use domain::hook::Target;
use domain::text::hostile::printable;
use store::{Hook, MAX_PENDING_COUNTED};

pub(in crate::pages) fn show(visit: &Visit<'_>) -> Result<View, Problem> {
    let hooks = visit.store.hooks()?;
    let view = View::new("Hooks", Place::Hooks).with("hooks", "Hooks", content(visit, &hooks));
    if !visit.may_administer() {
        return Ok(view);
    }
    Ok(view.with_still("add", "Add a hook", add::form(visit)).with_script("forms.js"))
}

fn content(visit: &Visit<'_>, hooks: &[Hook]) -> Markup {
    html! {
        div .bar { h1 { "Hooks" } span { (counted(hooks.len() as u64, "hook", "hooks")) } (cli::copyable(&cli::typed("hook list"))) }
        @if hooks.is_empty() {
            div .empty {
                p { "No hook yet. A hook runs a command, or calls a URL, when something happens:" }
                p { (cli::copyable(&cli::typed("hook add notify-dead --on dead --command 'mail -s dead root'"))) }
            }
        } @else {
            div .scroll {
                table .rows.cards {
                    thead {
                        tr {
                            th scope="col" { "hook" } th scope="col" { "on" } th scope="col" { "delivers to" }
                            th scope="col" .number { "waiting" } th scope="col" { "delivered" }
                            th scope="col" { "condition" } th scope="col" .number { "given up" }
                            @if visit.may_administer() { th scope="col" { span .hidden { "actions" } } }
                        }
                    }
                    tbody { @for hook in hooks { (row(visit, hook)) } }
                }
            }
        }
    }
}

fn row(visit: &Visit<'_>, hook: &Hook) -> Markup {
    let name = hook.name.as_str();
    html! {
        tr id={ "h-" (encode(name)) } {
            td { a .id href=(visit.url(&format!("/hooks/{}", encode(name)))) { (printable(name)) } }
            td data-label="on" { (trigger(hook)) }
            td .command data-label="delivers to" { (printable(&cut(target(hook)))) }
            td .number data-label="waiting" { (waiting(hook)) }
            td data-label="delivered" { @match hook.delivered_at { Some(at) => (time::ago(visit.now, at)), None => span .zero { "never" } } }
            td data-label="condition" { (condition(visit, hook)) }
            td .number data-label="given up" { (grouped(hook.gave_up)) }
            @if visit.may_administer() { td { div .actions { (test(visit, hook).markup()) } } }
        }
    }
}

fn trigger(hook: &Hook) -> Markup {
    let events: Vec<String> =
        hook.trigger.events.iter().map(domain::hook::HookEvent::name_in_flags).collect();
    html! {
        (events.join(", "))
        @if let Some(threshold) = hook.trigger.threshold { " " (grouped(threshold)) }
        @if let Some(queue) = &hook.trigger.queue { " in " (printable(queue.as_str())) }
    }
}

fn target(hook: &Hook) -> &str {
    match &hook.target {
        Target::Command { line, .. } => line,
        Target::Url { url, .. } => url.as_str(),
    }
}

fn waiting(hook: &Hook) -> String {
    let more = if hook.pending >= MAX_PENDING_COUNTED { "+" } else { "" };
    format!("{}{more}", grouped(hook.pending))
}

fn condition(visit: &Visit<'_>, hook: &Hook) -> Markup {
    html! {
        @match hook.failing_since {
            Some(since) => {
                span .state { span .icon.s-dead aria-hidden="true" { "✕" } " failing" }
                " since " (time::ago(visit.now, since))
                @if let Some(error) = &hook.error { ": " span .error { (printable(&cut(error))) } }
            },
            None => span .state { span .icon.s-completed aria-hidden="true" { "✓" } " fine" },
        }
    }
}

/// Delivers a sample event at once, so that its user sees whether the receiver answers.
fn test<'a>(visit: &Visit<'_>, hook: &Hook) -> Act<'a> {
    let name = hook.name.as_str();
    Act {
        label: "test",
        method: "POST",
        path: visit.url(&format!("/api/v1/hooks/{}/test", encode(name))),
        cli: cli::line(&["hook", "test", name]),
        ..Act::default()
    }
}
