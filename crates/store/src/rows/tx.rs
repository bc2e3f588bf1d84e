//! One transaction: its statements, its time, and the work that is done before the commit.
//!
//! A verb that changes jobs takes `&mut Tx`: the transaction sums up the effects of its changes, and [`Tx::finish`] applies
//! those that concern other rows before the commit.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeMap;
use std::time::Instant;

use super::dialect::Dialect;
use super::jobs::causes::Causes;
use super::jobs::dependencies;
use super::jobs::environments::CachedEnvironment;
use super::sql::{Params, Row, Sql};
use super::tables::counters::Counters;
use super::tables::minutes::Minutes;
use super::tables::{hooks, minutes, outbox, settings, workers};
use super::value::{FromValue, malformed};
use super::verbs::retry::DependencySearch;
use super::views::capacity;
use crate::rows::keys::{EnvironmentKey, JobSeq, QueueKey, WorkerSeq};
use crate::{Result, StoreError};
use domain::job::retry_rules::RetryRules;
use domain::plan::consequences::End;
use domain::settings::Settings;
use domain::values::name::{JobId, WorkerId};
use domain::values::timestamp::Timestamp;
use sys::guards;
use sys::guards::Guard;

/// The budget of one transaction for a change that can be split into portions, so that other writers wait only briefly.
/// The unit is the visit of one row: of a dependency, or of the link to it.
const BUDGET: usize = 4_000;
/// The cost of changing a job in the same unit: its row, its indexes, its place and its events.
const JOB_COST: usize = 4;

#[expect(missing_debug_implementations, reason = "a database is no data")]
pub struct Tx<'c> {
    sql: &'c dyn Sql,
    dialect: Dialect,
    /// The environment that was read last, in this transaction or an earlier one.
    pub(crate) last_environment: &'c RefCell<Option<CachedEnvironment>>,
    /// The row of `last_environment`, if this transaction has found it unchanged.
    pub(crate) checked_environment: Cell<Option<EnvironmentKey>>,
    /// The worker that was looked up last, almost always the only one of the transaction: its row never changes its key.
    pub(crate) last_worker: RefCell<Option<(WorkerId, WorkerSeq)>>,
    /// The same for the boot of a worker.
    pub(crate) last_boot_id: RefCell<Option<(WorkerSeq, String)>>,
    /// The latest moment that is surely not after `now`: events that this process saw are dated by it.
    pub(crate) began: Instant,
    pub(crate) now: Timestamp,
    /// The same time on the lease clock, in milliseconds.
    lease_now: i64,
    settings: OnceCell<Settings>,
    /// Cached by queue.
    pub(crate) retry_rules: RefCell<BTreeMap<QueueKey, RetryRules>>,
    hooks: OnceCell<Vec<hooks::HookRow>>,
    pub(crate) counters: Counters,
    pub(crate) causes: Causes,
    pub(crate) minutes: Minutes,
    /// The share of `counters`, `causes` and `minutes` to which PostgreSQL adds.
    pub(crate) shard: i64,
    /// Jobs that finished in this transaction and whose dependents are not yet unblocked.
    pub(crate) finished: Vec<FinishedJob>,
    /// The rest of this transaction's budget.
    budget: usize,
    /// The jobs that searches for cycles have visited.
    pub(crate) dependency_search: DependencySearch,
    pub(crate) effects: Effects,
}

/// The effects of a transaction that others have to know of.
#[derive(Debug, Default)]
pub struct Effects {
    /// Jobs that were cancelled because a dependency failed, in the order of cancellation.
    pub(crate) dependents: Vec<CancelledDependent>,
    /// Some dependents are left to a later transaction.
    pub(crate) has_pending_unblocks: bool,
    /// There are new ready jobs, and a worker to run them.
    pub(crate) wakes_workers: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct FinishedJob {
    pub(crate) seq: JobSeq,
    pub(crate) end: End,
}

/// A job that was cancelled because of another.
#[derive(Clone, Debug)]
pub(crate) struct CancelledDependent {
    pub(crate) seq: JobSeq,
    pub(crate) id: JobId,
    pub(crate) parent_seq: JobSeq,
}

impl<'c> Tx<'c> {
    pub(crate) fn new(
        sql: &'c dyn Sql,
        last_environment: &'c RefCell<Option<CachedEnvironment>>,
        began: Instant,
        now: Timestamp,
        lease_now: i64,
    ) -> Self {
        Self {
            sql,
            dialect: sql.dialect(),
            last_environment,
            checked_environment: Cell::default(),
            last_worker: RefCell::default(),
            last_boot_id: RefCell::default(),
            began,
            now,
            lease_now,
            settings: OnceCell::new(),
            retry_rules: RefCell::default(),
            hooks: OnceCell::new(),
            counters: Counters::default(),
            causes: Causes::default(),
            minutes: Minutes::default(),
            shard: minutes::SHARED,
            finished: Vec::new(),
            budget: full_budget(),
            dependency_search: DependencySearch::default(),
            effects: Effects::default(),
        }
    }

    /// The remaining work before the commit.
    pub(crate) fn finish(mut self) -> Result<Effects> {
        // The changes have used their budget; the dependents get one of their own.
        self.budget = full_budget();
        dependencies::unblock_dependents(&mut self)?;
        capacity::wake_for_freed_capacity(&mut self)?;
        outbox::dlq_changed(&self)?;
        std::mem::take(&mut self.counters).write(&self)?;
        std::mem::take(&mut self.causes).write(&self)?;
        std::mem::take(&mut self.minutes).write(&self)?;
        // Checked inside the transaction, because a worker that registers later sees the commit anyway, and a second
        // transaction would cost more.
        self.effects.wakes_workers = self.effects.wakes_workers && workers::any_live(self.sql)?;
        Ok(self.effects)
    }

