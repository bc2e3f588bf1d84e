//! One session with a server: a client, and the runtime of one thread that carries it. A caller waits for each answer, and
//! no longer than a deadline.

pub(super) mod error;
pub(super) mod flight;
pub(super) mod migrate;
mod parameters;
mod settings;
mod statement;
mod value;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row, SimpleQueryMessage};

use self::error::Failure;
use self::flight::{Flown, Request, Usage};
use self::statement::Prepared;
use super::address::Pooler;
use super::connect::Server;
pub(super) use super::identifier::quoted;
use super::{Address, ConnectOptions, ConnectProblem, Connected, Target, connect};
use crate::rows::jobs::environments;
use crate::{Result, StoreError};
use domain::settings::Durability;

/// How long a caller waits for the answer to one request, unless a lease demands less.
pub(super) const DEADLINE: Duration = Duration::from_secs(6);
/// The server gives up this much before the caller does, so that the caller learns what became of its statement.
const MARGIN: Duration = Duration::from_secs(1);
const STATEMENT_TIMEOUT: Duration = DEADLINE.saturating_sub(MARGIN);
/// How long a statement waits for a lock, except for that on the gate, unless its caller waits for less.
pub(super) const LOCK_TIMEOUT: Duration = Duration::from_secs(3);
/// The server ends a session that has stopped in the middle of a transaction, because others wait for it.
pub(super) const IDLE_TIMEOUT: Duration = Duration::from_secs(3);
/// How long the gate is waited for at a time. In between, others may pass.
const GATE_TIMEOUT: Duration = Duration::from_millis(100);

/// A prepared statement is unknown, or known already: the server's session is not the one that prepared it.
const OF_POOLERS: [SqlState; 2] = [SqlState::INVALID_SQL_STATEMENT_NAME, SqlState::DUPLICATE_PSTATEMENT];

/// The time of the server in milliseconds.
pub(super) const CLOCK: &str = "select cast(extract(epoch from clock_timestamp()) * 1000 as bigint)";

pub(super) struct Session {
    runtime: Runtime,
    client: Client,
    pub(super) server: Server,
    pub(super) schema: String,
    statements: RefCell<HashMap<String, Prepared>>,
    /// See [`Self::is_pooled`].
    is_pooled: Cell<bool>,
    /// Whether transactions only read unless they say otherwise, as far as it is known.
    is_read_only: Cell<bool>,
    durability: Cell<Durability>,
    /// The statements of flights.
    repeated: RefCell<HashMap<String, Usage>>,
    health: Cell<Health>,
    deadline: Cell<Duration>,
    /// How long a statement waits for a lock, except for that on the gate.
    lock_timeout: Cell<Duration>,
    /// Asked for when it is first needed.
    can_compare_environments: Cell<Option<bool>>,
    idle_timeout: Cell<Duration>,
    /// The version of the schema, and the number of its gate.
    version: Cell<i64>,
    gate: Cell<i64>,
    /// How many cursors there were: each has a name of its own.
    cursors: Cell<u64>,
}

/// What the last failure means for the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Health {
    Fit,
    /// A statement failed: the transaction can only be rolled back.
    Aborted,
    /// The same, because of a concurrent transaction: it may succeed if it is repeated.
    Conflict,
    /// The session is lost, and a transaction in it with it.
    Broken,
}

impl Session {
    /// A pooler that is not named as one is noticed: it refuses the settings of a session, or ignores them, or it gives a
    /// transaction to another session than the one in which a statement was prepared.
    pub(super) fn open(address: &Address, target: Target) -> Result<Self> {
        let runtime = Builder::new_current_thread().enable_io().enable_time().build();
        let runtime = runtime.map_err(StoreError::unavailable)?;
        let open = |session_settings: String| {
            let options = ConnectOptions { target, session_settings };
            runtime.block_on(connect(address, &options)).map_err(Box::new)
        };
        let (connected, is_pooled) = match address.pooler {
            Pooler::Transaction => (open(String::new()), true),
            Pooler::None => match open(settings::of_session(&address.schema)) {
                Err(error) if matches!(error.problem, ConnectProblem::RefusedSettings(_)) => {
                    (open(String::new()), true)
                }
                connected @ (Ok(_) | Err(_)) => (connected, false),
            },
        };
        let Connected { client, connection, server, .. } = connected?;
        runtime.spawn(connection);
        Ok(Self {
            runtime,
            client,
            server,
            schema: address.schema.clone(),
            statements: RefCell::default(),
            is_pooled: Cell::new(is_pooled),
            is_read_only: Cell::new(false),
            durability: Cell::new(Durability::Normal),
            repeated: RefCell::default(),
            health: Cell::new(Health::Fit),
            deadline: Cell::new(DEADLINE),
            lock_timeout: Cell::new(LOCK_TIMEOUT),
            can_compare_environments: Cell::default(),
            idle_timeout: Cell::new(IDLE_TIMEOUT),
            version: Cell::new(migrate::newest_version()),
            gate: Cell::new(migrate::newest_gate()),
            cursors: Cell::new(0),
        })
    }

