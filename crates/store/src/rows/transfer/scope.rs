//! The scope of an export: everything, or some jobs and the rows that they need.

use std::collections::HashSet;

use crate::rows::jobs::row;
use crate::rows::tx::Tx;
use crate::rows::views::list;
use crate::{ExportScope, JobFilter, StoreError};

/// The row ids to export; `None` for all.
pub(super) struct Scope(Option<SelectedRows>);

#[derive(Default)]
struct SelectedRows {
    jobs: HashSet<i64>,
    queues: HashSet<i64>,
    environments: HashSet<i64>,
    batches: HashSet<i64>,
}

impl Scope {
    pub(super) fn of(tx: &Tx<'_>, which: &ExportScope<'_>) -> Result<Self, StoreError> {
        let numbers = match which {
            ExportScope::All => return Ok(Self(None)),
            ExportScope::Ids(ids) => {
                let number = |id| match row::by_id(tx, id)? {
                    Some(job) => Ok(job.seq),
                    None => Err(StoreError::NoSuchJob(id.clone())),
                };
                ids.iter().map(number).collect::<Result<Vec<i64>, StoreError>>()?
            }
            ExportScope::Kind(filter) => numbers(tx, filter)?,
        };
        let mut selected = SelectedRows::default();
        for seq in numbers {
            selected.add(tx, seq)?;
        }
        Ok(Self(Some(selected)))
    }

    pub(super) fn is_all(&self) -> bool {
        self.0.is_none()
    }

    pub(super) fn has_job(&self, seq: i64) -> bool {
        self.0.as_ref().is_none_or(|selected| selected.jobs.contains(&seq))
    }

    pub(super) fn has_queue(&self, id: i64) -> bool {
        self.0.as_ref().is_none_or(|selected| selected.queues.contains(&id))
    }

    pub(super) fn has_environment(&self, id: i64) -> bool {
        self.0.as_ref().is_none_or(|selected| selected.environments.contains(&id))
    }

    pub(super) fn has_batch(&self, id: i64) -> bool {
        self.0.as_ref().is_none_or(|selected| selected.batches.contains(&id))
    }
}

impl SelectedRows {
    fn add(&mut self, tx: &Tx<'_>, seq: i64) -> Result<(), StoreError> {
        let mut select = tx.prepare("select queue_id, environment_id, batch_id from jobs where seq = ?1")?;
        let (queue, environment, batch): (i64, Option<i64>, Option<i64>) =
            select.query_row([seq], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        self.jobs.insert(seq);
        self.queues.insert(queue);
        self.environments.extend(environment);
        self.batches.extend(batch);
        Ok(())
    }
}

/// The matching jobs in one query: with pages, each page would repeat the search for states with few jobs.
fn numbers(tx: &Tx<'_>, filter: &JobFilter) -> Result<Vec<i64>, StoreError> {
    let jobs = list::select(tx, filter, None, usize::MAX)?;
    Ok(jobs.iter().filter_map(|job| i64::try_from(job.number).ok()).collect())
}
