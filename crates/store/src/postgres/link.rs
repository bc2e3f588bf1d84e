//! The session of a store, opened again when it was lost.

use std::time::Duration;

use super::address::Pooler;
use super::session::migrate::Permission;
use super::session::{DEADLINE, IDLE_TIMEOUT, LOCK_TIMEOUT, Session};
use super::{Address, Target};
use crate::Result;
use domain::settings::Durability;

/// How long a writer waits for the gate, unless a lease demands less.
const PATIENCE: Duration = Duration::from_secs(30);
/// Even a worker with a very short lease waits this long for a slow writer.
const MIN_PATIENCE: Duration = Duration::from_millis(100);
/// A worker that waits for the store sends no heartbeat. It waits for this fraction of a lease at most.
const WAITS_PER_LEASE: u32 = 4;
/// The same for a session that stands still inside the gate.
const MIN_IDLE_TIMEOUT: Duration = Duration::from_millis(500);
/// However short the lease, an answer may take this long on a busy server, and opening a session that long.
const MIN_DEADLINE: Duration = Duration::from_millis(500);
const MIN_CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a person may wait for one statement of a report on a large queue.
const READ_DEADLINE: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(super) struct Link {
    address: Address,
    /// That of the address, unless a lease demands less.
    connect_timeout: Duration,
    target: Target,
    session: Option<Session>,
    durability: Durability,
    /// After how long the server ends a session that stands still inside the gate.
    idle_timeout: Duration,
    /// How long a writer waits for the gate.
    pub(super) patience: Duration,
    /// How long a statement waits for any other lock.
    lock_timeout: Duration,
    /// How long a writer waits for an answer.
    pub(super) deadline: Duration,
    /// The same for a reader.
    pub(super) read_deadline: Duration,
    /// After how long a reader whose session was lost does not try again.
    pub(super) read_patience: Duration,
    /// Whether it also writes to a schema of an earlier version.
    pub(super) writes_older: bool,
}

impl Link {
    pub(super) fn open(address: &Address, target: Target, permission: Permission) -> Result<Self> {
        let session = Session::open(address, target)?;
        session.prepare_schema(permission)?;
        Ok(Self {
            address: address.clone(),
            connect_timeout: address.connect_timeout,
            target,
            session: Some(session),
            durability: Durability::Normal,
            idle_timeout: IDLE_TIMEOUT,
            patience: PATIENCE,
            lock_timeout: LOCK_TIMEOUT,
            deadline: DEADLINE,
            read_deadline: READ_DEADLINE,
            read_patience: Duration::MAX,
            writes_older: false,
        })
    }

    pub(super) fn address(&self) -> &Address {
        &self.address
    }

    /// Whether a pooler is between, which the address need not say.
    pub(super) fn is_pooled(&self) -> bool {
        self.address.pooler == Pooler::Transaction || self.session.as_ref().is_some_and(Session::is_pooled)
    }

    /// The session, which is opened again if it is lost.
    pub(super) fn session(&mut self) -> Result<&Session> {
        if self.is_pooled() {
            self.address.pooler = Pooler::Transaction;
        }
        let session = match self.session.take().filter(|session| !session.is_broken()) {
            Some(session) => session,
            None => self.reopen()?,
        };
        Ok(self.session.insert(session))
    }

    /// The session in which a transaction has begun, even if it was lost since: another would be outside the transaction, and
    /// commit each statement by itself.
    pub(super) fn current(&self) -> &Session {
        self.session.as_ref().expect("a transaction has begun in it")
    }

    fn reopen(&self) -> Result<Session> {
        let session = Session::open(&self.address, self.target)?;
        session.prepare_schema(Permission::Nothing)?;
        session.set_durability(self.durability)?;
        session.set_idle_timeout(self.idle_timeout);
        session.set_deadline(self.deadline);
        session.set_lock_timeout(self.lock_timeout);
        Ok(session)
    }

    /// Sends statements without waiting for the answer, unless the session is lost.
    pub(super) fn tell(&self, sql: &str) {
        if let Some(session) = self.session.as_ref().filter(|session| !session.is_broken()) {
            session.tell(sql);
        }
    }

    /// Ends the session. The next call of [`Self::session`] opens another.
    pub(super) fn close(&mut self) {
        self.session = None;
    }

    /// Whether the session is lost. The next call of [`Self::session`] opens another.
    pub(super) fn is_broken(&self) -> bool {
        self.session.as_ref().is_none_or(Session::is_broken)
    }

    pub(super) fn set_durability(&mut self, durability: Durability) -> Result<()> {
        if self.durability != durability {
            self.session()?.set_durability(durability)?;
            self.durability = durability;
        }
        Ok(())
    }

    /// Bounds waits to what a worker with this lease can afford.
    pub(super) fn limit_waits(&mut self, lease: Duration) {
        let share = (lease / WAITS_PER_LEASE).max(MIN_PATIENCE);
        self.patience = share.min(PATIENCE);
        self.read_deadline = share.min(DEADLINE);
        self.deadline = share.clamp(MIN_DEADLINE, DEADLINE);
        if let Some(session) = &self.session {
            session.set_deadline(self.deadline);
        }
        self.address.connect_timeout = self.connect_timeout.min(share.max(MIN_CONNECT_TIMEOUT));
        self.limit_stops(lease);
    }

    /// Bounds waits for locks to this, and the others to what a worker would wait at most.
    pub(super) fn wait_at_most(&mut self, lock_timeout: Duration) {
        self.patience = lock_timeout;
        self.lock_timeout = lock_timeout.min(LOCK_TIMEOUT);
        self.read_deadline = DEADLINE;
        self.read_patience = DEADLINE;
        self.address.connect_timeout = self.connect_timeout.min(DEADLINE);
        if let Some(session) = &self.session {
            session.set_lock_timeout(self.lock_timeout);
        }
    }

    /// A process that stops or is cut off inside the gate keeps all workers from renewing their leases until the server ends
    /// its session. So it ends it before any of them has to end its commands.
    pub(super) fn limit_stops(&mut self, lease: Duration) {
        self.idle_timeout = (lease / WAITS_PER_LEASE).clamp(MIN_IDLE_TIMEOUT, IDLE_TIMEOUT);
        if let Some(session) = &self.session {
            session.set_idle_timeout(self.idle_timeout);
        }
    }
}
