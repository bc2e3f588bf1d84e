//! What `doctor` finds, and what this program and its queue are.

use maud::{Markup, html};

use crate::pages::visit::Visit;
use crate::parts::cli;
use crate::parts::number::counted;
use crate::problem::Problem;
use crate::routes::doctor::last_findings;
use domain::text::hostile::printable;

pub(super) fn doctor(visit: &Visit<'_>) -> Markup {
    let findings = last_findings(visit.server);
    let count = |level: &str| findings.iter().filter(|finding| finding.level == level).count() as u64;
    html! {
        div .bar {
            p { (counted(count("error"), "error", "errors")) ", " (counted(count("warning"), "warning", "warnings")) ", " (counted(count("ok"), "check", "checks")) " passed" }
            (cli::copyable(&cli::typed("doctor")))
        }
        ul .list {
            @for level in ["error", "warning", "ok"] {
                @for finding in findings.iter().filter(|finding| finding.level == level) {
                    li .finding {
                        @match level {
                            "error" => span .icon.s-dead { "✕" },
                            "warning" => span .icon.s-failed { "!" },
                            _ => span .icon.s-completed { "✓" },
                        }
                        " " b { (printable(&finding.check)) } " " (cli::sentence(visit.now, &finding.said))
                        @if let Some(advice) = &finding.advice { p .how { (cli::sentence(visit.now, advice)) } }
                    }
                }
            }
        }
        p .note { "The server diagnoses at most once in 10 seconds." }
    }
}

pub(super) fn program(visit: &Visit<'_>) -> Result<Markup, Problem> {
    let options = &visit.server.options;
    let status = visit.status()?;
    Ok(html! {
        dl {
            dt { "program" } dd { "queuectl " (env!("CARGO_PKG_VERSION")) }
            dt { "home" } dd { code { (printable(&options.location.home.display().to_string())) } }
            dt { "store" } dd { code { (printable(&options.location.place().display().to_string())) } }
            dt { "shared between machines" } dd { @if visit.store.spans_machines() { "yes" } @else { "no" } }
            dt { "jobs" } dd { (crate::parts::number::grouped(status.jobs.values().sum::<u64>())) }
            dt { "this session may" } dd { (visit.scope.name()) }
            dt { "API" } dd { a href=(visit.url("/api/v1/openapi.json")) { "openapi.json" } }
        }
        p { "Every page shows the command that does the same. The whole list: " (cli::copyable(&cli::typed("--help"))) }
    })
}
