//! The jobs that a job depends on and those that depend on it, as a drawing and as a list.

use maud::{Markup, html};

use crate::pages::view::{Place, View};
use crate::pages::visit::Visit;
use crate::parts::graph::drawing;
use crate::parts::number::counted;
use crate::parts::{cli, state};
use crate::problem::Problem;
use domain::job::graph::{Graph, Node};
use domain::job::handle::JobHandle;
use domain::text::hostile::printable;
use ops::OpError;

/// A larger graph is cut.
const MAX_NODES: usize = 400;

pub(super) fn show(visit: &Visit<'_>) -> Result<View, Problem> {
    let id = visit.job()?;
    let graph = visit.store.graph(&id, MAX_NODES)?.ok_or_else(|| OpError::NoSuchJob(id.clone()))?;
    let handle = graph.nodes.first().map_or_else(|| id.to_string(), handle);
    let content = html! {
        div .bar {
            h1 { "Jobs around " a .id href=(visit.job_url(&id)) { (printable(&handle)) } }
            span { (counted(graph.nodes.len() as u64, "job", "jobs")) @if graph.is_cut { ", and more that are not shown" } }
            (cli::copyable(&cli::line(&["graph", id.as_str()])))
        }
        @if graph.edges.is_empty() {
            p .empty { "It depends on no job, and no job depends on it. " code { (printable(&cli::line(&["enqueue", "--depends-on", &handle, "--", "COMMAND"]))) } " enqueues one that runs after it." }
        } @else {
            p .note { "Each job runs after those on its left have completed." }
            div .scroll.graph { (drawing(visit, &graph)) }
            details .numbers { summary { "the same as a list" } (list(visit, &graph)) }
        }
    };
    Ok(View::new(format!("Jobs around {handle}"), Place::Jobs).with("graph", "Graph", content))
}

fn handle(node: &Node) -> String {
    JobHandle { id: node.id.clone(), number: node.number }.short()
}

fn list(visit: &Visit<'_>, graph: &Graph) -> Markup {
    html! {
        ul .list {
            @for (at, node) in graph.nodes.iter().enumerate() {
                li {
                    (named(visit, node))
                    @let before = || graph.edges.iter().filter(|edge| edge.job == at).filter_map(|edge| graph.nodes.get(edge.depends_on));
                    @if before().next().is_some() { " after " @for other in before() { (named(visit, other)) " " } }
                }
            }
        }
    }
}

/// A job with its state; one that was removed has none.
pub(super) fn named(visit: &Visit<'_>, node: &Node) -> Markup {
    html! {
        @match node.state {
            Some(known) => { a .id href=(visit.job_url(&node.id)) { (printable(&handle(node))) } " " (state::of_name(known)) },
            None => { span .id { (printable(&handle(node))) } " was removed" },
        }
    }
}
