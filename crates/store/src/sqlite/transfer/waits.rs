//! Who waits for whom among the jobs that are imported. None of those that were here before waits for one of them.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

#[derive(Debug, Default)]
pub(super) struct Waits {
    /// The jobs that each of these waits for.
    parents: HashMap<i64, Vec<i64>>,
}

impl Waits {
    pub(super) fn add(&mut self, child: i64, parent: i64) {
        self.parents.entry(child).or_default().push(parent);
    }

    /// A job that waits for itself through others. Each job and each wait is looked at once.
    pub(super) fn find_cycle(&self) -> Option<i64> {
        let mut way = Way::default();
        self.parents.keys().find_map(|start| self.follow(*start, &mut way))
    }

    /// Goes from a job to what it waits for, and to what that waits for, as deep as it goes.
    fn follow(&self, start: i64, way: &mut Way) -> Option<i64> {
        way.enter(start);
        while let Some((seq, next)) = way.open.last_mut() {
            let (seq, at) = (*seq, *next);
            *next += 1;
            match self.parents.get(&seq).and_then(|parents| parents.get(at)) {
                None => way.leave(seq),
                Some(parent) if way.is_on_it(*parent) => return Some(*parent),
                Some(parent) => way.enter(*parent),
            }
        }
        None
    }
}

/// The way from the first job to the one that is looked at.
#[derive(Default)]
struct Way {
    /// The jobs on it, and how many of their waits were looked at.
    open: Vec<(i64, usize)>,
    /// All jobs that were looked at; whether they are still on the way.
    seen: HashMap<i64, bool>,
}

impl Way {
    fn enter(&mut self, seq: i64) {
        if let Entry::Vacant(new) = self.seen.entry(seq) {
            new.insert(true);
            self.open.push((seq, 0));
        }
    }

    fn leave(&mut self, seq: i64) {
        self.open.pop();
        self.seen.insert(seq, false);
    }

    fn is_on_it(&self, seq: i64) -> bool {
        self.seen.get(&seq).copied().unwrap_or(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cycle(waits: &[(i64, i64)]) -> Option<i64> {
        let mut all = Waits::default();
        for (child, parent) in waits {
            all.add(*child, *parent);
        }
        all.find_cycle()
    }

    #[test]
    fn a_job_that_waits_for_itself_is_found() {
        for waits in [&[(1, 1)][..], &[(1, 2), (2, 1)], &[(9, 1), (1, 2), (2, 3), (3, 1), (3, 4)]] {
            let found = cycle(waits).expect("there is a cycle");
            assert!((1..=3).contains(&found), "{found} is in no cycle of {waits:?}");
        }
    }

    #[test]
    fn what_has_no_cycle_is_fine() {
        for waits in
            [&[][..], &[(2, 1), (3, 2)], &[(2, 1), (3, 1), (4, 2), (4, 3)], &[(4, 3), (4, 2), (3, 2)]]
        {
            assert_eq!(cycle(waits), None, "{waits:?}");
        }
    }

    #[test]
    fn a_long_chain_is_followed_to_its_end() {
        let mut chain: Vec<(i64, i64)> = (1..100_000).map(|at| (at, at + 1)).collect();
        assert_eq!(cycle(&chain), None);
        chain.push((100_000, 1));
        assert!(cycle(&chain).is_some());
    }
}
