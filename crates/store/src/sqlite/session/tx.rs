//! One transaction: the connection, its time, and the work that is done before the commit.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeMap;
use std::time::Duration;

use rusqlite::{CachedStatement, Connection};

use super::open::OpenDatabase;
use crate::StoreError;
use crate::rows::sql::{Params, Row, Sql};
use crate::rows::value::{FromValue, malformed};
use crate::sqlite::jobs::dependencies;
use crate::sqlite::jobs::environments::CachedEnvironment;
use crate::sqlite::tables::counters::Counters;
use crate::sqlite::tables::{hooks, outbox, settings, workers};
use crate::sqlite::verbs::retry::DependencySearch;
use crate::sqlite::views::capacity;
use domain::job::retry_rules::RetryRules;
use domain::settings::Settings;
use domain::values::name::JobId;
use domain::values::timestamp::Timestamp;
use sys::clock::Clock;
use sys::guards;
use sys::guards::Guard;

/// The budget of one transaction for a change that can be split into portions, so that other writers wait only briefly.
/// The unit is the visit of one row: of a dependency, or of the link to it.
const BUDGET: usize = 4_000;
/// The cost of changing a job in the same unit: its row, its indexes, its place and its events.
const JOB_COST: usize = 4;

#[derive(Debug)]
pub(crate) struct Tx<'c> {
    connection: &'c Connection,
    /// The environment that was read last, in this transaction or an earlier one.
    pub(crate) last_environment: &'c RefCell<Option<CachedEnvironment>>,
    pub(crate) now: Timestamp,
    /// The same time on the lease clock.
    awake_millis: i64,
    pub(crate) counters: RefCell<Counters>,
    settings: OnceCell<Settings>,
    /// Cached by queue.
    pub(crate) retry_rules: RefCell<BTreeMap<i64, RetryRules>>,
    hooks: OnceCell<Vec<hooks::HookRow>>,
    /// Jobs that finished in this transaction and whose dependents are not yet unblocked.
    finished: RefCell<Vec<FinishedJob>>,
    /// The rest of this transaction's budget.
    budget: Cell<usize>,
    /// The jobs that searches for cycles have visited.
    pub(crate) dependency_search: RefCell<DependencySearch>,
    /// Whether some dependents are left to a later transaction.
    has_pending_unblocks: Cell<bool>,
    /// Jobs that were cancelled because a dependency failed.
    dependents: RefCell<Vec<CancelledDependent>>,
    /// Whether a job has become ready.
    has_new_ready: Cell<bool>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct FinishedJob {
    pub(crate) seq: i64,
    pub(crate) failed: bool,
}

/// A job that was cancelled because of another.
#[derive(Clone, Debug)]
pub(crate) struct CancelledDependent {
    pub(crate) seq: i64,
    pub(crate) id: JobId,
    pub(crate) parent_seq: i64,
}

impl<'c> Tx<'c> {
    pub(crate) fn new(opened: &'c OpenDatabase, clock: &dyn Clock) -> Self {
        Self {
            connection: &opened.connection,
            last_environment: &opened.last_environment,
            now: Timestamp::from_millis(clock.wall_millis()),
            awake_millis: clock.awake_millis(),
            counters: RefCell::default(),
            settings: OnceCell::new(),
            retry_rules: RefCell::default(),
            hooks: OnceCell::new(),
            finished: RefCell::default(),
            budget: Cell::new(full_budget()),
            dependency_search: RefCell::default(),
            has_pending_unblocks: Cell::new(false),
            dependents: RefCell::default(),
            has_new_ready: Cell::new(false),
        }
    }

    /// Runs a statement without a result, and returns the number of rows that it changed.
    pub(crate) fn execute(&self, sql: &str, params: Params<'_>) -> Result<usize, StoreError> {
        Sql::execute(self.connection, sql, params)
    }

