//! The number of jobs of each queue in each state, and how often jobs entered it: changes are summed up and written once
//! per transaction.
//!
//! On PostgreSQL several rows have a share of the number each, so that workers do not wait for each other. Every reader
//! sums them up. Shard 0 is that of verbs that run alone, and of workers that have stopped.

use std::collections::BTreeMap;

use super::batches;
use crate::Result;
use crate::rows::keys::{BatchKey, QueueKey, WorkerSeq};
use crate::rows::tx::Tx;
use crate::rows::{Dialect, named, params, read};
use domain::job::life::StateName;

#[derive(Debug, Default)]
pub(crate) struct Counters {
    changes: BTreeMap<(QueueKey, StateName), Change>,
    /// The same by batch, for jobs in a batch.
    batches: BTreeMap<BatchKey, BTreeMap<StateName, i64>>,
}

/// The change of a counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Change {
    count: i64,
    /// Jobs that entered the state in their life, not because their row was moved or imported.
    entered: i64,
}

impl Counters {
    /// A new job of this queue and batch is pending.
    pub(crate) fn enqueue(&mut self, queue_id: QueueKey, batch_id: Option<BatchKey>) {
        self.enter(queue_id, batch_id, StateName::Pending);
        self.changes.entry((queue_id, StateName::Pending)).or_default().entered += 1;
    }

    /// A job of this queue and batch changed its state.
    pub(crate) fn change_state(
        &mut self,
        queue_id: QueueKey,
        batch_id: Option<BatchKey>,
        from: StateName,
        to: StateName,
    ) {
        self.leave(queue_id, batch_id, from);
        self.enter(queue_id, batch_id, to);
        match to {
            // Enqueuing counts the former; `minutes` counts the latter, which would need a statement of its own in a turn
            // that ends as many attempts as it starts.
            StateName::Pending | StateName::Processing => {}
            StateName::Completed | StateName::Failed | StateName::Dead | StateName::Cancelled => {
                self.changes.entry((queue_id, to)).or_default().entered += 1;
            }
        }
    }

    /// Jobs of this queue entered this state before they were imported.
    pub(crate) fn enter_before(&mut self, queue_id: QueueKey, state: StateName, times: u64) {
        let change = self.changes.entry((queue_id, state)).or_default();
        change.entered = change.entered.saturating_add_unsigned(times);
    }

    /// A row with this queue, batch and state was added.
    pub(crate) fn enter(&mut self, queue_id: QueueKey, batch_id: Option<BatchKey>, state: StateName) {
        self.add(queue_id, batch_id, state, 1);
    }

    /// A row with this queue, batch and state was taken away.
    pub(crate) fn leave(&mut self, queue_id: QueueKey, batch_id: Option<BatchKey>, state: StateName) {
        self.add(queue_id, batch_id, state, -1);
    }

    fn add(&mut self, queue_id: QueueKey, batch_id: Option<BatchKey>, state: StateName, change: i64) {
        self.changes.entry((queue_id, state)).or_default().count += change;
        if let Some(batch_id) = batch_id {
            *self.batches.entry(batch_id).or_default().entry(state).or_default() += change;
        }
    }

    /// The change in the number of a queue's jobs in this state.
    pub(crate) fn change(&self, queue_id: QueueKey, state: StateName) -> i64 {
        self.changes.get(&(queue_id, state)).map_or(0, |change| change.count)
    }

    /// The queues with fewer jobs in this state than before.
    pub(crate) fn with_fewer(&self, state: StateName) -> Vec<QueueKey> {
        let fewer = self.changes.iter().filter(|((_, of), change)| *of == state && change.count < 0);
        fewer.map(|((queue_id, _), _)| *queue_id).collect()
    }

    /// Whether any queue has more jobs in this state than before.
    pub(crate) fn has_more(&self, state: StateName) -> bool {
        self.changes.iter().any(|((_, in_state), change)| *in_state == state && change.count > 0)
    }

