//! The verbs of [`Store`] on SQLite: each opens one transaction and hands it to the file that knows the statements.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::error::commit_error;
use super::open::{Opened, open};
use super::tx::Tx;
use super::{
    cancel, checkpoint, enqueue, exchange, extend, find, list, queues, reap, remove, retry, settings, workers,
};
use crate::domain::batch::find_cycle;
use crate::domain::job::{Job, JobRecord, NewJob};
use crate::domain::name::{JobId, QueueName, WorkerId};
use crate::domain::settings::{Durability, SettingError, SettingKey};
use crate::domain::timestamp::Timestamp;
use crate::store::{
    Change, DeadGroup, EnqueueError, Enqueued, Exchange, Exchanged, JobFilter, LeaseRef, LeaseStatus,
    NewWorker, Page, Pause, Queue, Refused, Store, StoreError, Worker,
};
use crate::sys::clock::Clock;

#[derive(Debug)]
pub struct SqliteStore {
    opened: Mutex<Opened>,
    clock: Arc<dyn Clock>,
}

impl SqliteStore {
    /// Opens the queue in this file; one that is not there yet is made.
    pub fn open(path: &Path, clock: Arc<dyn Clock>) -> Result<Self, StoreError> {
        let store = Self { opened: Mutex::new(open(path)?), clock };
        // A connection begins with full durability.
        if store.read(|tx| Ok(tx.settings()?.durability))? != Durability::Full {
            store.apply_durability()?;
        }
        Ok(store)
    }

    fn lock(&self) -> MutexGuard<'_, Opened> {
        // A panic elsewhere leaves no half-done transaction behind: it was rolled back on the way out.
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `work` in one write transaction. Any error rolls back.
    fn write<T, E: From<StoreError>>(&self, work: impl FnOnce(&Tx<'_>) -> Result<T, E>) -> Result<T, E> {
        let opened = self.lock();
        checkpoint::before_first_write(&opened);
        let pass = opened.gate.enter()?;
        let transaction = Transaction::begin(&opened.connection, "begin immediate")?;
        let tx = Tx::new(&opened.connection, self.clock.as_ref());
        let result = work(&tx)?;
        tx.finish()?;
        transaction.commit()?;
        drop(pass);
        checkpoint::after_commit(&opened);
        Ok(result)
    }

    /// Runs `work` on one consistent view.
    fn read<T>(&self, work: impl FnOnce(&Tx<'_>) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let opened = self.lock();
        let _transaction = Transaction::begin(&opened.connection, "begin")?;
        work(&Tx::new(&opened.connection, self.clock.as_ref()))
    }

    fn apply_durability(&self) -> Result<(), StoreError> {
        let durability = self.read(|tx| Ok(tx.settings()?.durability))?;
        let opened = self.lock();
        opened.connection.pragma_update(None, "synchronous", durability.name())?;
        Ok(())
    }
}

/// A transaction that is rolled back unless it was committed.
struct Transaction<'c> {
    connection: &'c rusqlite::Connection,
}

impl<'c> Transaction<'c> {
    fn begin(connection: &'c rusqlite::Connection, how: &str) -> Result<Self, StoreError> {
        connection.prepare_cached(how)?.execute([])?;
        Ok(Self { connection })
    }

    fn commit(self) -> Result<(), StoreError> {
        self.connection.prepare_cached("commit")?.execute([]).map_err(commit_error)?;
        Ok(())
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        if !self.connection.is_autocommit() {
            // If even this fails, the next `begin` will say so.
            let _ = self.connection.execute_batch("rollback");
        }
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        self.tidy();
    }
}

impl Store for SqliteStore {
    fn now(&self) -> Result<Timestamp, StoreError> {
        Ok(Timestamp::from_millis(self.clock.wall_millis()))
    }

    fn tidy(&self) {
        checkpoint::at_close(&self.lock());
    }

    fn enqueue(&self, jobs: &[NewJob]) -> Result<Vec<Enqueued>, EnqueueError> {
        if let Some(id) = find_cycle(jobs) {
            let at = jobs.iter().position(|job| job.id == id).unwrap_or(0);
            return Err(EnqueueError::Refused { at, reason: Refused::Cycle(id) });
        }
        self.write(|tx| enqueue::enqueue(tx, jobs))
    }

    fn taken(&self, ids: &[JobId]) -> Result<Vec<JobId>, StoreError> {
        self.read(|tx| find::taken(tx, ids))
    }

    fn find(&self, id: &JobId) -> Result<Option<Job>, StoreError> {
        self.read(|tx| find::find(tx, id))
    }

    fn record(&self, id: &JobId) -> Result<Option<JobRecord>, StoreError> {
        self.read(|tx| find::record(tx, id))
    }

