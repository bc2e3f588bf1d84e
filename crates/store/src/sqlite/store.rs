//! The verbs of [`Store`] on SQLite: each opens one transaction and passes it to the file with its statements. `areas`
//! has the verbs of the other traits, `portions` those that take several transactions.

mod portions;
pub(crate) mod traits;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use self::portions::Cascade;
use super::backup;
use super::jobs::unkillable;
use super::session::error::commit_error;
use super::session::file_state::{retry_while_changing, retry_while_readonly};
use super::session::open::{OpenDatabase, open};
use super::session::tx::Tx;
use super::session::{checkpoint, migrate, read_only};
use super::tables::{queues, settings, stops, workers};
use super::verbs::{change, enqueue, exchange, extend, reap};
use super::views::{find, list, orders, recent_problems};
use crate::{
    DeadGroup, EnqueueError, EnqueueRefusal, EnqueueResult, Exchange, ExchangeResult, JobFilter, JobRef,
    JobVerb, LeaseRef, LeaseStatus, NewWorker, Orders, Page, PartialChange, RecentProblems, Registration,
    Stop, Store, StoreError, UnkillableProcess, Worker, WorkerSlots, WorkerState,
};
use domain::batch::find_cycle;
use domain::job::{Job, JobRecord, NewJob};
use domain::settings::{Durability, SettingError, SettingKey};
use domain::values::name::{JobId, WorkerId};
use domain::values::timestamp::Timestamp;
use sys::clock::Clock;
use sys::{bell, failpoint, last_error};

#[derive(Debug)]
pub struct SqliteStore {
    opened: Mutex<OpenDatabase>,
    clock: Arc<dyn Clock>,
}

impl SqliteStore {
    /// Opens the queue in this file, and creates it if it does not exist.
    pub fn open(path: &Path, clock: Arc<dyn Clock>) -> Result<Self, StoreError> {
        let store = Self { opened: Mutex::new(open(path)?), clock };
        store.apply_durability()?;
        Ok(store)
    }

    /// Opens the queue read-only: nothing is created or changed, and writes are refused.
    pub fn open_read_only(path: &Path, clock: Arc<dyn Clock>) -> Result<Self, StoreError> {
        Ok(Self { opened: Mutex::new(read_only::open(path)?), clock })
    }

