//! One folder on the simulated disk: the names that were synced, and what was done to them since.

use std::collections::{BTreeMap, BTreeSet};

use super::cut::Limits;

/// What a name stands for.
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
    /// As the programs see it.
    pub now: Names,
}

/// A name goes, or comes, or both: then it is one name that changes, never half of it.
#[derive(Clone, Debug)]
struct Change {
    at: usize,
    gone: Option<String>,
    come: Option<(String, Node)>,
}

impl Change {
    fn apply(&self, names: &mut Names) {
        if let Some(gone) = &self.gone {
            names.remove(gone);
        }
        if let Some((name, node)) = &self.come {
            names.insert(name.clone(), *node);
        }
    }

    /// The name whose moment decides.
    fn name(&self) -> &str {
        let come = self.come.as_ref().map(|(name, _)| name);
        come.or(self.gone.as_ref()).expect("a change has a name")
    }
}

impl Folder {
    pub fn add(&mut self, at: usize, name: &str, node: Node) {
        self.change(Change { at, gone: None, come: Some((name.to_owned(), node)) });
    }

    pub fn remove(&mut self, at: usize, name: &str) {
        self.change(Change { at, gone: Some(name.to_owned()), come: None });
    }

    pub fn rename(&mut self, at: usize, from: &str, to: &str, node: Node) {
        self.change(Change { at, gone: Some(from.to_owned()), come: Some((to.to_owned(), node)) });
    }

    fn change(&mut self, change: Change) {
        change.apply(&mut self.now);
        self.pending.push(change);
    }

    /// Everything before this position is safe from now on.
    pub fn sync(&mut self, until: usize) {
        let covered = self.pending.partition_point(|change| change.at < until);
        for change in self.pending.drain(..covered) {
            change.apply(&mut self.synced);
        }
    }

    /// The names that are found after a cut. Each shows a moment of its own.
    pub fn names(&self, limits: &mut Limits) -> Names {
        let touched: BTreeSet<&str> = self.pending.iter().map(Change::name).collect();
        let moments: BTreeMap<&str, usize> = touched.iter().map(|name| (*name, limits.moment())).collect();
        let mut names = self.synced.clone();
        for change in self.pending.iter().filter(|change| change.at < moments[change.name()]) {
            change.apply(&mut names);
        }
        names
    }
}