    fn output(&self, id: &JobId, attempt: u32) -> Result<Option<Vec<u8>>, StoreError> {
        self.read(|tx| find::output(tx, id, attempt))
    }

    fn list(&self, filter: &JobFilter, page: &Page) -> Result<Vec<Job>, StoreError> {
        self.read(|tx| list::list(tx, filter, page))
    }

    fn cancel(&self, ids: &[JobId], by: &str) -> Result<Vec<Change>, StoreError> {
        self.write(|tx| ids.iter().map(|id| cancel::cancel(tx, id, by)).collect())
    }

    fn retry(&self, ids: &[JobId], by: &str) -> Result<Vec<Change>, StoreError> {
        self.write(|tx| ids.iter().map(|id| retry::retry(tx, id, by)).collect())
    }

    fn remove(&self, ids: &[JobId], by: &str) -> Result<Vec<Change>, StoreError> {
        self.write(|tx| ids.iter().map(|id| remove::remove(tx, id, by)).collect())
    }

    fn dead_by_error(&self) -> Result<Vec<DeadGroup>, StoreError> {
        self.read(list::dead_by_error)
    }

    fn register(&self, worker: &NewWorker) -> Result<(), StoreError> {
        self.write(|tx| workers::register(tx, worker))
    }

    fn retire(&self, worker: &WorkerId) -> Result<(), StoreError> {
        self.write(|tx| workers::retire(tx, worker))
    }

    fn workers(&self) -> Result<Vec<Worker>, StoreError> {
        self.read(workers::list)
    }

    fn has_worker(&self) -> Result<bool, StoreError> {
        workers::any_live(&self.lock().connection)
    }

    fn exchange(&self, exchange: &Exchange<'_>) -> Result<Exchanged, StoreError> {
        // A flood of jobs that become due at once is promoted in several transactions, so that others get their turn.
        loop {
            if let Some(exchanged) = self.write(|tx| exchange::exchange(tx, exchange))? {
                return Ok(exchanged);
            }
        }
    }

    fn extend(&self, worker: &WorkerId, leases: &[LeaseRef]) -> Result<Vec<LeaseStatus>, StoreError> {
        self.write(|tx| extend::extend(tx, worker, leases))
    }

    fn overdue(&self) -> Result<Vec<WorkerId>, StoreError> {
        self.read(workers::overdue)
    }

    fn reap(&self, worker: &WorkerId, unstarted: &[LeaseRef]) -> Result<Vec<LeaseRef>, StoreError> {
        self.write(|tx| reap::reap(tx, worker, unstarted))
    }

    fn settings(&self) -> Result<BTreeMap<SettingKey, String>, StoreError> {
        self.read(settings::stored)
    }

    fn set(
        &self,
        key: SettingKey,
        value: Option<&str>,
        by: &str,
    ) -> Result<Result<(), SettingError>, StoreError> {
        let set = self.write(|tx| settings::set(tx, key, value, by))?;
        self.apply_durability()?;
        Ok(set)
    }

    fn queues(&self) -> Result<Vec<Queue>, StoreError> {
        self.read(queues::list)
    }

    fn hold(&self, queue: &QueueName, pause: Option<&Pause>) -> Result<(), StoreError> {
        self.write(|tx| queues::hold(tx, queue, pause))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::clock::SystemClock;

    /// SQLite's numbers for what a commit waits for.
    const FULL: i64 = 2;
    const NORMAL: i64 = 1;

    fn synchronous(store: &SqliteStore) -> i64 {
        let opened = store.lock();
        let pragma = opened.connection.pragma_query_value(None, "synchronous", |row| row.get(0));
        pragma.expect("a pragma")
    }

    #[test]
    fn commits_wait_for_what_the_setting_says() {
        let folder = tempfile::tempdir().expect("a folder");
        let open =
            || SqliteStore::open(&folder.path().join("queue.db"), Arc::new(SystemClock)).expect("a store");
        let store = open();
        assert_eq!(synchronous(&store), FULL, "nothing is set");
        for (value, expected) in [(Some("normal"), NORMAL), (Some("full"), FULL), (Some("normal"), NORMAL)] {
            let set = store.set(SettingKey::Durability, value, "tester").expect("set");
            assert_eq!(set, Ok(()));
            assert_eq!(synchronous(&store), expected, "{value:?} takes effect at once");
            assert_eq!(synchronous(&open()), expected, "and when the store is opened");
        }
        let refused = store.set(SettingKey::Durability, Some("off"), "tester").expect("set");
        assert!(refused.is_err());
        assert_eq!(synchronous(&store), NORMAL, "a wrong value changes nothing");
        store.set(SettingKey::Durability, None, "tester").expect("set").expect("unset");
        assert_eq!(synchronous(&store), FULL);
    }
}
