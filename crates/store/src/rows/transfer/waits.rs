//! The waits among imported jobs. No job that existed before waits for an imported one.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

#[derive(Debug, Default)]
pub(super) struct WaitGraph {
    /// The jobs that each job waits for.
    parents: HashMap<i64, Vec<i64>>,
}

impl WaitGraph {
    pub(super) fn add(&mut self, child: i64, parent: i64) {
        self.parents.entry(child).or_default().push(parent);
    }

    /// A job that waits for itself through others. Each job and each wait is visited once.
    pub(super) fn find_cycle(&self) -> Option<i64> {
        let mut path = SearchPath::default();
        self.parents.keys().find_map(|start| self.follow(*start, &mut path))
    }

    /// Searches depth-first from a job along what it waits for.
    fn follow(&self, start: i64, path: &mut SearchPath) -> Option<i64> {
        path.enter(start);
        while let Some((seq, next)) = path.open.last_mut() {
            let (seq, at) = (*seq, *next);
            *next += 1;
            match self.parents.get(&seq).and_then(|parents| parents.get(at)) {
                None => path.leave(seq),
                Some(parent) if path.contains(*parent) => return Some(*parent),
                Some(parent) => path.enter(*parent),
            }
        }
        None
    }
}

/// The path from the first job to the current one.
#[derive(Default)]
struct SearchPath {
    /// The jobs on the path, and how many of their waits were visited.
    open: Vec<(i64, usize)>,
    /// All visited jobs; `true` for those on the path.
    visited: HashMap<i64, bool>,
}

impl SearchPath {
    fn enter(&mut self, seq: i64) {
        if let Entry::Vacant(new) = self.visited.entry(seq) {
            new.insert(true);
            self.open.push((seq, 0));
        }
    }

    fn leave(&mut self, seq: i64) {
        self.open.pop();
        self.visited.insert(seq, false);
    }

    fn contains(&self, seq: i64) -> bool {
        self.visited.get(&seq).copied().unwrap_or(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cycle(waits: &[(i64, i64)]) -> Option<i64> {
        let mut all = WaitGraph::default();
        for (child, parent) in waits {
            all.add(*child, *parent);
        }
        all.find_cycle()
    }

    #[test]
    fn a_cycle_is_found() {
        for waits in [&[(1, 1)][..], &[(1, 2), (2, 1)], &[(9, 1), (1, 2), (2, 3), (3, 1), (3, 4)]] {
            let found = cycle(waits).expect("there is a cycle");
            assert!((1..=3).contains(&found), "{found} is in no cycle of {waits:?}");
        }
    }

    #[test]
    fn acyclic_waits_have_no_cycle() {
        for waits in
            [&[][..], &[(2, 1), (3, 2)], &[(2, 1), (3, 1), (4, 2), (4, 3)], &[(4, 3), (4, 2), (3, 2)]]
        {
            assert_eq!(cycle(waits), None, "{waits:?}");
        }
    }

    #[test]
    fn a_cycle_at_the_end_of_a_long_chain_is_found() {
        let mut chain: Vec<(i64, i64)> = (1..100_000).map(|at| (at, at + 1)).collect();
        assert_eq!(cycle(&chain), None);
        chain.push((100_000, 1));
        assert!(cycle(&chain).is_some());
    }
}
