//! The hooks: what waits to be delivered, and what fails.

use maud::{Markup, html};

use super::view::{Place, View};
use super::visit::Visit;
use crate::parts::number::grouped;
use crate::parts::{cli, time};
use crate::problem::Problem;
use domain::text::hostile::printable;
use store::Hook;

pub(super) fn show(visit: &Visit<'_>) -> Result<View, Problem> {
    let hooks = visit.store.hooks()?;
    Ok(View::new("Hooks", Place::Hooks).with("hooks", "Hooks", content(visit, &hooks)))
}

fn content(visit: &Visit<'_>, hooks: &[Hook]) -> Markup {
    html! {
        div .bar { h1 { "Hooks" } (cli::copyable("queuectl hook list")) }
        @if hooks.is_empty() {
            div .empty { p { "No hook yet. A hook runs a command, or calls a URL, when something happens:" } p { (cli::copyable("queuectl hook add --help")) } }
        } @else {
            div .scroll {
                table .rows {
                    thead {
                        tr {
                            th scope="col" { "hook" } th scope="col" .number { "waiting" } th scope="col" { "delivered" }
                            th scope="col" { "failing" } th scope="col" .number { "given up" } th scope="col" { "error" }
                        }
                    }
                    tbody {
                        @for hook in hooks {
                            tr id={ "h-" (hook.name) } {
                                td .id { (printable(hook.name.as_str())) }
                                td .number { (grouped(hook.pending)) }
                                td { @match hook.delivered_at { Some(at) => (time::ago(visit.now, at)), None => "–" } }
                                td { @match hook.failing_since { Some(at) => (time::ago(visit.now, at)), None => "no" } }
                                td .number { (grouped(hook.gave_up)) }
                                td .error { (printable(hook.error.as_deref().unwrap_or_default())) }
                            }
                        }
                    }
                }
            }
        }
    }
}
