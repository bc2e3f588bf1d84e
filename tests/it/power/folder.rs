//! A folder on the simulated disk: its synced names and the later changes.

use std::collections::{BTreeMap, BTreeSet};

use super::cut::Cutoffs;

/// The object that a name refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Node {
    File(usize),
    Pipe,
    Folder(usize),
}

pub type Names = BTreeMap<String, Node>;

#[derive(Clone, Debug, Default)]
pub struct Folder {
    synced: Names,
    pending: Vec<Change>,
    /// The names that programs see.
    pub now: Names,
}

/// Removes a name, adds one, or both atomically (a rename).
#[derive(Clone, Debug)]
struct Change {
    at: usize,
    removed: Option<String>,
    added: Option<(String, Node)>,
}

impl Change {
    fn apply(&self, names: &mut Names) {
        if let Some(removed) = &self.removed {
            names.remove(removed);
        }
        if let Some((name, node)) = &self.added {
            names.insert(name.clone(), *node);
        }
    }

    /// The name whose cutoff decides.
    fn name(&self) -> &str {
        let added = self.added.as_ref().map(|(name, _)| name);
        added.or(self.removed.as_ref()).expect("a change has a name")
    }
}

impl Folder {
    pub fn add(&mut self, at: usize, name: &str, node: Node) {
        self.change(Change { at, removed: None, added: Some((name.to_owned(), node)) });
    }

    pub fn remove(&mut self, at: usize, name: &str) {
        self.change(Change { at, removed: Some(name.to_owned()), added: None });
    }

    pub fn rename(&mut self, at: usize, from: &str, to: &str, node: Node) {
        self.change(Change { at, removed: Some(from.to_owned()), added: Some((to.to_owned(), node)) });
    }

    fn change(&mut self, change: Change) {
        change.apply(&mut self.now);
        self.pending.push(change);
    }

    /// Makes all changes before this position durable.
    pub fn sync(&mut self, until: usize) {
        let covered = self.pending.partition_point(|change| change.at < until);
        for change in self.pending.drain(..covered) {
            change.apply(&mut self.synced);
        }
    }

    /// The names after a cut. Each has its own cutoff.
    pub fn names(&self, cutoffs: &mut Cutoffs) -> Names {
        let touched: BTreeSet<&str> = self.pending.iter().map(Change::name).collect();
        let moments: BTreeMap<&str, usize> = touched.iter().map(|name| (*name, cutoffs.draw())).collect();
        let mut names = self.synced.clone();
        for change in self.pending.iter().filter(|change| change.at < moments[change.name()]) {
            change.apply(&mut names);
        }
        names
    }
}