    pub(super) fn health(&self) -> Health {
        if self.client.is_closed() { Health::Broken } else { self.health.get() }
    }

    pub(super) fn is_broken(&self) -> bool {
        self.health() == Health::Broken
    }

    /// Whether each transaction may run in another session of the server. Then nothing of a session is relied on: statements
    /// have no names, and transactions begin with the settings.
    pub(super) fn is_pooled(&self) -> bool {
        self.is_pooled.get()
    }

    fn notice_pooler(&self) {
        self.is_pooled.set(true);
        self.statements.borrow_mut().clear();
        self.repeated.borrow_mut().clear();
    }

    /// The settings of a transaction, unless the session has them.
    fn local_settings(&self) -> String {
        if !self.is_pooled() {
            return String::new();
        }
        let durability = match self.durability.get() {
            Durability::Normal => String::new(),
            Durability::Full => format!("{}; ", wait_for_disk("true")),
        };
        settings::of_transaction(&self.schema) + &durability
    }

    /// Full durability needs commits that wait for the disk. How many disks they wait for is the server's business, and so
    /// is the durability otherwise.
    pub(super) fn set_durability(&self, durability: Durability) -> Result<(), Failure> {
        self.durability.set(durability);
        if self.is_pooled() {
            return Ok(());
        }
        match durability {
            Durability::Normal => self.batch("reset synchronous_commit"),
            Durability::Full => self.batch(&wait_for_disk("false")),
        }
        .map(drop)
    }

    /// After how long the server ends this session if it stands still inside the gate.
    pub(super) fn set_idle_timeout(&self, timeout: Duration) {
        self.idle_timeout.set(timeout);
    }

    fn idle_setting(&self) -> String {
        match self.idle_timeout.get() {
            IDLE_TIMEOUT => String::new(),
            timeout => format!("set local idle_in_transaction_session_timeout = {};", timeout.as_millis()),
        }
    }

    pub(super) fn set_deadline(&self, deadline: Duration) {
        self.deadline.set(deadline);
    }

    /// Shorter than the deadline, so that the caller learns what it has waited for.
    fn lock_timeout(&self) -> Duration {
        self.lock_timeout.get().min(self.deadline.get() / 2)
    }

    pub(super) fn set_lock_timeout(&self, timeout: Duration) {
        self.lock_timeout.set(timeout);
    }

