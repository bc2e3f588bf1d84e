//! What can be done with the dead jobs of a cause: retry one, retry the rest, remove them all.

use maud::{Markup, html};

use crate::pages::visit::Visit;
use crate::parts::button::Act;
use crate::parts::cli;
use crate::parts::number::counted;
use crate::request::query::encode;
use ops::jobs::dlq::CauseGroup;

/// All of them, in the list of causes. One job comes first: if it succeeds, the cause is gone, and the rest may follow.
pub(super) fn of_cause(visit: &Visit<'_>, group: &CauseGroup) -> Markup {
    let cause = group.id.to_string();
    html! {
        @if visit.may_operate() {
            div .actions {
                (canary(visit, group).markup())
                (retry(visit, group, "retry all").markup())
                (purge(visit, group).markup())
            }
        }
        (cli::copyable(&cli::line(&["dlq", "retry", "--cause", &cause])))
    }
}

/// Retries the newest job and leads to the page that shows how it runs.
pub(super) fn canary<'a>(visit: &Visit<'_>, group: &CauseGroup) -> Act<'a> {
    let job = group.example.as_str();
    Act {
        label: "retry one first",
        method: "POST",
        path: visit.url(&format!("/api/v1/jobs/{}/retry", encode(job))),
        cli: cli::line(&["dlq", "retry", job]),
        then: visit.url(&format!("/dead/{}?canary={}", encode(&group.id.to_string()), encode(job))),
        ..Act::default()
    }
}

pub(super) fn retry<'a>(visit: &Visit<'_>, group: &CauseGroup, label: &'a str) -> Act<'a> {
    let cause = group.id.to_string();
    let jobs = counted(group.count, "job", "jobs");
    Act {
        label,
        method: "POST",
        path: visit.url("/api/v1/actions"),
        body: format!(r#"{{"verb":"retry","filter":{{"state":"dead","cause":"{cause}"}}}}"#),
        ask: format!("Retry {jobs}? They begin again with fresh retries."),
        cli: cli::line(&["dlq", "retry", "--cause", &cause]),
        ..Act::default()
    }
}

pub(super) fn purge<'a>(visit: &Visit<'_>, group: &CauseGroup) -> Act<'a> {
    let cause = group.id.to_string();
    let jobs = counted(group.count, "job", "jobs");
    Act {
        label: "remove all",
        method: "POST",
        path: visit.url("/api/v1/actions"),
        body: format!(
            r#"{{"verb":"purge","filter":{{"state":"dead","cause":"{cause}"}},"expect":{}}}"#,
            group.count
        ),
        ask: format!("Remove {jobs} for ever, with their history and output?"),
        cli: cli::line(&["dlq", "purge", "--cause", &cause]),
        type_in: group.count.to_string(),
        is_final: true,
        ..Act::default()
    }
}