    /// For a statement that is also used without a transaction.
    pub(crate) fn sql(&self) -> &dyn Sql {
        self.sql
    }

    /// Another transaction was quicker.
    pub(crate) fn conflict(&self) -> StoreError {
        self.sql.conflict()
    }

    pub(crate) fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Runs a statement without a result, and returns the number of rows that it changed.
    pub(crate) fn execute(&self, sql: &str, params: Params<'_>) -> Result<usize> {
        self.sql.execute(sql, params)
    }

    /// Passes the rows to `each`, until that returns `false`.
    pub(crate) fn query(
        &self,
        sql: &str,
        params: Params<'_>,
        each: &mut dyn FnMut(&Row<'_>) -> Result<bool>,
    ) -> Result<()> {
        self.sql.query(sql, params, each)
    }

    /// The same for a statement without parameters whose result may be larger than the memory.
    pub(crate) fn query_long(&self, sql: &str, each: &mut dyn FnMut(&Row<'_>) -> Result<bool>) -> Result<()> {
        self.sql.query_long(sql, each)
    }

    /// Reads every row.
    pub(crate) fn all<T>(
        &self,
        sql: &str,
        params: Params<'_>,
        mut read: impl FnMut(&Row<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut all = Vec::new();
        self.sql.query(sql, params, &mut |row| {
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
        mut read: impl FnMut(&Row<'_>) -> Result<T>,
    ) -> Result<Option<T>> {
        let mut first = None;
        self.sql.query(sql, params, &mut |row| {
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
        read: impl FnMut(&Row<'_>) -> Result<T>,
    ) -> Result<T> {
        self.first(sql, params, read)?.ok_or_else(|| malformed("row", "it is missing"))
    }

    /// The first column of the first row, if there is one.
    pub(crate) fn value<T: for<'r> FromValue<'r>>(&self, sql: &str, params: Params<'_>) -> Result<Option<T>> {
        self.first(sql, params, |row| row.get(0))
    }

    /// The first column of every row.
    pub(crate) fn values<T: for<'r> FromValue<'r>>(&self, sql: &str, params: Params<'_>) -> Result<Vec<T>> {
        self.all(sql, params, |row| row.get(0))
    }

    /// Whether a statement finds a row that satisfies a condition. Reads no row after that one.
    pub(crate) fn any(
        &self,
        sql: &str,
        params: Params<'_>,
        mut satisfies: impl FnMut(&Row<'_>) -> Result<bool>,
    ) -> Result<bool> {
        let mut found = false;
        self.sql.query(sql, params, &mut |row| {
            found = satisfies(row)?;
            Ok(!found)
        })?;
        Ok(found)
    }

    /// Whether a statement finds any row.
    pub(crate) fn exists(&self, sql: &str, params: Params<'_>) -> Result<bool> {
        self.any(sql, params, |_| Ok(true))
    }

    /// The defaults of settings in this database.
    pub(crate) fn default_settings(&self) -> Settings {
        match self.dialect() {
            Dialect::Sqlite => Settings::default(),
            Dialect::Postgres => Settings::default_on_server(),
        }
    }

    /// The effective settings, read once.
    pub(crate) fn settings(&self) -> Result<&Settings> {
        if let Some(settings) = self.settings.get() {
            return Ok(settings);
        }
        let settings = settings::load(self)?;
        Ok(self.settings.get_or_init(|| settings))
    }

    /// The hooks, read once, and only when an event occurs that could fire one.
    pub(crate) fn hooks(&self) -> Result<&[hooks::HookRow]> {
        if let Some(hooks) = self.hooks.get() {
            return Ok(hooks);
        }
        let hooks = hooks::load(self)?;
        Ok(self.hooks.get_or_init(|| hooks))
    }

    /// A job has become ready.
    pub(crate) fn note_ready(&mut self) {
        self.effects.wakes_workers = true;
    }

    /// How many jobs this transaction may still change.
    pub(crate) fn jobs_left(&self) -> usize {
        self.budget.div_ceil(JOB_COST)
    }

    /// Whether the budget is used up.
    pub(crate) fn is_spent(&self) -> bool {
        self.budget == 0
    }

    pub(crate) fn spend(&mut self, visits: usize) {
        self.budget = self.budget.saturating_sub(visits);
    }

    pub(crate) fn spend_job(&mut self) {
        self.spend(JOB_COST);
    }

    /// Some dependents are left to a later transaction; a worker must wake up for them.
    pub(crate) fn note_pending_unblocks(&mut self) {
        self.effects.has_pending_unblocks = true;
        self.note_ready();
    }

    /// The stored form of the end of a lease.
    pub(crate) fn lease_to_stored(&self, until: Timestamp) -> i64 {
        until.as_millis() - self.now.as_millis() + self.lease_now
    }

    /// The end of a lease from its stored form.
    pub(crate) fn lease_from_stored(&self, stored: i64) -> Timestamp {
        Timestamp::from_millis(stored - self.lease_now + self.now.as_millis())
    }

    pub(crate) fn lease_now(&self) -> i64 {
        self.lease_now
    }
}

/// A transaction's budget, unless a test has switched it off.
fn full_budget() -> usize {
    if guards::is_off(Guard::Portions) { usize::MAX } else { BUDGET }
}
