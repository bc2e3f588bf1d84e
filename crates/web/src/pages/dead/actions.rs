//! What can be done with the dead jobs of a cause: retry one, retry the rest, remove them all. On a page of one queue all of
//! it is about the jobs in that queue.

use maud::{Markup, html};
use serde_json::{Value, json};

use super::{only_queue, url_of_cause};
use crate::pages::visit::Visit;
use crate::parts::button::Act;
use crate::parts::cli;
use crate::parts::number::{counted, grouped};
use crate::request::query::encode;
use ops::jobs::dlq::CauseGroup;

/// To retry more jobs, their number has to be typed, as in the list of jobs.
const MAX_UNTYPED: u64 = 100;

/// All of them, in the list of causes. One job comes first: if it succeeds, the cause is gone, and the rest may follow.
pub(super) fn of_cause(visit: &Visit<'_>, group: &CauseGroup) -> Markup {
    html! {
        @if visit.may_operate() {
            div .actions {
                @if group.count > 1 { (canary(visit, group).markup()) }
                (retry(visit, group, if group.count > 1 { "retry all" } else { "retry" }).markup())
                (purge(visit, group).markup())
            }
        }
        (cli::copyable(&command(visit, group, "retry")))
    }
}

/// Retries the newest job and leads to the page that shows how it runs.
fn canary<'a>(visit: &Visit<'_>, group: &CauseGroup) -> Act<'a> {
    let job = group.example.as_str();
    Act {
        label: "retry one first",
        method: "POST",
        path: visit.url(&format!("/api/v1/jobs/{}/retry", encode(job))),
        cli: cli::line(&["dlq", "retry", job]),
        then: url_of_cause(visit, group, Some(("canary", job))),
        ..Act::default()
    }
}

pub(super) fn retry<'a>(visit: &Visit<'_>, group: &CauseGroup, label: &'a str) -> Act<'a> {
    let (is_typed, jobs) = (group.count > MAX_UNTYPED, counted(group.count, "job", "jobs"));
    Act {
        label,
        method: "POST",
        path: visit.url("/api/v1/actions"),
        body: json!({ "verb": "retry", "filter": filter(visit, group) }).to_string(),
        ask: format!("Retry {jobs}? {}. They begin again with fresh retries.", counts(group)),
        cli: command(visit, group, "retry"),
        type_in: if is_typed { group.count.to_string() } else { String::new() },
        ..Act::default()
    }
}

fn purge<'a>(visit: &Visit<'_>, group: &CauseGroup) -> Act<'a> {
    let (count, jobs) = (group.count, counted(group.count, "job", "jobs"));
    Act {
        label: if count > 1 { "remove all" } else { "remove" },
        method: "POST",
        path: visit.url("/api/v1/actions"),
        body: json!({ "verb": "purge", "filter": filter(visit, group), "expect": count }).to_string(),
        ask: format!("Remove {jobs} for ever, with their history and output? {}.", counts(group)),
        cli: command(visit, group, "purge"),
        type_in: count.to_string(),
        is_final: true,
        ..Act::default()
    }
}

/// The jobs of the cause, as the body of an action has them.
fn filter(visit: &Visit<'_>, group: &CauseGroup) -> Value {
    let mut filter = json!({ "state": "dead", "cause": group.id.to_string() });
    if let Some(queue) = only_queue(visit) {
        filter["queue"] = queue.into();
    }
    filter
}

/// The command that does the same to the same jobs.
fn command(visit: &Visit<'_>, group: &CauseGroup, verb: &str) -> String {
    let cause = group.id.to_string();
    let mut words = vec!["dlq", verb, "--cause", &cause];
    if let Some(queue) = only_queue(visit) {
        words.extend(["--queue", queue]);
    }
    cli::line(&words)
}

/// How many jobs each queue has: `dead 40 · queue mail 38 · queue web 2`.
fn counts(group: &CauseGroup) -> String {
    let queues = group.by_queue.iter().map(|(queue, count)| format!(" · queue {queue} {}", grouped(*count)));
    format!("dead {}{}", grouped(group.count), queues.collect::<String>())
}
