//! How the shared verbs run in a transaction of any store.

use crate::rows::tables::moving;
use crate::rows::tx::{Effects, Tx};
use crate::{PruneStep, Result, Store, StoreError};
use domain::job::NewJob;
use domain::values::name::WorkerId;

/// Reads on one snapshot. A store may call it again, if what it read was being changed.
pub type ReadWork<'w> = dyn FnMut(&mut Tx<'_>) -> Result<()> + 'w;

/// Writes in one transaction. A store calls it again if a concurrent transaction made it fail; nothing of the earlier call
/// remains then.
pub type WriteWork<'w> = dyn FnMut(&mut Tx<'_>) -> Result<Verdict> + 'w;

/// Whether a transaction takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Commit,
    /// The verb was refused: nothing is changed.
    RollBack,
}

/// A verb that is called so often that a store may run it together with others.
#[derive(Clone, Copy, Debug)]
pub enum HotVerb<'a> {
    Enqueue(&'a [NewJob]),
    Extend(&'a WorkerId),
    /// A fleet deletes as many jobs as it runs.
    Prune(&'a PruneStep),
}

impl HotVerb<'_> {
    /// The name of the verb in fail-points.
    pub fn name(self) -> &'static str {
        match self {
            Self::Enqueue(_) => "enqueue",
            Self::Extend(_) => "extend",
            Self::Prune(_) => "prune",
        }
    }
}

impl dyn Store + '_ {
    pub(crate) fn view<T>(&self, mut work: impl FnMut(&Tx<'_>) -> Result<T>) -> Result<T> {
        self.dry_run(|tx| work(tx))
    }

    /// Runs a verb that is asked to change nothing on one snapshot.
    pub(crate) fn dry_run<T>(&self, mut work: impl FnMut(&mut Tx<'_>) -> Result<T>) -> Result<T> {
        let mut answer = None;
        self.read(&mut |tx| {
            answer = Some(work(tx)?);
            Ok(())
        })?;
        Ok(answer.expect("a read that succeeds has run its work"))
    }

    pub(crate) fn transact<T, E: From<StoreError>>(
        &self,
        verb: &str,
        work: impl FnMut(&mut Tx<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        self.transact_with_effects(verb, work).map(|(answer, _)| answer)
    }

    /// As `transact`, for a verb that the store may run together with others.
    pub(crate) fn transact_hot<T, E: From<StoreError>>(
        &self,
        verb: HotVerb<'_>,
        mut work: impl FnMut(&mut Tx<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut answer = None;
        let effects = self.write_together(verb, &mut |tx| {
            let result = answer.insert(moving::refuse(tx).map_err(E::from).and_then(|()| work(tx)));
            Ok(if result.is_ok() { Verdict::Commit } else { Verdict::RollBack })
        })?;
        match (effects, answer) {
            (Some(_), Some(answer)) => answer,
            _ => self.transact(verb.name(), work),
        }
    }

    pub(crate) fn transact_with_effects<T, E: From<StoreError>>(
        &self,
        verb: &str,
        mut work: impl FnMut(&mut Tx<'_>) -> Result<T, E>,
    ) -> Result<(T, Effects), E> {
        self.write_anyway(verb, |tx| {
            moving::refuse(tx)?;
            work(tx)
        })
    }

    /// As `transact`, also in a store whose queue has moved.
    pub(crate) fn transact_anyway<T, E: From<StoreError>>(
        &self,
        verb: &str,
        work: impl FnMut(&mut Tx<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        self.write_anyway(verb, work).map(|(answer, _)| answer)
    }

    fn write_anyway<T, E: From<StoreError>>(
        &self,
        verb: &str,
        mut work: impl FnMut(&mut Tx<'_>) -> Result<T, E>,
    ) -> Result<(T, Effects), E> {
        let mut answer = None;
        let effects = self.write(verb, &mut |tx| {
            let result = answer.insert(work(tx));
            Ok(if result.is_ok() { Verdict::Commit } else { Verdict::RollBack })
        })?;
        let answer = answer.expect("a write that succeeds has run its work")?;
        Ok((answer, effects))
    }
}
