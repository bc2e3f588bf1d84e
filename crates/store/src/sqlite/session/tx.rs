//! One transaction: the connection, the moment it takes place at, and what is written when it ends.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeMap;
use std::time::Duration;

use rusqlite::{CachedStatement, Connection};

use super::open::Opened;
use crate::StoreError;
use crate::sqlite::jobs::dependencies;
use crate::sqlite::jobs::environments::Known;
use crate::sqlite::tables::counters::Counters;
use crate::sqlite::tables::{hooks, outbox, settings, workers};
use crate::sqlite::verbs::retry::Followed;
use crate::sqlite::views::capacity;
use domain::job::retry_rules::RetryRules;
use domain::settings::Settings;
use domain::values::name::JobId;
use domain::values::timestamp::Timestamp;
use sys::clock::Clock;
use sys::guards;
use sys::guards::Guard;

/// How much one transaction does of a change that can be cut into portions, so that other writers wait only a moment. The
/// unit is a look at one row: at a job that another depends on, or at the link between the two.
const PORTION: usize = 4_000;
/// What it costs to change a job, in the same unit: its row, its indexes, its place and its events.
const JOB: usize = 4;

#[derive(Debug)]
pub(crate) struct Tx<'c> {
    connection: &'c Connection,
    /// The environment that was asked for last, in this transaction or an earlier one.
    pub(crate) last_environment: &'c RefCell<Option<Known>>,
    pub(crate) now: Timestamp,
    /// The same moment on the lease clock.
    awake_millis: i64,
    pub(crate) counters: RefCell<Counters>,
    settings: OnceCell<Settings>,
    /// Of the queues that were asked about.
    pub(crate) retry_rules: RefCell<BTreeMap<i64, RetryRules>>,
    hooks: OnceCell<Vec<hooks::Known>>,
    /// Jobs that were finished here and whose dependents do not know it yet.
    finished: RefCell<Vec<Finished>>,
    /// What is left of this transaction's portion.
    left: Cell<usize>,
    /// What was seen in search of cycles.
    pub(crate) followed: RefCell<Followed>,
    /// Whether some were left to a later transaction.
    has_more_to_tell: Cell<bool>,
    /// Jobs that were cancelled because one that they depend on ended badly.
    dependents: RefCell<Vec<Dependent>>,
    /// Whether a job has become one that could run now.
    has_new_ready: Cell<bool>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Finished {
    pub(crate) seq: i64,
    pub(crate) failed: bool,
}

/// A job that was cancelled because of another.
#[derive(Clone, Debug)]
pub(crate) struct Dependent {
    pub(crate) seq: i64,
    pub(crate) id: JobId,
    pub(crate) parent_seq: i64,
}

impl<'c> Tx<'c> {
    pub(crate) fn new(opened: &'c Opened, clock: &dyn Clock) -> Self {
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
            left: Cell::new(portion()),
            followed: RefCell::default(),
            has_more_to_tell: Cell::new(false),
            dependents: RefCell::default(),
            has_new_ready: Cell::new(false),
        }
    }

    pub(crate) fn prepare(&self, sql: &str) -> Result<CachedStatement<'c>, StoreError> {
        Ok(self.connection.prepare_cached(sql)?)
    }

    /// What is left to do before the commit.
    pub(crate) fn finish(&self) -> Result<(), StoreError> {
        // Those that were changed had their portion; their dependents have one of their own.
        self.left.set(portion());
        dependencies::release_finished(self)?;
        capacity::tell_of_room(self)?;
        outbox::dlq_changed(self)?;
        self.counters.take().write(self)
    }

    /// The settings in force, read once.
    pub(crate) fn settings(&self) -> Result<&Settings, StoreError> {
        if let Some(settings) = self.settings.get() {
            return Ok(settings);
        }
        let settings = settings::load(self)?;
        Ok(self.settings.get_or_init(|| settings))
    }

    /// The hooks, read once, and only where something happens that there could be one for.
    pub(crate) fn hooks(&self) -> Result<&[hooks::Known], StoreError> {
        if let Some(hooks) = self.hooks.get() {
            return Ok(hooks);
        }
        let hooks = hooks::known(self)?;
        Ok(self.hooks.get_or_init(|| hooks))
    }

    pub(crate) fn note_ready(&self) {
        self.has_new_ready.set(true);
    }

    pub(crate) fn has_new_ready(&self) -> bool {
        self.has_new_ready.get()
    }

    /// Whoever made jobs ready has also taken them: nobody need be told.
    pub(crate) fn forget_ready(&self) {
        self.has_new_ready.set(false);
    }

    /// Whether there is something to do and somebody to do it. Asked inside the transaction: whoever registers later
    /// sees what was committed. Outside it would cost another one.
    pub(crate) fn has_work_for_somebody(&self) -> Result<bool, StoreError> {
        Ok(self.has_new_ready.get() && workers::any_live(self.connection)?)
    }

    pub(crate) fn note_finished(&self, finished: Finished) {
        self.finished.borrow_mut().push(finished);
    }

    pub(crate) fn next_finished(&self) -> Option<Finished> {
        self.finished.borrow_mut().pop()
    }

    /// How many jobs this transaction may still change.
    pub(crate) fn jobs_left(&self) -> usize {
        self.left.get().div_ceil(JOB)
    }

    /// Whether the rest is for a later transaction.
    pub(crate) fn is_spent(&self) -> bool {
        self.left.get() == 0
    }

    pub(crate) fn spend(&self, looks: usize) {
        self.left.set(self.left.get().saturating_sub(looks));
    }

    pub(crate) fn spend_job(&self) {
        self.spend(JOB);
    }

    /// There are dependents that a later transaction has to release: somebody must come for them.
    pub(crate) fn note_more_to_tell(&self) {
        self.has_more_to_tell.set(true);
        self.note_ready();
    }

    pub(crate) fn note_dependent(&self, dependent: Dependent) {
        self.dependents.borrow_mut().push(dependent);
    }

    pub(crate) fn take_dependents(&self) -> Vec<Dependent> {
        self.dependents.take()
    }

    pub(crate) fn has_more_to_tell(&self) -> bool {
        self.has_more_to_tell.get()
    }

    /// The end of a lease, as it is stored.
    pub(crate) fn lease_to_stored(&self, until: Timestamp) -> i64 {
        until.as_millis() - self.now.as_millis() + self.awake_millis
    }

    /// The end of a lease, as it is shown.
    pub(crate) fn lease_from_stored(&self, stored: i64) -> Timestamp {
        Timestamp::from_millis(stored - self.awake_millis + self.now.as_millis())
    }

    pub(crate) fn lease_now(&self) -> i64 {
        self.awake_millis
    }
}

/// What a transaction may do at most, unless a test has taken the bound away.
fn portion() -> usize {
    if guards::is_off(Guard::Portions) { usize::MAX } else { PORTION }
}

/// Durations are stored as whole milliseconds.
pub(crate) fn millis(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}

pub(crate) fn from_millis(millis: i64) -> Duration {
    Duration::from_millis(u64::try_from(millis).unwrap_or(0))
}