    fn lock(&self) -> MutexGuard<'_, OpenDatabase> {
        // After a panic the transaction was rolled back while unwinding.
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `work` in one write transaction. Any error rolls it back. Rings the bell if it made jobs ready.
    fn write<T, E: From<StoreError>>(
        &self,
        verb: &str,
        work: impl FnOnce(&Tx<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        self.write_with_cascade(verb, &mut Cascade::default(), work)
    }

    /// As `write`, and adds its effects on the dependents of finished jobs.
    fn write_with_cascade<T, E: From<StoreError>>(
        &self,
        verb: &str,
        cascade: &mut Cascade,
        work: impl FnOnce(&Tx<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let opened = self.lock();
        let (result, has_work, dependents, has_more) = self.commit(&opened, verb, |tx| {
            let result = work(tx)?;
            tx.finish()?;
            let has_work = tx.should_wake_workers()?;
            Ok::<_, E>((result, has_work, tx.take_dependents(), tx.has_pending_unblocks()))
        })?;
        cascade.dependents.extend(dependents);
        cascade.has_more |= has_more;
        if has_work {
            bell::ring_at(&opened.bell, bell::MAX_HOPS);
        }
        checkpoint::after_commit(&opened);
        Ok(result)
    }

    /// The transaction itself, inside the gate.
    fn commit<T, E: From<StoreError>>(
        &self,
        opened: &OpenDatabase,
        verb: &str,
        work: impl FnOnce(&Tx<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        checkpoint::before_first_write(opened);
        let _pass = opened.gate.enter(opened.lock_timeout.get())?;
        let transaction = Transaction::begin(opened, "begin immediate")?;
        migrate::refuse_newer(&opened.connection)?;
        let result = work(&Tx::new(opened, self.clock.as_ref()))?;
        failpoint::hit(format_args!("{verb}.before_commit"));
        transaction.commit()?;
        failpoint::hit(format_args!("{verb}.after_commit"));
        Ok(result)
    }

    /// Runs `work` on one snapshot. If the files are read without locks and were changed meanwhile, they are opened
    /// again.
    fn read<T>(&self, work: impl Fn(&Tx<'_>) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let mut opened = self.lock();
        if opened.unlocked_state.is_none() {
            return retry_while_readonly(|| self.view(&opened, &work));
        }
        retry_while_changing(|| {
            let found = self.view(&opened, &work);
            let Some(database) = opened.changed_database() else {
                return Some(found);
            };
            match read_only::open(&database) {
                Ok(anew) => *opened = anew,
                Err(error) => return Some(Err(error)),
            }
            None
        })
    }

    fn view<T>(
        &self,
        opened: &OpenDatabase,
        work: impl FnOnce(&Tx<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let _transaction = Transaction::begin(opened, "begin")?;
        work(&Tx::new(opened, self.clock.as_ref()))
    }

    /// Takes back every lease, because their workers belong to another queue. Returns how many there were.
    pub(super) fn lose_running_attempts(&self, by: &str, stamp: &str) -> Result<u64, StoreError> {
        self.write("lose_running_attempts", |tx| backup::lose_all(tx, by, stamp))
    }

    pub(super) fn count_jobs(&self) -> Result<u64, StoreError> {
        let queues = self.read(queues::list)?;
        Ok(queues.iter().flat_map(|queue| queue.counts.values()).sum())
    }

    /// For access outside the queue's own tables.
    pub(super) fn with_connection<T>(
        &self,
        work: impl FnOnce(&rusqlite::Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        work(&self.lock().connection)
    }

    fn apply_durability(&self) -> Result<(), StoreError> {
        match self.read(|tx| Ok(tx.settings()?.durability)) {
            Ok(durability) => self.lock().set_durability(durability),
            // Operations that need the settings report the error. Until it is repaired, commits are as safe as
            // possible.
            Err(StoreError::BadSetting { .. }) => self.lock().set_durability(Durability::Full),
            Err(error) => Err(error),
        }
    }
}

/// Whether this answer reports existing jobs and nothing was stored.
fn only_found_existing(answer: &Result<Vec<EnqueueResult>, EnqueueError>) -> bool {
    match answer {
        Ok(answers) => answers.iter().all(|answer| matches!(answer, EnqueueResult::Existing(_))),
        Err(EnqueueError::Refused { reason, .. }) => matches!(reason, EnqueueRefusal::IdTaken(_)),
        Err(EnqueueError::Store(_)) => false,
    }
}

/// A transaction that is rolled back unless it was committed.
struct Transaction<'c> {
    connection: &'c rusqlite::Connection,
}

impl<'c> Transaction<'c> {
    fn begin(opened: &'c OpenDatabase, how: &str) -> Result<Self, StoreError> {
        let connection = &opened.connection;
        // From here on the recorded error belongs to this transaction.
        last_error::clear();
        let begun = connection.prepare_cached(how)?.execute([]).map_err(StoreError::from);
        match begun {
            Ok(_) => Ok(Self { connection }),
            Err(StoreError::Busy { .. }) => {
                Err(StoreError::Busy { waited: opened.lock_timeout.get(), holder: None })
            }
            Err(error) => Err(error),
        }
    }

    fn commit(self) -> Result<(), StoreError> {
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
    fn now(&self) -> Result<Timestamp, StoreError> {
        Ok(Timestamp::from_millis(self.clock.wall_millis()))
    }

    fn tidy(&self) {
        checkpoint::at_close(&self.lock());
    }

    fn enqueue(&self, jobs: &[NewJob]) -> Result<Vec<EnqueueResult>, EnqueueError> {
        if let Some(id) = find_cycle(jobs) {
            let at = jobs.iter().position(|job| job.id == id).unwrap_or(0);
            return Err(EnqueueError::Refused { at, reason: EnqueueRefusal::Cycle(id) });
        }
        let answer = self.write("enqueue", |tx| enqueue::enqueue(tx, jobs));
        if only_found_existing(&answer) {
            // There was nothing to commit, but the caller may rely on these jobs being durable.
            self.lock().sync_log()?;
        }
        answer
    }

    fn existing_ids(&self, ids: &[JobId]) -> Result<Vec<JobId>, StoreError> {
        let existing = self.read(|tx| find::existing_ids(tx, ids))?;
        if !existing.is_empty() {
            self.lock().sync_log()?;
        }
        Ok(existing)
    }

    fn find(&self, id: &JobId) -> Result<Option<Job>, StoreError> {
        self.read(|tx| find::find(tx, id))
    }

    fn record(&self, id: &JobId) -> Result<Option<JobRecord>, StoreError> {
        let mut record = self.read(|tx| find::record(tx, id))?;
        let opened = self.lock();
        for attempt in record.iter_mut().flat_map(|record| &mut record.history) {
            attempt.home.folder = opened.folder().join(&attempt.home.folder);
        }
        Ok(record)
    }

    fn output(&self, id: &JobId, attempt: u32) -> Result<Option<Vec<u8>>, StoreError> {
        self.read(|tx| find::output(tx, id, attempt))
    }

    fn list(&self, filter: &JobFilter, page: &Page) -> Result<Vec<Job>, StoreError> {
        self.read(|tx| list::list(tx, filter, page))
    }

    fn select(
        &self,
        filter: &JobFilter,
        below: Option<u64>,
        limit: usize,
    ) -> Result<Vec<JobRef>, StoreError> {
        self.read(|tx| list::select(tx, filter, below, limit))
    }

    fn ids_with_prefix(&self, prefix: &JobId, limit: usize) -> Result<Vec<JobId>, StoreError> {
        self.read(|tx| find::ids_with_prefix(tx, prefix, limit))
    }

    fn change(&self, verb: JobVerb, jobs: &[JobRef], by: &str) -> Result<PartialChange, StoreError> {
        self.change_some("change", verb, jobs, |tx, job| change::if_unchanged(tx, verb, job, by))
    }

    fn change_ids(&self, verb: JobVerb, ids: &[JobId], by: &str) -> Result<PartialChange, StoreError> {
        self.change_some(verb.name(), verb, ids, |tx, id| change::by_id(tx, verb, id, by))
    }

    fn dead_by_error(&self) -> Result<Vec<DeadGroup>, StoreError> {
        self.read(list::dead_by_error)
    }

    fn recent_problems(
        &self,
        died_since: Timestamp,
        missed_since: Timestamp,
    ) -> Result<RecentProblems, StoreError> {
        self.read(|tx| recent_problems::recent_problems(tx, died_since, missed_since))
    }

    fn register(&self, worker: &NewWorker) -> Result<Registration, StoreError> {
        // The bell comes first: a process that sees the worker can ring it.
        let opened = self.lock();
        let bell = opened.open_bell()?;
        let folder = worker.folder.strip_prefix(opened.folder()).unwrap_or(&worker.folder).to_owned();
        drop(opened);
        let stop_seen = self.write("register", |tx| workers::register(tx, worker, &folder))?;
        Ok(Registration { bell, stop_seen })
    }

    fn set_worker_state(&self, worker: &WorkerId, state: WorkerState) -> Result<(), StoreError> {
        self.write("set_worker_state", |tx| workers::change_state(tx, worker, state))
    }

    fn set_worker_slots(&self, worker: &WorkerId, slots: WorkerSlots) -> Result<(), StoreError> {
        self.write("set_worker_slots", |tx| workers::set_slots(tx, worker, slots))
    }

    fn orders(&self, worker: &WorkerId) -> Result<Orders, StoreError> {
        let orders = self.read(|tx| orders::orders(tx, worker))?;
        let opened = self.lock();
        opened.set_durability(orders.settings.durability)?;
        opened.limit_lock_timeout(orders.settings.lease)?;
        Ok(orders)
    }

    fn stop(&self, stop: &Stop, by: &str) -> Result<(), StoreError> {
        self.write("stop", |tx| stops::add(tx, stop, by))
    }

    fn workers(&self) -> Result<Vec<Worker>, StoreError> {
        let mut workers = self.read(workers::list)?;
        let opened = self.lock();
        for worker in &mut workers {
            worker.folder = opened.folder().join(&worker.folder);
        }
        Ok(workers)
    }

    fn has_worker(&self) -> Result<bool, StoreError> {
        let opened = self.lock();
        retry_while_readonly(|| workers::any_live(&opened.connection))
    }

    fn exchange(&self, exchange: &Exchange<'_>) -> Result<ExchangeResult, StoreError> {
        // If very many jobs are due at once, they are promoted in several transactions, so that other writers get their
        // turn.
        loop {
            if let Some(exchanged) = self.write("exchange", |tx| exchange::exchange(tx, exchange))? {
                return Ok(exchanged);
            }
        }
    }

    fn extend(&self, worker: &WorkerId, leases: &[LeaseRef]) -> Result<Vec<LeaseStatus>, StoreError> {
        self.write("extend", |tx| extend::extend(tx, worker, leases))
    }

    fn reap(&self, worker: &WorkerId, started: Option<&[LeaseRef]>) -> Result<Vec<LeaseRef>, StoreError> {
        self.write("reap", |tx| reap::reap(tx, worker, started))
    }

    fn reap_except(
        &self,
        worker: &WorkerId,
        started: Option<&[LeaseRef]>,
        stay: &[LeaseRef],
    ) -> Result<Vec<LeaseRef>, StoreError> {
        self.write("reap", |tx| reap::take_back(tx, worker, started, stay))
    }

    fn record_unkillable(&self, found: &[UnkillableProcess]) -> Result<(), StoreError> {
        self.write("record_unkillable", |tx| unkillable::record(tx, found))
    }

    fn unkillable(&self) -> Result<Vec<UnkillableProcess>, StoreError> {
        self.read(unkillable::list)
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
        let set = self.write("set", |tx| settings::set(tx, key, value, by))?;
        self.apply_durability()?;
        Ok(set)
    }

    fn unset_unknown(&self, key: &str, by: &str) -> Result<bool, StoreError> {
        self.write("set", |tx| settings::unset_unknown(tx, key, by))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ServedJobs;
    use sys::clock::SystemClock;
    use sys::host::Origin;

    /// SQLite's values of `synchronous`.
    const FULL: i64 = 2;
    const NORMAL: i64 = 1;

    fn synchronous(store: &SqliteStore) -> i64 {
        let opened = store.lock();
        let pragma = opened.connection.pragma_query_value(None, "synchronous", |row| row.get(0));
        pragma.expect("a pragma")
    }

    fn open(folder: &tempfile::TempDir) -> SqliteStore {
        SqliteStore::open(&folder.path().join("queue.db"), Arc::new(SystemClock)).expect("a store")
    }

    /// The store of a worker, a second one, and the worker.
    fn with_a_worker(folder: &tempfile::TempDir) -> (SqliteStore, SqliteStore, NewWorker) {
        let (store, worker) = (open(folder), worker());
        store.register(&worker).expect("register");
        (store, open(folder), worker)
    }

    #[test]
    fn a_worker_adopts_a_changed_durability_with_its_orders() {
        let folder = tempfile::tempdir().expect("a folder");
        let (store, elsewhere, worker) = with_a_worker(&folder);
        for (value, expected) in [(Some("normal"), NORMAL), (None, FULL)] {
            elsewhere.set(SettingKey::Durability, value, "tester").expect("set").expect("a value");
            store.orders(&worker.id).expect("orders");
            assert_eq!(synchronous(&store), expected, "{value:?}");
        }
    }

    #[test]
    fn a_worker_waits_for_locks_no_longer_than_its_lease_allows() {
        let folder = tempfile::tempdir().expect("a folder");
        let (store, elsewhere, worker) = with_a_worker(&folder);
        let set = |key, value| elsewhere.set(key, Some(value), "tester").expect("set").expect("a value");
        set(SettingKey::HeartbeatInterval, "50ms");
        for (lease, expected) in [("2s", 500), ("200ms", 100), ("1h", 30_000), ("800ms", 200)] {
            set(SettingKey::Lease, lease);
            store.orders(&worker.id).expect("orders");
            assert_eq!(store.lock().lock_timeout.get().as_millis(), expected, "{lease}");
        }
        let opened = elsewhere.lock();
        let _pass = opened.gate.enter(opened.lock_timeout.get()).expect("it is free");
        let began = std::time::Instant::now();
        let refused = store.extend(&worker.id, &[]).expect_err("the gate is held");
        assert!(
            refused.to_string().starts_with("the database was locked for 200ms by process "),
            "{refused}"
        );
        assert!(began.elapsed().as_millis() >= 200);
    }

    fn worker() -> NewWorker {
        NewWorker {
            id: "w".parse().expect("a worker id"),
            host: "here".to_owned(),
            origin: Origin::default(),
            pid: 1,
            supervisor_pid: None,
            served: ServedJobs::All,
            concurrency: 1,
            folder: "/".into(),
            stop_seen: None,
        }
    }

    #[test]
    fn the_durability_setting_takes_effect_at_once_and_on_open() {
        let folder = tempfile::tempdir().expect("a folder");
        let open = || open(&folder);
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
