//! Changes of many jobs: a portion in each transaction, with the gate open in between.

use std::collections::HashMap;

use super::SqliteStore;
use crate::sqlite::jobs::dependencies;
use crate::sqlite::session::row;
use crate::sqlite::session::tx;
use crate::sqlite::session::tx::Tx;
use crate::sqlite::verbs::change;
use crate::sqlite::views::idle;
use crate::{Change, Dependent, JobVerb, PartialChange, Store, StoreError};
use domain::values::name::JobId;

/// The effects of transactions on the dependents of finished jobs.
#[derive(Default)]
pub(super) struct Cascade {
    /// The cancelled ones.
    pub(super) dependents: Vec<tx::CancelledDependent>,
    /// Some are left to a later transaction.
    pub(super) has_more: bool,
}

impl SqliteStore {
    /// Changes the first of these jobs in one transaction, with the necessary work before and after in others.
    pub(super) fn change_some<T>(
        &self,
        name: &str,
        verb: JobVerb,
        jobs: &[T],
        work: impl Fn(&Tx<'_>, &T) -> Result<Option<Change>, StoreError>,
    ) -> Result<PartialChange, StoreError> {
        loop {
            if verb == JobVerb::Retry {
                self.unblock_pending()?;
            }
            let mut cascade = Cascade::default();
            let changes =
                self.write_with_cascade(name, &mut cascade, |tx| change::change_portion(tx, jobs, &work))?;
            if !changes.is_empty() || jobs.is_empty() {
                self.unblock_remaining(&mut cascade);
                let dependents = self.attribute(cascade.dependents);
                return Ok(PartialChange { changes, dependents, leaves_dependents: cascade.has_more });
            }
        }
    }

    /// Unblocks the remaining dependents now if no worker is there to do it. If this fails, the pending rows remain for
    /// the next worker.
    pub(super) fn unblock_remaining(&self, cascade: &mut Cascade) {
        while !self.has_worker().unwrap_or(true) {
            if !self.read(idle::any_pending_unblock).unwrap_or(false) {
                cascade.has_more = false;
                return;
            }
            if self.write_with_cascade("unblock", cascade, dependencies::resume_pending_unblocks).is_err() {
                return;
            }
        }
    }

    /// Completes all pending unblocks, in portions. This comes before retries: a dependent of the last run must not
    /// wait for the next, and there may be too many for one transaction.
    pub(super) fn unblock_pending(&self) -> Result<(), StoreError> {
        while self.read(idle::any_pending_unblock)? {
            self.write("unblock", dependencies::resume_pending_unblocks)?;
        }
        Ok(())
    }

    /// Attributes each cancelled dependent to the job that the caller cancelled. They are in the order of cancellation.
    /// The change is committed by now, so an error only leaves some out.
    fn attribute(&self, dependents: Vec<tx::CancelledDependent>) -> Vec<Dependent> {
        let mut roots: HashMap<i64, JobId> = HashMap::new();
        let mut attributed = Vec::with_capacity(dependents.len());
        for tx::CancelledDependent { seq, id, parent_seq } in dependents {
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