    /// Waits for the answer to a request.
    fn wait<T>(&self, request: impl Future<Output = Result<T, tokio_postgres::Error>>) -> Result<T, Failure> {
        let deadline = self.deadline.get();
        let answer = self.runtime.block_on(async { tokio::time::timeout(deadline, request).await });
        let failure = match answer {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(error)) => Failure::Driver { error, lock_timeout: self.lock_timeout() },
            Err(_) => Failure::TimedOut(deadline),
        };
        if failure.code().is_some_and(|code| OF_POOLERS.contains(code)) {
            self.notice_pooler();
        }
        // A lost session stays lost, whatever its last answers say.
        if self.health.get() != Health::Broken {
            self.health.set(failure.health());
        }
        Err(failure)
    }

    /// The only row of a statement that needs no settings and is not prepared for later.
    pub(super) fn one_row(
        &self,
        sql: &str,
        parameters: &[(&(dyn ToSql + Sync), Type)],
    ) -> Result<Row, Failure> {
        self.wait(self.client.query_typed_one(sql, parameters))
    }

    /// Runs statements without parameters in one request, and returns the last column of the last row, if there is any.
    pub(super) fn batch(&self, sql: &str) -> Result<Option<String>, Failure> {
        let messages = self.wait(self.client.simple_query(sql))?;
        Ok(last_value(&messages))
    }

    /// Runs statements without parameters as a transaction.
    pub(super) fn transact(&self, sql: &str) -> Result<(), Failure> {
        self.batch(&(self.local_settings() + sql)).map(drop)
    }

    /// The same without waiting for the answer. A pooler would end a session of the server whose client does not wait.
    pub(super) fn tell(&self, sql: &str) {
        if self.is_pooled() {
            let _ = self.transact(sql);
            return;
        }
        self.runtime.block_on(async {
            let mut request = pin!(self.client.simple_query(sql));
            poll_fn(|context| {
                let _ = request.as_mut().poll(context);
                Poll::Ready(())
            })
            .await;
            // Meanwhile the connection writes it to the socket.
            tokio::task::yield_now().await;
        });
    }

    /// Begins a transaction on one snapshot, and returns the server's time.
    pub(super) fn begin_read(&self) -> Result<ServerTime, Failure> {
        let timeout = match self.deadline.get().saturating_sub(MARGIN).max(MARGIN) {
            STATEMENT_TIMEOUT => String::new(),
            timeout => format!("set local statement_timeout = {};", timeout.as_millis()),
        };
        let lock_timeout = match self.lock_timeout() {
            LOCK_TIMEOUT => String::new(),
            timeout => format!("set local lock_timeout = {};", timeout.as_millis()),
        };
        let views = self.views();
        let mode = if views.is_empty() { "read only" } else { "read write" };
        self.begin(&format!(
            "begin isolation level repeatable read {mode}; {} {lock_timeout} {views} {timeout} {CLOCK}",
            self.local_settings(),
        ))
    }

    /// Begins a transaction in the gate, and returns the server's time in it.
    pub(super) fn begin_write(&self, passage: Passage) -> Result<ServerTime, Failure> {
        self.begin(&self.pass_gate(passage, GATE_TIMEOUT))
    }

    /// The same for statements that may only use indexes, with a patience of its own.
    pub(super) fn begin_alone(&self, patience: Duration) -> Result<ServerTime, Failure> {
        let began = self.begin(&self.pass_gate(Passage::Alone, patience))?;
        self.batch(PLANS)?;
        Ok(began)
    }

    /// Asks in a transaction of its own, outside the gate.
    pub(super) fn ask(&self, request: Request<'_>) -> Result<Flown, Failure> {
        self.fly(Some(&format!("begin; {}", self.local_settings())), &[request], Some("commit"))
    }

    /// Begins a transaction in the gate together with others, and asks these questions in it. Returns the server's time.
    pub(super) fn begin_together(&self, requests: &[Request<'_>]) -> Result<(ServerTime, Flown), Failure> {
        self.health.set(Health::Fit);
        let asked = Instant::now();
        let opening = self.pass_gate(Passage::Together, GATE_TIMEOUT);
        let mut flown = self.fly(Some(&opening), requests, None)?;
        Ok((ServerTime { asked, millis: millis(flown.opening.take()) }, flown))
    }

    fn pass_gate(&self, passage: Passage, patience: Duration) -> String {
        let gate = self.gate();
        let (mode, settings) = match passage {
            Passage::Alone => ("share row exclusive", ""),
            Passage::Together => ("row exclusive", PLANS),
        };
        let deadline = self.deadline.get();
        let lock_timeout = self.lock_timeout().as_millis();
        let gate_timeout = patience.min(deadline / 2).as_millis();
        let statement_timeout = if deadline < DEADLINE {
            format!("set local statement_timeout = {};", (deadline * 5 / 6).as_millis())
        } else {
            String::new()
        };
        format!(
            "begin; {} {} {statement_timeout} set local lock_timeout = {gate_timeout}; lock table {gate} in {mode} mode;
             set local lock_timeout = {lock_timeout}; {settings}; {CLOCK}",
            self.local_settings(),
            self.idle_setting(),
        )
    }

    fn begin(&self, sql: &str) -> Result<ServerTime, Failure> {
        self.health.set(Health::Fit);
        let asked = Instant::now();
        let millis = millis(self.batch(sql)?);
        Ok(ServerTime { asked, millis })
    }

    pub(super) fn commit(&self) -> Result<(), Failure> {
        self.batch("commit").map(drop)
    }

    /// Whether the role may read environments.
    pub(super) fn can_compare_environments(&self) -> Result<bool> {
        if let Some(known) = self.can_compare_environments.get() {
            return Ok(known);
        }
        let can_compare =
            self.batch(&(self.local_settings() + environments::CAN_COMPARE))?.as_deref() == Some("t");
        self.can_compare_environments.set(Some(can_compare));
        Ok(can_compare)
    }

    /// A failure leaves the session broken, which ends the transaction too.
    pub(super) fn roll_back(&self) {
        if !self.is_broken() && self.batch("rollback").is_err() {
            self.health.set(Health::Broken);
        }
    }
}

/// The server's time at the beginning of a transaction.
#[derive(Clone, Copy, Debug)]
pub(super) struct ServerTime {
    /// Before the request was sent: the latest moment on this machine's clock that is surely not after the server's time.
    pub(super) asked: Instant,
    pub(super) millis: i64,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("schema", &self.schema)
            .field("health", &self.health)
            .finish_non_exhaustive()
    }
}

fn wait_for_disk(is_local: &str) -> String {
    format!(
        "select set_config('synchronous_commit', 'on', {is_local}) where current_setting('synchronous_commit') = 'off'"
    )
}

/// Plans of statements that run together are kept while their tables grow. One that was made for an empty table must not
/// read all of a full one, so rows are only found by an index.
const PLANS: &str =
    "set local enable_seqscan = off; set local enable_hashjoin = off; set local enable_mergejoin = off";

/// How a transaction passes the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Passage {
    Alone,
    Together,
}

fn millis(text: Option<String>) -> i64 {
    text.and_then(|text| text.parse().ok()).unwrap_or_default()
}

/// The last column of the last row, if there is any.
pub(super) fn last_value(messages: &[SimpleQueryMessage]) -> Option<String> {
    let value = |message: &SimpleQueryMessage| {
        let SimpleQueryMessage::Row(row) = message else {
            return None;
        };
        row.get(row.len().checked_sub(1)?).map(str::to_owned)
    };
    messages.iter().filter_map(value).next_back()
}
