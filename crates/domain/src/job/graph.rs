//! Which jobs depend on which: the neighbourhood of one job, and how it is told as a tree.

use std::collections::{HashMap, HashSet};

use super::life::StateName;
use crate::values::name::JobId;

/// What a job depends on and what depends on it, directly and through others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    /// The job that was asked for comes first.
    pub nodes: Vec<Node>,
    pub edges: Vec<Edge>,
    /// There are more jobs than were wanted.
    pub is_cut: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    pub id: JobId,
    /// `None`: a job that was removed.
    pub state: Option<StateName>,
}

/// One job depends on another; both are places in [`Graph::nodes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Edge {
    pub job: usize,
    pub depends_on: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To what a job depends on.
    Up,
    /// To what depends on a job.
    Down,
}

/// One line of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branch {
    pub node: usize,
    /// For each level above this one, and for this one last, whether more branches follow there.
    pub more: Vec<bool>,
    /// What lies behind it was told before.
    pub is_repeated: bool,
    /// What lies behind it is too deep to be told.
    pub is_too_deep: bool,
}

/// Deeper than this nobody can see what belongs together.
pub const MAX_DEPTH: usize = 60;

impl Graph {
    /// The tree behind the first node in one direction, without that node itself.
    pub fn tree(&self, direction: Direction) -> Vec<Branch> {
        let neighbours = self.neighbours(direction);
        let mut told = HashSet::from([0]);
        let mut branches = Vec::new();
        // The next branch last.
        let mut open = children(&neighbours, 0, &[]);
        while let Some((node, more)) = open.pop() {
            let has_more = neighbours.contains_key(&node);
            let is_repeated = has_more && !told.insert(node);
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

/// The branches right behind a node, the last one first.
fn children(neighbours: &HashMap<usize, Vec<usize>>, node: usize, above: &[bool]) -> Vec<(usize, Vec<bool>)> {
    let behind = neighbours.get(&node).map_or(&[][..], Vec::as_slice);
    let with_levels = |(at, child): (usize, &usize)| {
        let more = above.iter().copied().chain([at + 1 < behind.len()]).collect();
        (*child, more)
    };
    behind.iter().enumerate().map(with_levels).rev().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A graph of jobs named by numbers; each pair is a job and one that it depends on.
    fn graph(count: usize, edges: &[(usize, usize)]) -> Graph {
        let node =
            |at: usize| Node { id: at.to_string().parse().expect("an id"), state: Some(StateName::Pending) };
        Graph {
            nodes: (0..count).map(node).collect(),
            edges: edges
                .iter()
                .map(|(job, depends_on)| Edge { job: *job, depends_on: *depends_on })
                .collect(),
            is_cut: false,
        }
    }

    /// Each line as its depth, its node, and a mark.
    fn told(graph: &Graph, direction: Direction) -> Vec<String> {
        let tell = |branch: Branch| {
            let mark = if branch.is_repeated { "*" } else { "" };
            format!("{}{}{mark}", " ".repeat(branch.more.len()), branch.node)
        };
        graph.tree(direction).into_iter().map(tell).collect()
    }

    #[test]
    fn both_directions_are_told_from_the_job_outwards() {
        let graph = graph(6, &[(0, 1), (0, 2), (1, 3), (4, 0), (5, 4)]);
        assert_eq!(told(&graph, Direction::Up), [" 1", "  3", " 2"]);
        assert_eq!(told(&graph, Direction::Down), [" 4", "  5"]);
        let levels: Vec<_> = graph.tree(Direction::Up).into_iter().map(|branch| branch.more).collect();
        assert_eq!(levels, [vec![true], vec![true, false], vec![false]]);
    }

    #[test]
    fn what_is_shared_is_told_once_and_marked_after_that() {
        // Two diamonds on top of each other: without the mark the number of lines doubles with each.
        let graph = graph(7, &[(0, 1), (0, 2), (1, 3), (2, 3), (3, 4), (3, 5), (4, 6), (5, 6)]);
        assert_eq!(
            told(&graph, Direction::Up),
            [" 1", "  3", "   4", "    6", "   5", "    6", " 2", "  3*"]
        );
    }

    #[test]
    fn a_cycle_ends_where_it_began() {
        assert_eq!(told(&graph(2, &[(0, 1), (1, 0)]), Direction::Up), [" 1", "  0*"]);
    }

    #[test]
    fn a_long_chain_is_told_to_a_depth() {
        let edges: Vec<(usize, usize)> = (0..1_000).map(|at| (at, at + 1)).collect();
        let tree = graph(1_001, &edges).tree(Direction::Up);
        assert_eq!(tree.len(), MAX_DEPTH);
        assert!(tree.iter().position(|branch| branch.is_too_deep) == Some(MAX_DEPTH - 1));
    }
}
