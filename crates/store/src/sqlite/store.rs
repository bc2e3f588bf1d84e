//! [`Store`] on SQLite.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::backup;
use super::backup::{Backup, Progress};
use super::session::error::commit_error;
use super::session::file_state::{FileState, retry_while_changing, retry_while_readonly};
use super::session::gate::GATE_TIMEOUT;
use super::session::open::{OpenDatabase, open};
use super::session::statement::Statements;
use super::session::{checkpoint, migrate, read_only};
use super::wake::{Bells, announce};
use crate::rows::tables::workers;
use crate::rows::transaction::{ReadWork, Verdict, WriteWork};
use crate::rows::tx::{Effects, Tx};
use crate::rows::verbs::exchange;
use crate::rows::views::orders;
use crate::{
    Exchange, ExchangeResult, HistoryCache, NewWorker, Notice, Orders, Result, Store, StoreError,
    StoreVersion, Wake,
};
use domain::settings::Durability;
use domain::values::name::WorkerId;
use domain::values::timestamp::Timestamp;
use sys::clock::Clock;
use sys::process::Holder;
use sys::{bell, failpoint, last_error};

#[derive(Debug)]
pub struct SqliteStore {
    opened: Mutex<OpenDatabase>,
    clock: Arc<dyn Clock>,
    history_cache: Arc<HistoryCache>,
}

impl SqliteStore {
    /// Opens the queue in this file, and creates it if it does not exist.
    pub fn open(path: &Path, clock: Arc<dyn Clock>) -> Result<Self> {
        Self::open_within(path, clock, GATE_TIMEOUT)
    }

    /// As [`Self::open`], for a caller that waits no longer than this for a lock.
    pub fn open_within(path: &Path, clock: Arc<dyn Clock>, lock_timeout: Duration) -> Result<Self> {
        let store = Self::with(open(path, lock_timeout)?, clock);
        store.adopt_settings()?;
        Ok(store)
    }

    /// Opens the queue read-only: nothing is created or changed, and writes are refused.
    pub fn open_read_only(path: &Path, clock: Arc<dyn Clock>) -> Result<Self> {
        Self::open_read_only_within(path, clock, GATE_TIMEOUT)
    }

    /// As [`Self::open_read_only`], for a caller that cannot wait long for a lock.
    pub fn open_read_only_within(path: &Path, clock: Arc<dyn Clock>, lock_timeout: Duration) -> Result<Self> {
        Ok(Self::with(read_only::open(path, lock_timeout)?, clock))
    }

    fn with(opened: OpenDatabase, clock: Arc<dyn Clock>) -> Self {
        Self { opened: Mutex::new(opened), clock, history_cache: Arc::default() }
    }

    /// Copies the whole queue into one file in one snapshot, while other processes continue to use it.
    pub fn backup(&self, backup: &Backup<'_>, progress: &mut dyn FnMut(Progress)) -> Result<()> {
        let opened = self.lock();
        backup::copy(&opened.connection, backup, progress)?;
        if opened.has_changed() { Err(StoreError::Changing) } else { Ok(()) }
    }

    fn lock(&self) -> MutexGuard<'_, OpenDatabase> {
        // After a panic the transaction was rolled back while unwinding.
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The verbs that every store shares.
    pub(super) fn shared(&self) -> &dyn Store {
        self
    }

    fn tx<'c>(&self, opened: &'c OpenDatabase, statements: &'c Statements<'_>) -> Tx<'c> {
        let began = Instant::now();
        let now = Timestamp::from_millis(self.clock.wall_millis());
        Tx::new(statements, &opened.last_environment, began, now, self.clock.awake_millis())
    }

    /// The transaction itself, inside the gate. `None` if it was rolled back.
    fn commit(&self, opened: &OpenDatabase, verb: &str, work: &mut WriteWork<'_>) -> Result<Option<Effects>> {
        checkpoint::before_first_write(opened);
        let _guard = opened.gate.enter(opened.lock_timeout.get())?;
        let transaction = Transaction::begin(opened, "begin immediate")?;
        if opened.only_finishes.get() {
            migrate::refuse_unfinishable(&opened.connection)?;
        } else {
            migrate::refuse_newer(&opened.connection)?;
        }
        let statements = Statements::of(&opened.connection);
        let mut tx = self.tx(opened, &statements);
        if work(&mut tx)? == Verdict::RollBack {
            return Ok(None);
        }
        let effects = tx.finish()?;
        failpoint::hit(format_args!("{verb}.before_commit"));
        transaction.commit()?;
        failpoint::hit(format_args!("{verb}.after_commit"));
        Ok(Some(effects))
    }

    fn snapshot(&self, opened: &OpenDatabase, work: &mut ReadWork<'_>) -> Result<()> {
        let _transaction = Transaction::begin(opened, "begin")?;
        let read = work(&mut self.tx(opened, &Statements::of(&opened.connection)));
        read.map_err(|error| error.after_waiting(opened.lock_timeout.get()))
    }

    /// For access outside the queue's own tables.
    pub(super) fn with_connection<T>(
        &self,
        work: impl FnOnce(&rusqlite::Connection) -> Result<T>,
    ) -> Result<T> {
        work(&self.lock().connection)
    }
}

/// A transaction that is rolled back unless it was committed.
struct Transaction<'c> {
    connection: &'c rusqlite::Connection,
}

impl<'c> Transaction<'c> {
    fn begin(opened: &'c OpenDatabase, how: &str) -> Result<Self> {
        let connection = &opened.connection;
        // From here on the recorded error belongs to this transaction.
        last_error::clear();
        let begun = connection.prepare_cached(how)?.execute([]).map_err(StoreError::from);
        begun.map_err(|error| error.after_waiting(opened.lock_timeout.get()))?;
        Ok(Self { connection })
    }