    /// The change in the number of jobs in this state, in one queue or in all.
    pub(crate) fn change_of(&self, state: StateName, queue_id: Option<QueueKey>) -> i64 {
        let matches = |(of, in_state): &(QueueKey, StateName)| {
            *in_state == state && queue_id.is_none_or(|queue_id| queue_id == *of)
        };
        self.changes.iter().filter(|(key, _)| matches(key)).map(|(_, change)| change.count).sum()
    }

    /// Has the completion of a batch updated at the end of the transaction, even if no job of it changes.
    pub(crate) fn touch_batch(&mut self, batch_id: BatchKey) {
        self.batches.entry(batch_id).or_default();
    }

    pub(crate) fn write(self, tx: &Tx<'_>) -> Result<()> {
        for ((queue_id, state), change) in self.changes {
            if change != Change::default() {
                add(tx, queue_id, state, change)?;
            }
        }
        for (batch_id, changes) in self.batches {
            for (state, change) in changes.into_iter().filter(|(_, change)| *change != 0) {
                batches::count(tx, batch_id, state, change)?;
            }
            batches::update_completion(tx, batch_id)?;
        }
        Ok(())
    }
}

/// The number of jobs in a state before this transaction, in one queue or in all.
pub(crate) fn before(tx: &Tx<'_>, state: StateName, queue_id: Option<QueueKey>) -> Result<i64> {
    tx.one(
        "select cast(coalesce(sum(count), 0) as bigint) as jobs from counters
         where state = :state and (queue_id = :queue_id or :queue_id is null)",
        named! { state, queue_id },
        |row| row.get("jobs"),
    )
}

/// Adds the share of a worker that has stopped to that of all, on PostgreSQL.
pub(crate) fn fold(tx: &Tx<'_>, worker_seq: WorkerSeq) -> Result<()> {
    match tx.dialect() {
        Dialect::Sqlite => Ok(()),
        Dialect::Postgres => tx.execute(FOLD, params![worker_seq]).map(drop),
    }
}

const FOLD: &str =
    "with folded as (delete from counters where shard = ?1 returning queue_id, state, count, entered)
     insert into counters (queue_id, state, shard, count, entered)
     select queue_id, state, 0, count, entered from folded
     on conflict (queue_id, state, shard) do update
     set count = counters.count + excluded.count, entered = counters.entered + excluded.entered";

/// On PostgreSQL.
pub(crate) const ADD_TO_SHARD: &str =
    "insert into counters (queue_id, state, shard, count, entered) values (?1, ?2, ?3, ?4, ?5)
     on conflict (queue_id, state, shard) do update
     set count = counters.count + excluded.count, entered = counters.entered + excluded.entered";

fn add(tx: &Tx<'_>, queue_id: QueueKey, state: StateName, change: Change) -> Result<()> {
    let Change { count, entered } = change;
    match tx.dialect() {
        Dialect::Sqlite => add_to_row(tx, queue_id, state, change),
        Dialect::Postgres => {
            tx.execute(ADD_TO_SHARD, params![queue_id, state, tx.shard, count, entered]).map(drop)
        }
    }
}

/// On SQLite.
fn add_to_row(tx: &Tx<'_>, queue_id: QueueKey, state: StateName, change: Change) -> Result<()> {
    let Change { count, entered } = change;
    let updated = tx.execute(
        "update counters set count = count + ?3, entered = entered + ?4 where queue_id = ?1 and state = ?2",
        params![queue_id, state, count, entered],
    )?;
    if updated == 0 {
        tx.execute(
            "insert into counters (queue_id, state, count, entered) values (?1, ?2, ?3, ?4)",
            params![queue_id, state, count, entered],
        )?;
    }
    Ok(())
}

/// How often jobs of a queue entered a state, or a share of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entered {
    pub(crate) queue_id: QueueKey,
    pub(crate) state: StateName,
    pub(crate) times: u64,
}

pub(crate) fn entered(tx: &Tx<'_>) -> Result<Vec<Entered>> {
    tx.all("select queue_id, state, entered from counters where entered > 0", params![], |row| {
        Ok(read!(row, Entered { queue_id, state, times: row.get("entered")? }))
    })
}
