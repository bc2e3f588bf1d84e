//! One transaction: the connection, the moment it takes place at, and what is written when it ends.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeMap;
use std::time::Duration;

use rusqlite::{CachedStatement, Connection};

use super::counters::Counters;
use super::environments::Known;
use super::open::Opened;
use super::{dependencies, hooks, news, rooms, settings, workers};
use crate::domain::retry_rules::RetryRules;
use crate::domain::settings::Settings;
use crate::domain::timestamp::Timestamp;
use crate::store::StoreError;
use crate::sys::clock::Clock;

/// How many dependents one transaction releases at most, so that a job with very many of them stalls nobody.
const DEPENDENTS_PER_TRANSACTION: usize = 1_000;

#[derive(Debug)]
pub(super) struct Tx<'c> {
    connection: &'c Connection,
    /// The environment that was asked for last, in this transaction or an earlier one.
    pub(super) last_environment: &'c RefCell<Option<Known>>,
    pub(super) now: Timestamp,
    /// The same moment on the lease clock.
    boot_millis: i64,
    pub(super) counters: RefCell<Counters>,
    settings: OnceCell<Settings>,
    /// Of the queues that were asked about.
    pub(super) retry_rules: RefCell<BTreeMap<i64, RetryRules>>,
    hooks: OnceCell<Vec<hooks::Known>>,
    /// Jobs that were finished here and whose dependents do not know it yet.
    finished: RefCell<Vec<Finished>>,
    dependents_left: Cell<usize>,
    /// Whether some were left to a later transaction.
    has_more_to_tell: Cell<bool>,
    /// Whether a job has become one that could run now.
    has_new_ready: Cell<bool>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Finished {
    pub(super) seq: i64,
    pub(super) failed: bool,
}

impl<'c> Tx<'c> {
    pub(super) fn new(opened: &'c Opened, clock: &dyn Clock) -> Self {
        Self {
            connection: &opened.connection,
            last_environment: &opened.last_environment,
            now: Timestamp::from_millis(clock.wall_millis()),
            boot_millis: clock.boot_millis(),
            counters: RefCell::default(),
            settings: OnceCell::new(),
            retry_rules: RefCell::default(),
            hooks: OnceCell::new(),
            finished: RefCell::default(),
            dependents_left: Cell::new(DEPENDENTS_PER_TRANSACTION),
            has_more_to_tell: Cell::new(false),
            has_new_ready: Cell::new(false),
        }
    }

    pub(super) fn prepare(&self, sql: &str) -> Result<CachedStatement<'c>, StoreError> {
        Ok(self.connection.prepare_cached(sql)?)
    }

    /// What is left to do before the commit.
    pub(super) fn finish(&self) -> Result<(), StoreError> {
        dependencies::release_finished(self)?;
        rooms::tell_of_room(self)?;
        news::dlq_changed(self)?;
        self.counters.take().write(self)
    }

    /// The settings in force, read once.
    pub(super) fn settings(&self) -> Result<&Settings, StoreError> {
        if let Some(settings) = self.settings.get() {
            return Ok(settings);
        }
        let settings = settings::load(self)?;
        Ok(self.settings.get_or_init(|| settings))
    }

    /// The hooks, read once, and only where something happens that there could be one for.
    pub(super) fn hooks(&self) -> Result<&[hooks::Known], StoreError> {
        if let Some(hooks) = self.hooks.get() {
            return Ok(hooks);
        }
        let hooks = hooks::known(self)?;
        Ok(self.hooks.get_or_init(|| hooks))
    }

    pub(super) fn note_ready(&self) {
        self.has_new_ready.set(true);
    }

    pub(super) fn has_new_ready(&self) -> bool {
        self.has_new_ready.get()
    }

    /// Whoever made jobs ready has also taken them: nobody need be told.
    pub(super) fn forget_ready(&self) {
        self.has_new_ready.set(false);
    }

    /// Whether there is something to do and somebody to do it. Asked inside the transaction: whoever registers later
    /// sees what was committed. Outside it would cost another one.
    pub(super) fn has_work_for_somebody(&self) -> Result<bool, StoreError> {
        Ok(self.has_new_ready.get() && workers::any_live(self.connection)?)
    }

    pub(super) fn note_finished(&self, finished: Finished) {
        self.finished.borrow_mut().push(finished);
    }

    pub(super) fn next_finished(&self) -> Option<Finished> {
        self.finished.borrow_mut().pop()
    }

    /// How many dependents this transaction may still release.
    pub(super) fn dependents_left(&self) -> usize {
        self.dependents_left.get()
    }

    pub(super) fn spend_dependent(&self) {
        self.dependents_left.set(self.dependents_left.get().saturating_sub(1));
    }

    /// There are dependents that a later transaction has to release: somebody must come for them.
    pub(super) fn note_more_to_tell(&self) {
        self.has_more_to_tell.set(true);
        self.note_ready();
    }

    pub(super) fn has_more_to_tell(&self) -> bool {
        self.has_more_to_tell.get()
    }

    /// The end of a lease, as it is stored.
    pub(super) fn lease_to_stored(&self, until: Timestamp) -> i64 {
        until.as_millis() - self.now.as_millis() + self.boot_millis
    }

    /// The end of a lease, as it is shown.
    pub(super) fn lease_from_stored(&self, stored: i64) -> Timestamp {
        Timestamp::from_millis(stored - self.boot_millis + self.now.as_millis())
    }

    pub(super) fn lease_now(&self) -> i64 {
        self.boot_millis
    }
}

/// Durations are stored as whole milliseconds.
pub(super) fn millis(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}

pub(super) fn from_millis(millis: i64) -> Duration {
    Duration::from_millis(u64::try_from(millis).unwrap_or(0))
}
