//! What is exported: everything, or some jobs and what they cannot do without.

use std::collections::HashSet;

use crate::sqlite::session::row;
use crate::sqlite::session::tx::Tx;
use crate::sqlite::views::list;
use crate::{Exported, JobFilter, StoreError};

/// Numbers of rows. `None`: all of them.
pub(super) struct Scope(Option<Chosen>);

#[derive(Default)]
struct Chosen {
    jobs: HashSet<i64>,
    queues: HashSet<i64>,
    environments: HashSet<i64>,
    batches: HashSet<i64>,
}

impl Scope {
    pub(super) fn of(tx: &Tx<'_>, which: &Exported<'_>) -> Result<Self, StoreError> {
        let numbers = match which {
            Exported::All => return Ok(Self(None)),
            Exported::Ids(ids) => {
                let number = |id| match row::by_id(tx, id)? {
                    Some(job) => Ok(job.seq),
                    None => Err(StoreError::NoSuchJob(id.clone())),
                };
                ids.iter().map(number).collect::<Result<Vec<i64>, StoreError>>()?
            }
            Exported::Kind(filter) => numbers(tx, filter)?,
        };
        let mut chosen = Chosen::default();
        for seq in numbers {
            chosen.add(tx, seq)?;
        }
        Ok(Self(Some(chosen)))
    }

    pub(super) fn is_all(&self) -> bool {
        self.0.is_none()
    }

    pub(super) fn has_job(&self, seq: i64) -> bool {
        self.0.as_ref().is_none_or(|chosen| chosen.jobs.contains(&seq))
    }

    pub(super) fn has_queue(&self, id: i64) -> bool {
        self.0.as_ref().is_none_or(|chosen| chosen.queues.contains(&id))
    }

    pub(super) fn has_environment(&self, id: i64) -> bool {
        self.0.as_ref().is_none_or(|chosen| chosen.environments.contains(&id))
    }

    pub(super) fn has_batch(&self, id: i64) -> bool {
        self.0.as_ref().is_none_or(|chosen| chosen.batches.contains(&id))
    }
}

impl Chosen {
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

/// The jobs that a filter lets through, in one look: each page would begin anew to look for states of which there are few.
fn numbers(tx: &Tx<'_>, filter: &JobFilter) -> Result<Vec<i64>, StoreError> {
    let seen = list::select(tx, filter, None, usize::MAX)?;
    Ok(seen.iter().filter_map(|seen| i64::try_from(seen.number).ok()).collect())
}