    /// Reads every row.
    pub(crate) fn all<T>(
        &self,
        sql: &str,
        params: Params<'_>,
        mut read: impl FnMut(&Row<'_>) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let mut all = Vec::new();
        Sql::query(self.connection, sql, params, &mut |row| {
            all.push(read(row)?);
            Ok(true)
        })?;
        Ok(all)
    }

    /// Reads the first row, if there is one.
    pub(crate) fn first<T>(
        &self,
        sql: &str,
        params: Params<'_>,
        mut read: impl FnMut(&Row<'_>) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        let mut first = None;
        Sql::query(self.connection, sql, params, &mut |row| {
            first = Some(read(row)?);
            Ok(false)
        })?;
        Ok(first)
    }

    /// As `first`, for a row that must exist.
    pub(crate) fn one<T>(
        &self,
        sql: &str,
        params: Params<'_>,
        read: impl FnMut(&Row<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.first(sql, params, read)?.ok_or_else(|| malformed("row", "it is missing"))
    }

    /// The first column of the first row, if there is one.
    pub(crate) fn value<T: for<'r> FromValue<'r>>(
        &self,
        sql: &str,
        params: Params<'_>,
    ) -> Result<Option<T>, StoreError> {
        self.first(sql, params, |row| row.get(0))
    }

    /// The first column of every row.
    pub(crate) fn values<T: for<'r> FromValue<'r>>(
        &self,
        sql: &str,
        params: Params<'_>,
    ) -> Result<Vec<T>, StoreError> {
        self.all(sql, params, |row| row.get(0))
    }

    /// Whether a statement finds any row.
    pub(crate) fn exists(&self, sql: &str, params: Params<'_>) -> Result<bool, StoreError> {
        Ok(self.first(sql, params, |_| Ok(()))?.is_some())
    }

    pub(crate) fn prepare(&self, sql: &str) -> Result<CachedStatement<'c>, StoreError> {
        Ok(self.connection.prepare_cached(sql)?)
    }

    /// The remaining work before the commit.
    pub(crate) fn finish(&self) -> Result<(), StoreError> {
        // The changes have used their budget; the dependents get one of their own.
        self.budget.set(full_budget());
        dependencies::unblock_dependents(self)?;
        capacity::wake_for_freed_capacity(self)?;
        outbox::dlq_changed(self)?;
        self.counters.take().write(self)
    }

    /// The effective settings, read once.
    pub(crate) fn settings(&self) -> Result<&Settings, StoreError> {
        if let Some(settings) = self.settings.get() {
            return Ok(settings);
        }
        let settings = settings::load(self)?;
        Ok(self.settings.get_or_init(|| settings))
    }

    /// The hooks, read once, and only when an event occurs that could fire one.
    pub(crate) fn hooks(&self) -> Result<&[hooks::HookRow], StoreError> {
        if let Some(hooks) = self.hooks.get() {
            return Ok(hooks);
        }
        let hooks = hooks::load(self)?;
        Ok(self.hooks.get_or_init(|| hooks))
    }

    pub(crate) fn note_ready(&self) {
        self.has_new_ready.set(true);
    }

    pub(crate) fn has_new_ready(&self) -> bool {
        self.has_new_ready.get()
    }

    /// The caller claimed every job it made ready; no wake-up is needed.
    pub(crate) fn clear_new_ready(&self) {
        self.has_new_ready.set(false);
    }

    /// Whether there are new ready jobs and a worker to run them. Checked inside the transaction, because a worker that
    /// registers later sees the commit anyway, and a second transaction would cost more.
    pub(crate) fn should_wake_workers(&self) -> Result<bool, StoreError> {
        Ok(self.has_new_ready.get() && workers::any_live(self.connection)?)
    }

    pub(crate) fn note_finished(&self, finished: FinishedJob) {
        self.finished.borrow_mut().push(finished);
    }

    pub(crate) fn next_finished(&self) -> Option<FinishedJob> {
        self.finished.borrow_mut().pop()
    }

    /// How many jobs this transaction may still change.
    pub(crate) fn jobs_left(&self) -> usize {
        self.budget.get().div_ceil(JOB_COST)
    }

    /// Whether the budget is used up.
    pub(crate) fn is_spent(&self) -> bool {
        self.budget.get() == 0
    }

    pub(crate) fn spend(&self, visits: usize) {
        self.budget.set(self.budget.get().saturating_sub(visits));
    }

    pub(crate) fn spend_job(&self) {
        self.spend(JOB_COST);
    }

    /// Some dependents are left to a later transaction; a worker must wake up for them.
    pub(crate) fn note_pending_unblocks(&self) {
        self.has_pending_unblocks.set(true);
        self.note_ready();
    }

    pub(crate) fn note_dependent(&self, dependent: CancelledDependent) {
        self.dependents.borrow_mut().push(dependent);
    }

    pub(crate) fn take_dependents(&self) -> Vec<CancelledDependent> {
        self.dependents.take()
    }

    pub(crate) fn has_pending_unblocks(&self) -> bool {
        self.has_pending_unblocks.get()
    }

    /// The stored form of the end of a lease.
    pub(crate) fn lease_to_stored(&self, until: Timestamp) -> i64 {
        until.as_millis() - self.now.as_millis() + self.awake_millis
    }

    /// The end of a lease from its stored form.
    pub(crate) fn lease_from_stored(&self, stored: i64) -> Timestamp {
        Timestamp::from_millis(stored - self.awake_millis + self.now.as_millis())
    }

    pub(crate) fn lease_now(&self) -> i64 {
        self.awake_millis
    }
}

/// A transaction's budget, unless a test has switched it off.
fn full_budget() -> usize {
    if guards::is_off(Guard::Portions) { usize::MAX } else { BUDGET }
}

/// Durations are stored as whole milliseconds.
pub(crate) fn millis(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}

pub(crate) fn from_millis(millis: i64) -> Duration {
    Duration::from_millis(u64::try_from(millis).unwrap_or(0))
}
