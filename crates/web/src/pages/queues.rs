//! The queues: what waits in them, what limits them, and pausing them.

use maud::{Markup, html};

use super::view::{Place, View};
use super::visit::Visit;
use crate::parts::button::Act;
use crate::parts::cli;
use crate::parts::number::counted;
use crate::problem::Problem;
use crate::request::query::encode;
use domain::text::hostile::printable;
use ops::metrics::recent::{Recent, recent};
use store::QueueMetrics;

pub(super) fn show(visit: &Visit<'_>) -> Result<View, Problem> {
    let recent = recent(visit.store, None)?;
    Ok(View::new("Queues", Place::Queues).with("queues", "Queues", content(visit, &recent)))
}

fn content(visit: &Visit<'_>, recent: &Recent) -> Markup {
    html! {
        div .bar {
            h1 { "Queues" }
            span { (counted(recent.queues.len() as u64, "queue", "queues")) }
            (cli::copyable("queuectl queue list"))
        }
        @if recent.queues.is_empty() {
            div .empty { p { "No queue yet: the first job creates one." } p { (cli::copyable("queuectl enqueue --queue mail -- echo hello")) } }
        } @else {
            (super::overview::queue_table(visit, recent))
            @if visit.may_operate() {
                h2 { "Pause or limit" }
                ul .list.forms { @for queue in &recent.queues { li { (change(visit, queue)) } } }
            }
        }
    }
}

/// What holds back the jobs of a queue, or lets them run.
fn change(visit: &Visit<'_>, metrics: &QueueMetrics) -> Markup {
    let queue = &metrics.queue;
    let name = queue.name.as_str();
    let path = |verb: &str| visit.url(&format!("/api/v1/queues/{}{verb}", encode(name)));
    let resume = Act {
        label: "resume",
        method: "POST",
        path: path("/resume"),
        cli: cli::line(&["queue", "resume", name]),
        ..Act::default()
    };
    html! {
        b { (printable(name)) } " "
        @if queue.paused.is_some() {
            (resume.markup())
        } @else {
            form .inline data-form="all" {
                input name="reason" placeholder="why (for the others)" aria-label={ "Why queue " (printable(name)) " is paused" };
                button type="submit" data-act="POST" data-path=(path("/pause")) data-cli=(cli::line(&["queue", "pause", name])) { "pause" }
            }
        }
        form .inline data-form {
            input name="concurrency" type="number" min="1" value=[queue.concurrency] data-number aria-label={ "Jobs at once in queue " (printable(name)) } placeholder="at once";
            button type="submit" data-act="PATCH" data-path=(path("")) { "limit" }
        }
    }
}
