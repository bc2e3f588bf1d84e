//! A graph of jobs in layers: each job stands to the right of those that it depends on.

use std::fmt::Write;

use maud::{Markup, html};

use super::state;
use crate::pages::visit::Visit;
use domain::job::graph::{Graph, Node};
use domain::job::handle::JobHandle;
use domain::text::hostile::printable;

const WIDTH: usize = 188;
const HEIGHT: usize = 28;
const GAP_X: usize = 56;
const GAP_Y: usize = 12;
const MARGIN: usize = 8;
/// A longer id is cut; its title has all of it.
const MAX_CHARS: usize = 18;
/// How often the order within the layers is improved.
const PASSES: usize = 4;

/// Where a node stands: its layer, and its place within it.
struct Layout {
    layers: Vec<Vec<usize>>,
    place: Vec<(usize, usize)>,
}

impl Layout {
    fn new(graph: &Graph) -> Self {
        let count = graph.nodes.len();
        let mut layer = vec![0; count];
        // Longest paths. A graph of dependencies has no cycle, so there are at most as many rounds as nodes.
        for _ in 0..count {
            let mut has_moved = false;
            for edge in &graph.edges {
                if layer[edge.job] <= layer[edge.depends_on] {
                    layer[edge.job] = layer[edge.depends_on] + 1;
                    has_moved = true;
                }
            }
            if !has_moved {
                break;
            }
        }
        let deepest = layer.iter().copied().max().unwrap_or(0);
        let mut layers = vec![Vec::new(); deepest + 1];
        (0..count).for_each(|node| layers[layer[node]].push(node));
        let mut layout = Self { layers, place: vec![(0, 0); count] };
        layout.set_places();
        for pass in 0..PASSES {
            layout.untangle(graph, pass % 2 == 0);
        }
        layout
    }

    fn set_places(&mut self) {
        for (layer, nodes) in self.layers.iter().enumerate() {
            for (at, node) in nodes.iter().enumerate() {
                self.place[*node] = (layer, at);
            }
        }
    }

    /// Moves each node to the middle of its neighbours on one side.
    fn untangle(&mut self, graph: &Graph, is_forward: bool) {
        let mut sums = vec![(0, 0); graph.nodes.len()];
        for edge in &graph.edges {
            let (node, other) =
                if is_forward { (edge.job, edge.depends_on) } else { (edge.depends_on, edge.job) };
            sums[node].0 += self.place[other].1 * 1_000;
            sums[node].1 += 1;
        }
        let place = self.place.clone();
        for nodes in &mut self.layers {
            nodes.sort_by_key(|node| match sums[*node] {
                (_, 0) => place[*node].1 * 1_000,
                (sum, count) => sum / count,
            });
        }
        self.set_places();
    }

    fn size(&self) -> (usize, usize) {
        let most = self.layers.iter().map(Vec::len).max().unwrap_or(0);
        let width = self.layers.len() * (WIDTH + GAP_X) - GAP_X + 2 * MARGIN;
        (width, (most * (HEIGHT + GAP_Y)).saturating_sub(GAP_Y) + 2 * MARGIN)
    }

    /// The upper left corner. A layer with few nodes is in the middle.
    fn corner(&self, node: usize) -> (usize, usize) {
        let (layer, at) = self.place[node];
        let own = self.layers[layer].len() * (HEIGHT + GAP_Y) - GAP_Y;
        let free = (self.size().1 - 2 * MARGIN).saturating_sub(own) / 2;
        (MARGIN + layer * (WIDTH + GAP_X), MARGIN + free + at * (HEIGHT + GAP_Y))
    }
}

/// The drawing; a list beside it has to say the same.
pub(crate) fn drawing(visit: &Visit<'_>, graph: &Graph) -> Markup {
    let layout = Layout::new(graph);
    let (width, height) = layout.size();
    html! {
        svg width=(width) height=(height) viewBox={ "0 0 " (width) " " (height) } role="group" aria-label="Jobs and their dependencies" {
            path .edge d=(edges(graph, &layout)) {}
            @for (at, node) in graph.nodes.iter().enumerate() { (drawn(visit, node, layout.corner(at), at == 0)) }
        }
    }
}

fn edges(graph: &Graph, layout: &Layout) -> String {
    let mut path = String::new();
    for edge in &graph.edges {
        let (from, to) = (layout.corner(edge.depends_on), layout.corner(edge.job));
        let (x, y, x2, y2) = (from.0 + WIDTH, from.1 + HEIGHT / 2, to.0, to.1 + HEIGHT / 2);
        let half = GAP_X / 2;
        let _ = write!(path, "M{x} {y}C{} {y} {} {y2} {x2} {y2}", x + half, x2.saturating_sub(half));
    }
    path
}

fn drawn(visit: &Visit<'_>, node: &Node, (x, y): (usize, usize), is_own: bool) -> Markup {
    let word = node.state.map_or("removed", |state| state.name());
    let handle = JobHandle { id: node.id.clone(), number: node.number }.short();
    let label: String = match handle.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", &handle[..end]),
        None => handle.clone(),
    };
    let content = html! {
        title { (printable(&handle)) " " (word) }
        rect .node .own[is_own] x=(x) y=(y) width=(WIDTH) height=(HEIGHT) rx="4" {}
        text x=(x + 10) y=(y + 18) {
            tspan class={ "s-" (word) } { (state::icon(word)) " " (word) }
            tspan .id dx="8" { (printable(&label)) }
        }
    };
    html! {
        @if node.state.is_some() { a href=(visit.job_url(&node.id)) { (content) } } @else { g { (content) } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::job::graph::Edge;

    fn layout(count: usize, edges: &[(usize, usize)]) -> Layout {
        let id = |at: usize| format!("j{at}").parse().expect("an id");
        let nodes = (0..count).map(|at| Node { id: id(at), number: None, state: None }).collect();
        let edges =
            edges.iter().map(|(job, depends_on)| Edge { job: *job, depends_on: *depends_on }).collect();
        Layout::new(&Graph { nodes, edges, is_cut: false })
    }

    #[test]
    fn a_job_stands_to_the_right_of_all_that_it_depends_on() {
        let diamond = layout(4, &[(1, 0), (2, 0), (3, 1), (3, 2), (3, 0)]);
        let layers: Vec<usize> = (0..4).map(|node| diamond.place[node].0).collect();
        assert_eq!(layers, [0, 1, 1, 2]);
        assert!(diamond.corner(0).1 > diamond.corner(1).1.min(diamond.corner(2).1), "it is in the middle");
    }

    #[test]
    fn edges_are_untangled_and_no_two_nodes_share_a_place() {
        let crossed = layout(4, &[(2, 1), (3, 0)]);
        assert_eq!(crossed.place[2].1, crossed.place[1].1);
        let fan: Vec<(usize, usize)> = (1..400).map(|job| (job, (job - 1) / 3)).collect();
        let fan = layout(400, &fan);
        let mut corners: Vec<_> = (0..400).map(|node| fan.corner(node)).collect();
        corners.sort_unstable();
        corners.dedup();
        assert_eq!(corners.len(), 400);
        let cycle = layout(2, &[(0, 1), (1, 0)]);
        assert_eq!(cycle.place.len(), 2, "a cycle ends too");
    }
}
