//! The dead jobs, grouped by what they died of.

use maud::{Markup, html};

use super::view::{Place, View};
use super::visit::Visit;
use crate::parts::button::Act;
use crate::parts::job_row::cut;
use crate::parts::number::{counted, grouped};
use crate::parts::{cli, time};
use crate::problem::Problem;
use crate::request::query::{Param, TEXT, encode};
use domain::text::hostile::printable;
use ops::jobs::dlq::{CauseGroup, group_by_cause};
use store::JobFilter;

pub(super) const PARAMS: &[Param] = &[Param::new("queue", TEXT, "Only of this queue")];

pub(super) fn show(visit: &Visit<'_>) -> Result<View, Problem> {
    let filter = JobFilter { queue: visit.query.read("queue")?, ..JobFilter::default() };
    let groups = group_by_cause(visit.store, &filter)?;
    let view = View::new("Dead", Place::Dead);
    Ok(view.with("causes", "Dead jobs by cause", content(visit, &groups)))
}

fn content(visit: &Visit<'_>, groups: &[CauseGroup]) -> Markup {
    let all: u64 = groups.iter().map(|group| group.count).sum();
    let queue = visit.query.get("queue");
    let words: Vec<&str> = ["dlq", "list", "--group"]
        .into_iter()
        .chain(queue.iter().flat_map(|queue| ["--queue", *queue]))
        .collect();
    html! {
        div .bar {
            h1 { "Dead" }
            span { (counted(all, "job", "jobs")) " of " (counted(groups.len() as u64, "cause", "causes")) }
            @if let Some(queue) = queue {
                a .chip href=(visit.url("/dead")) title="Remove this filter" { "queue:" (printable(queue)) " ×" }
            }
            (cli::copyable(&cli::line(&words)))
        }
        @if groups.is_empty() {
            div .empty {
                p { "No job is dead. A job dies when its last retry has failed." }
                p { a href=(visit.jobs_url(&[("state", "failed")])) { "Jobs that failed and will run again" } }
            }
        } @else {
            div .scroll {
                table .rows.causes {
                    thead {
                        tr {
                            th scope="col" .number { "jobs" }
                            th scope="col" { "cause" }
                            th scope="col" { "queues" }
                            th scope="col" { "first" }
                            th scope="col" { "last" }
                            th scope="col" { "example" }
                            @if visit.may_operate() { th scope="col" { span .hidden { "actions" } } }
                        }
                    }
                    tbody { @for group in groups { (row(visit, group)) } }
                }
            }
        }
    }
}

fn row(visit: &Visit<'_>, group: &CauseGroup) -> Markup {
    let cause = group.id.to_string();
    html! {
        tr id={ "c-" (encode(&cause)) } {
            td .number { a href=(visit.jobs_url(&[("state", "dead"), ("cause", &cause)])) { (grouped(group.count)) } }
            td .cause {
                (printable(&cut(&group.message)))
                " " span .note { (group.reason.replace('_', " ")) }
            }
            td {
                @for queue in &group.queues {
                    a .plain href=(visit.url(&format!("/dead?queue={}", encode(queue.as_str())))) { (printable(queue.as_str())) } " "
                }
            }
            td { (time::ago(visit.now, group.first_at)) }
            td { (time::ago(visit.now, group.last_at)) }
            td { a .id href=(visit.job_url(&group.example)) { (group.number) } }
            @if visit.may_operate() { td { div .actions { (actions(visit, group, &cause)) } } }
        }
    }
}

/// One job first: if it succeeds, the cause is gone, and the rest may follow.
fn actions(visit: &Visit<'_>, group: &CauseGroup, cause: &str) -> Markup {
    let filter = format!(r#"{{"state":"dead","cause":"{cause}"}}"#);
    let jobs = counted(group.count, "job", "jobs");
    let canary = Act {
        label: "retry one first",
        method: "POST",
        path: visit.url(&format!("/api/v1/causes/{}/canary", encode(cause))),
        body: r#"{"count":1}"#.to_owned(),
        then: visit.job_url(&group.example),
        ..Act::default()
    };
    let all = Act {
        label: "retry all",
        method: "POST",
        path: visit.url("/api/v1/actions"),
        body: format!(r#"{{"verb":"retry","filter":{filter}}}"#),
        ask: format!("Retry {jobs}? They begin again with fresh retries."),
        cli: cli::line(&["dlq", "retry", "--cause", cause]),
        ..Act::default()
    };
    let purge = Act {
        label: "remove all",
        method: "POST",
        path: visit.url("/api/v1/actions"),
        body: format!(r#"{{"verb":"purge","filter":{filter},"expect":{}}}"#, group.count),
        ask: format!("Remove {jobs} for ever, with their history and output?"),
        cli: cli::line(&["dlq", "purge", "--cause", cause]),
        type_in: group.count.to_string(),
        is_final: true,
        ..Act::default()
    };
    html! { (canary.markup()) (all.markup()) (purge.markup()) }
}
