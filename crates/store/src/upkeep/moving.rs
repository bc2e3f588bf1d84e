//! Moving a queue from one store to another.
//!
//! The old store is locked for writing while its content is copied, and is marked as moved in the same transaction: a
//! process that dies meanwhile leaves it as it was. The new store refuses writes until the old one is marked, so that at no
//! time both can be used.

use crate::rows::tables::{events, moving};
use crate::rows::transfer;
use crate::transfer::{ImportError, ImportNumbers, ImportRules, ImportSummary, Line};
use crate::{Result, Store, StoreError};
use domain::values::name::WorkerId;

/// Why a store is not in use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Relocation {
    /// The queue is at this address now.
    #[error("this queue has moved to `{0}`")]
    MovedTo(String),
    /// It holds a copy of the queue at this address, and the copy is not complete.
    #[error("this store holds an unfinished copy of `{0}`")]
    CopyOf(String),
}

/// Why a queue does not move.
#[derive(Debug, thiserror::Error)]
pub enum MoveError {
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Workers have registered meanwhile.
    #[error("workers have just started: {}", .0.join(", "))]
    Workers(Vec<String>),
}

impl dyn Store + '_ {
    /// Whether the queue has moved, or has not arrived yet.
    pub fn relocation(&self) -> Result<Option<Relocation>> {
        self.view(moving::find)
    }

    /// The number that the next job would get.
    pub fn next_number(&self) -> Result<i64> {
        self.view(moving::next_number)
    }

    /// Keeps every other writer out while `work` copies the queue, and marks the store as moved if it succeeds. `dead` are
    /// workers that did not deregister, but are known to have ended.
    pub fn move_away<T, E: From<MoveError> + From<StoreError>>(
        &self,
        to: &str,
        dead: &[WorkerId],
        by: &str,
        mut work: impl FnMut() -> Result<T, E>,
    ) -> Result<T, E> {
        let mut has_begun = false;
        self.transact("move_away", |tx| {
            if std::mem::replace(&mut has_begun, true) {
                return Err(StoreError::Changing.into());
            }
            moving::wait_long(tx)?;
            let registered: Vec<String> =
                tx.values("select id from workers where state <> 'stopped'", crate::rows::params![])?;
            let live: Vec<String> =
                registered.into_iter().filter(|id| !dead.iter().any(|dead| dead.as_str() == id)).collect();
            if !live.is_empty() {
                return Err(MoveError::Workers(live).into());
            }
            let done = work()?;
            moving::mark(tx, &Relocation::MovedTo(to.to_owned()))?;
            events::record(tx, None, "move", by, Some(&format!("moved to {to}")))?;
            Ok(done)
        })
    }

    /// Takes in all lines of another store, all or nothing, with the numbers of the jobs. Writes are refused until
    /// `end_copy`.
    pub fn receive(
        &self,
        lines: &mut dyn Iterator<Item = Result<Line, ImportError>>,
        from: &str,
        next_number: i64,
        by: &str,
    ) -> Result<ImportSummary, ImportError> {
        let mut has_begun = false;
        self.transact("receive", |tx| {
            if std::mem::replace(&mut has_begun, true) {
                return Err(StoreError::Changing.into());
            }
            if let Some(what) = moving::content(tx)? {
                return Err(ImportError::NotEmpty { what });
            }
            let rules = ImportRules { if_absent: false, numbers: ImportNumbers::Kept };
            let imported = transfer::import(tx, lines, rules, by)?;
            moving::set_next_number(tx, next_number)?;
            moving::mark(tx, &Relocation::CopyOf(from.to_owned()))?;
            Ok(imported)
        })
    }

    /// The store from which this one was copied is marked as moved: from now on this one is in use.
    pub fn end_copy(&self) -> Result<()> {
        self.transact_anyway("end_copy", |tx| moving::unmark_copy(tx))?;
        self.adopt_settings()
    }

    /// The rows that keep a copy from arriving here, if there are any.
    pub fn content(&self) -> Result<Option<&'static str>> {
        self.view(moving::content)
    }
}