    fn commit(self) -> Result<()> {
        let committed = self.connection.prepare_cached("commit")?.execute([]);
        committed.map(drop).map_err(|error| commit_error(error, self.connection.path()))
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        if !self.connection.is_autocommit() {
            // If this fails too, the next `begin` reports it.
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
    fn now(&self) -> Result<Timestamp> {
        Ok(Timestamp::from_millis(self.clock.wall_millis()))
    }

    /// If the files are read without locks and were changed meanwhile, they are opened again.
    fn read(&self, work: &mut ReadWork<'_>) -> Result<()> {
        let mut opened = self.lock();
        if opened.unlocked_state.is_none() {
            return retry_while_readonly(|| self.snapshot(&opened, work));
        }
        retry_while_changing(|| {
            let found = self.snapshot(&opened, work);
            if !opened.has_changed() {
                return Ok(Some(found));
            }
            *opened = read_only::open(&opened.database, opened.lock_timeout.get())?;
            Ok(None)
        })
    }

    /// Rings the bell if it made jobs ready.
    fn write(&self, verb: &str, work: &mut WriteWork<'_>) -> Result<Effects> {
        let opened = self.lock();
        let Some(effects) = self.commit(&opened, verb, work)? else {
            return Ok(Effects::default());
        };
        if effects.wakes_workers {
            bell::ring_at(&opened.bell, bell::MAX_HOPS);
        }
        checkpoint::after_commit(&opened);
        Ok(effects)
    }

    fn secure_reads(&self) -> Result<()> {
        self.lock().sync_log()
    }

    fn listen(&self, worker: &NewWorker) -> Result<Box<dyn Wake>> {
        Ok(Box::new(Bells::open(&self.lock(), worker)?))
    }

    fn exchange(&self, exchange: &Exchange<'_>) -> Result<ExchangeResult> {
        // If very many jobs are due at once, they are promoted in several transactions, so that other writers get their
        // turn.
        loop {
            // A store with a registered worker does not move, so the mark need not be read.
            let exchanged = self.shared().transact_anyway("exchange", |tx| exchange::exchange(tx, exchange));
            if let Some(exchanged) = exchanged? {
                return Ok(exchanged);
            }
        }
    }

    fn orders(&self, worker: &WorkerId) -> Result<Orders> {
        let orders = self.shared().view(|tx| orders::orders(tx, worker))?;
        let opened = self.lock();
        opened.set_durability(orders.settings.durability)?;
        opened.limit_lock_timeout(orders.settings.lease)?;
        Ok(orders)
    }

    fn has_worker(&self) -> Result<bool> {
        let opened = self.lock();
        retry_while_readonly(|| workers::any_live(&Statements::of(&opened.connection)))
    }

    fn announce(&self, notice: Notice<'_>) -> Result<()> {
        announce(self.shared(), notice)
    }

    fn wait_at_most(&self, lock_timeout: Duration) -> Result<()> {
        self.lock().set_lock_timeout(lock_timeout)
    }

    fn history_cache(&self) -> &Arc<HistoryCache> {
        &self.history_cache
    }

    fn share_history_cache(&mut self, cache: Arc<HistoryCache>) {
        self.history_cache = cache;
    }

    fn version(&self) -> Result<StoreVersion> {
        let opened = self.lock();
        if opened.unlocked_state.is_some() {
            // Without locks, SQLite does not look for changes.
            return Ok(StoreVersion(format!("{:?}", FileState::of(&opened.database))));
        }
        let others: i64 = retry_while_readonly(|| {
            Ok(opened.connection.prepare_cached("pragma data_version")?.query_row([], |row| row.get(0))?)
        })?;
        Ok(StoreVersion(format!("{others}.{}", opened.connection.total_changes())))
    }

    fn adopt_settings(&self) -> Result<()> {
        match self.shared().view(|tx| Ok(tx.settings()?.durability)) {
            Ok(durability) => self.lock().set_durability(durability),
            // Operations that need the settings report the error. Until it is repaired, commits are as safe as
            // possible.
            Err(StoreError::BadSetting { .. }) => self.lock().set_durability(Durability::Full),
            Err(error) => Err(error),
        }
    }

    fn reach(&self, folder: &Path) -> PathBuf {
        self.lock().folder().join(folder)
    }

    fn prepare_logs(&self, logs: &Path) -> Result<()> {
        if !backup::any_staged(logs) {
            return Ok(());
        }
        let opened = self.lock();
        let _guard = opened.gate.enter(opened.lock_timeout.get())?;
        backup::put_restored_logs(&opened.connection, logs)
    }

    /// A newer program may have migrated the schema since this process opened it.
    fn check_fitness_for_workers(&self) -> Result<()> {
        migrate::refuse_newer(&self.lock().connection)
    }

    /// Each write asks anew: another migration may follow.
    fn finish_under_newer_schema(&self) -> Result<bool> {
        let opened = self.lock();
        let allows = match migrate::refuse_unfinishable(&opened.connection) {
            Err(StoreError::TooNew { .. }) => false,
            allowed => allowed.map(|()| true)?,
        };
        opened.only_finishes.set(allows);
        Ok(allows)
    }

    fn is_read_only(&self) -> bool {
        self.lock().gate.is_closed()
    }

    fn writer(&self) -> Option<Holder> {
        self.lock().gate.holder()
    }

    fn tidy(&self) {
        checkpoint::at_close(&self.lock());
    }
}

#[cfg(test)]
mod tests;
