//! The dependency graph around one job, and its rendering as a tree.

use std::collections::{HashMap, HashSet};

use serde::Serialize;

use super::life::StateName;
use crate::values::name::JobId;

/// The jobs that a job depends on and the jobs that depend on it, directly and indirectly.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    /// The requested job comes first.
    pub nodes: Vec<Node>,
    pub edges: Vec<Edge>,
    /// Whether there are more jobs than the caller's limit.
    pub is_cut: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Node {
    pub id: JobId,
    /// `None` if the job was removed, as is the state.
    pub number: Option<u64>,
    pub state: Option<StateName>,
}

/// A dependency of one job on another; both are indices into [`Graph::nodes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Edge {
    pub job: usize,
    pub depends_on: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Towards the jobs that a job depends on.
    Up,
    /// Towards the jobs that depend on a job.
    Down,
}

/// One line of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branch {
    pub node: usize,
    /// For each level above this one, and for this one last, whether more branches follow there.
    pub more: Vec<bool>,
    /// Its subtree was shown before.
    pub is_repeated: bool,
    /// Its subtree is too deep to be shown.
    pub is_too_deep: bool,
}

/// The deepest level of a tree that is still readable.
pub const MAX_DEPTH: usize = 60;

impl Graph {
    /// The tree that starts at the first node in one direction, without that node itself.
    pub fn tree(&self, direction: Direction) -> Vec<Branch> {
        let neighbours = self.neighbours(direction);
        let mut expanded = HashSet::from([0]);
        let mut branches = Vec::new();
        // A stack: the next branch is the last element.
        let mut open = children(&neighbours, 0, &[]);
        while let Some((node, more)) = open.pop() {
            let has_more = neighbours.contains_key(&node);
            let is_repeated = has_more && !expanded.insert(node);
            let is_too_deep = has_more && !is_repeated && more.len() >= MAX_DEPTH;
            if has_more && !is_repeated && !is_too_deep {
                open.extend(children(&neighbours, node, &more));
            }
            branches.push(Branch { node, more, is_repeated, is_too_deep });
        }
        branches
    }

    fn neighbours(&self, direction: Direction) -> HashMap<usize, Vec<usize>> {
        let mut neighbours: HashMap<usize, Vec<usize>> = HashMap::new();
        for edge in &self.edges {
            let (from, to) = match direction {
                Direction::Up => (edge.job, edge.depends_on),
                Direction::Down => (edge.depends_on, edge.job),
            };
            neighbours.entry(from).or_default().push(to);
        }
        neighbours
    }
}

/// The branches directly below a node, in reverse order.
fn children(neighbours: &HashMap<usize, Vec<usize>>, node: usize, above: &[bool]) -> Vec<(usize, Vec<bool>)> {
    let below = neighbours.get(&node).map_or(&[][..], Vec::as_slice);
    let with_levels = |(at, child): (usize, &usize)| {
        let more = above.iter().copied().chain([at + 1 < below.len()]).collect();
        (*child, more)
    };
    below.iter().enumerate().map(with_levels).rev().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A graph of jobs named by numbers; each pair is a job and one that it depends on.
    fn graph(count: usize, edges: &[(usize, usize)]) -> Graph {
        let node = |at: usize| Node {
            id: at.to_string().parse().expect("valid id"),
            number: Some(at as u64),
            state: Some(StateName::Pending),
        };
        Graph {
            nodes: (0..count).map(node).collect(),
            edges: edges
                .iter()
                .map(|(job, depends_on)| Edge { job: *job, depends_on: *depends_on })
                .collect(),
            is_cut: false,
        }
    }

    /// Each branch as its depth, its node, and a mark if it is repeated.
    fn lines(graph: &Graph, direction: Direction) -> Vec<String> {
        let line = |branch: Branch| {
            let mark = if branch.is_repeated { "*" } else { "" };
            format!("{}{}{mark}", " ".repeat(branch.more.len()), branch.node)
        };
        graph.tree(direction).into_iter().map(line).collect()
    }

    #[test]
    fn a_tree_starts_at_the_job_in_both_directions() {
        let graph = graph(6, &[(0, 1), (0, 2), (1, 3), (4, 0), (5, 4)]);
        assert_eq!(lines(&graph, Direction::Up), [" 1", "  3", " 2"]);
        assert_eq!(lines(&graph, Direction::Down), [" 4", "  5"]);
        let levels: Vec<_> = graph.tree(Direction::Up).into_iter().map(|branch| branch.more).collect();
        assert_eq!(levels, [vec![true], vec![true, false], vec![false]]);
    }

    #[test]
    fn a_shared_subtree_is_expanded_once_and_marked_afterwards() {
        // Two diamonds on top of each other: without the mark the number of lines doubles with each diamond.
        let graph = graph(7, &[(0, 1), (0, 2), (1, 3), (2, 3), (3, 4), (3, 5), (4, 6), (5, 6)]);
        assert_eq!(
            lines(&graph, Direction::Up),
            [" 1", "  3", "   4", "    6", "   5", "    6", " 2", "  3*"]
        );
    }

    #[test]
    fn a_cycle_ends_where_it_began() {
        assert_eq!(lines(&graph(2, &[(0, 1), (1, 0)]), Direction::Up), [" 1", "  0*"]);
    }

    #[test]
    fn a_long_chain_is_cut_at_the_maximum_depth() {
        let edges: Vec<(usize, usize)> = (0..1_000).map(|at| (at, at + 1)).collect();
        let tree = graph(1_001, &edges).tree(Direction::Up);
        assert_eq!(tree.len(), MAX_DEPTH);
        assert!(tree.iter().position(|branch| branch.is_too_deep) == Some(MAX_DEPTH - 1));
    }
}
