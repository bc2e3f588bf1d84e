//! Changes of many jobs: a portion in each transaction, and the gate is open between two of them.

use std::collections::HashMap;

use super::SqliteStore;
use crate::sqlite::jobs::dependencies;
use crate::sqlite::session::row;
use crate::sqlite::session::tx;
use crate::sqlite::session::tx::Tx;
use crate::sqlite::verbs::change;
use crate::sqlite::views::idle;
use crate::{Change, Dependent, JobVerb, Portion, Store, StoreError};
use domain::values::name::JobId;

/// What transactions meant for the dependents of jobs that ended.
#[derive(Default)]
pub(super) struct Told {
    /// Those that were cancelled.
    pub(super) dependents: Vec<tx::Dependent>,
    /// Some are left to a later transaction.
    pub(super) has_more: bool,
}

impl SqliteStore {
    /// Changes the first of these jobs in one transaction, and what has to be done before and after in others.
    pub(super) fn change_some<T>(
        &self,
        name: &str,
        verb: JobVerb,
        jobs: &[T],
        work: impl Fn(&Tx<'_>, &T) -> Result<Option<Change>, StoreError>,
    ) -> Result<Portion, StoreError> {
        loop {
            if verb == JobVerb::Retry {
                self.tell_noted()?;
            }
            let mut told = Told::default();
            let changes = self.write_telling(name, &mut told, |tx| change::changed(tx, jobs, &work))?;
            if !changes.is_empty() || jobs.is_empty() {
                self.tell_the_rest(&mut told);
                let dependents = self.attribute(told.dependents);
                return Ok(Portion { changes, dependents, leaves_dependents: told.has_more });
            }
        }
    }

    /// Where no worker is there to tell those who waited for jobs that were ended here, that is done now. What is left when
    /// it fails is noted down for the next worker.
    pub(super) fn tell_the_rest(&self, told: &mut Told) {
        while !self.has_worker().unwrap_or(true) {
            if !self.read(idle::is_any_to_be_told).unwrap_or(false) {
                told.has_more = false;
                return;
            }
            if self.write_telling("release", told, dependencies::release_noted).is_err() {
                return;
            }
        }
    }

    /// Releases every dependent of a finished job that has not been released, in portions. This comes before jobs begin
    /// again: a dependent of the last run must not wait for the next, and they may be too many for one transaction.
    pub(super) fn tell_noted(&self) -> Result<(), StoreError> {
        while self.read(idle::is_any_to_be_told)? {
            self.write("release", dependencies::release_noted)?;
        }
        Ok(())
    }

    /// Says which job was the first on the way to each of these. They are in the order in which they were cancelled. The
    /// change is committed by now, so an error only leaves some of them out.
    fn attribute(&self, dependents: Vec<tx::Dependent>) -> Vec<Dependent> {
        let mut roots: HashMap<i64, JobId> = HashMap::new();
        let mut attributed = Vec::with_capacity(dependents.len());
        for tx::Dependent { seq, id, parent_seq } in dependents {
            let of = match roots.get(&parent_seq) {
                Some(root) => root.clone(),
                None => match self.read(|tx| row::id(tx, parent_seq)) {
                    Ok(Some(root)) => root,
                    // The root was removed since.
                    Ok(None) | Err(_) => continue,
                },
            };
            roots.entry(parent_seq).or_insert_with(|| of.clone());
            roots.insert(seq, of.clone());
            attributed.push(Dependent { id, of });
        }
        attributed
    }
}
