//! [`Store`] on PostgreSQL.

mod together;
mod waking;

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tokio_postgres::error::SqlState;

use super::grant;
use super::lane::enqueue;
use super::link::Link;
use super::report::LAGGING_STANDBYS;
use super::session::error::Failure;
use super::session::migrate::{Permission, is_missing, newest_version};
use super::session::{DEADLINE, Health, Passage, ServerTime, Session, quoted};
use super::wake::{Hearing, ReadyJobs, Sender};
use super::{Address, Target};
use crate::rows::jobs::environments::CachedEnvironment;
use crate::rows::tables::workers;
use crate::rows::transaction::{ReadWork, Verdict, WriteWork};
use crate::rows::tx::{Effects, Tx};
use crate::rows::verbs::exchange;
use crate::rows::views::orders;
use crate::rows::{Sql, params};
use crate::{
    Exchange, ExchangeResult, HistoryCache, HotVerb, NewWorker, Notice, Orders, Pace, Result, Store,
    StoreError, StoreVersion, Wake,
};
use domain::settings::{Durability, Settings};
use domain::values::name::WorkerId;
use domain::values::timestamp::Timestamp;
use sys::clock::{self, Clock};
use sys::failpoint;
use sys::host::reached_folder;
use sys::process::Holder;

/// How often a verb runs that other transactions make fail.
const MAX_TRIES: u32 = 3;
/// The pause before the gate is asked for again, in milliseconds: random, so that writers do not meet again.
const GATE_PAUSE: std::ops::Range<u64> = 20..100;

#[derive(Debug)]
pub struct PostgresStore {
    opened: Mutex<Opened>,
    /// The clock of a test. Without it the server's time counts, for leases too.
    clock: Option<Arc<dyn Clock>>,
    /// The server's time minus that of this machine since boot, in milliseconds, as of the last transaction.
    server_offset: AtomicI64,
    /// The listener of the worker that uses this store.
    hearing: Mutex<Option<Arc<Hearing>>>,
    history_cache: Arc<HistoryCache>,
}

#[derive(Debug)]
struct Opened {
    link: Link,
    last_environment: RefCell<Option<CachedEnvironment>>,
    sender: Sender,
    /// When this process looks again whether floors have to be raised.
    floors_due: Instant,
    /// Jobs were claimed since it looked.
    has_claimed: bool,
}

impl PostgresStore {
    /// Opens the queue in this schema. A schema that is missing or empty becomes a queue.
    pub fn open(address: &Address, clock: Option<Arc<dyn Clock>>) -> Result<Self> {
        let store = Self::with_link(Link::open(address, Target::Primary, Permission::Create)?, clock);
        store.adopt_settings()?;
        Ok(store)
    }

    /// Opens a queue that exists. A schema without one is [`StoreError::NotAStore`]. A standby is used if there is no
    /// primary: it can be read, and refuses writes.
    pub fn open_existing(address: &Address, clock: Option<Arc<dyn Clock>>) -> Result<Self> {
        let store = Self::with_link(open_link(address)?, clock);
        store.adopt_settings()?;
        Ok(store)
    }

    /// As [`Self::open_existing`], for a caller that waits no longer than this for a lock; see [`Store::wait_at_most`].
    pub fn open_existing_within(address: &Address, lock_timeout: Duration) -> Result<Self> {
        let mut address = address.clone();
        address.connect_timeout = address.connect_timeout.min(DEADLINE);
        let store = Self::with_link(open_link(&address)?, None);
        store.wait_at_most(lock_timeout)?;
        store.adopt_settings()?;
        Ok(store)
    }

    /// Opens the queue to read it, from a standby too. Nothing is created, and writes are refused there.
    pub fn open_read_only(address: &Address, clock: Option<Arc<dyn Clock>>) -> Result<Self> {
        let store = Self::with_link(Link::open(address, Target::Any, Permission::Nothing)?, clock);
        // Every later time follows from the first.
        store.shared().view(|_| Ok(()))?;
        Ok(store)
    }

    /// Brings the queue in this schema up to date, or creates it. Returns the version of its schema.
    pub fn migrate(address: &Address) -> Result<i64> {
        Link::open(address, Target::Primary, Permission::Migrate)?;
        Ok(newest_version())
    }

    /// Opens a queue whose schema may be of an earlier version, only to stop the workers of that version.
    pub fn open_to_stop_workers(address: &Address) -> Result<Self> {
        let mut link = Link::open(address, Target::Primary, Permission::Nothing)?;
        link.writes_older = true;
        let store = Self::with_link(link, None);
        store.adopt_settings()?;
        Ok(store)
    }

    /// Deletes the schema with all that is in it.
    pub fn destroy(address: &Address) -> Result<()> {
        let session = Session::open(address, Target::Primary)?;
        session.batch(&format!("drop schema if exists {} cascade", quoted(&address.schema)))?;
        Ok(())
    }

    fn with_link(link: Link, clock: Option<Arc<dyn Clock>>) -> Self {
        let opened = Opened {
            link,
            last_environment: RefCell::default(),
            sender: Sender::default(),
            floors_due: Instant::now(),
            has_claimed: false,
        };
        Self {
            opened: Mutex::new(opened),
            clock,
            server_offset: AtomicI64::new(0),
            hearing: Mutex::default(),
            history_cache: Arc::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Opened> {
        // After a panic the transaction was rolled back while unwinding.
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The verbs that every store shares.
    fn shared(&self) -> &dyn Store {
        self
    }

    /// A transaction that the server began at this time.
    fn tx<'c>(
        &self,
        sql: &'c dyn Sql,
        last_environment: &'c RefCell<Option<CachedEnvironment>>,
        time: ServerTime,
    ) -> Tx<'c> {
        let (now, lease_now) = self.times(time);
        Tx::new(sql, last_environment, time.asked, now, lease_now)
    }

    /// The time of a transaction that the server began at this time, and the same on the lease clock.
    fn times(&self, time: ServerTime) -> (Timestamp, i64) {
        self.server_offset.store(time.millis - clock::millis_since_boot(), Ordering::Relaxed);
        let (now, lease_now) = match &self.clock {
            Some(clock) => (clock.wall_millis(), clock.awake_millis()),
            None => (time.millis, time.millis),
        };
        (Timestamp::from_millis(now), lease_now)
    }

    fn snapshot(&self, opened: &mut Opened, work: &mut ReadWork<'_>) -> Result<()> {
        let (read_deadline, deadline) = (opened.link.read_deadline, opened.link.deadline);
        let session = opened.link.session()?;
        session.set_deadline(read_deadline);
        let result = (|| {
            session.recheck_version()?;
            let time = session.begin_read().map_err(|failure| unreadable(session, failure))?;
            let _transaction = Transaction(session);
            work(&mut self.tx(session, &opened.last_environment, time))
        })();
        session.set_deadline(deadline);
        result
    }

    /// Enters the gate. A session that was lost while it was idle is opened again.
    fn enter<T>(link: &mut Link, begin: impl Fn(&Session) -> Result<T, Failure>) -> Result<(&Session, T)> {
        let (start, patience) = (Instant::now(), link.patience);
        if !link.writes_older {
            let session = link.session()?;
            session.recheck_version()?;
            session.refuse_older()?;
        }
        let mut may_reopen = true;
        loop {
            let failure = match begin(link.session()?) {
                Ok(answer) => return Ok((link.current(), answer)),
                Err(failure) => failure,
            };
            if link.is_broken() {
                // A server that does not answer would not do so in another session either.
                let is_silent = matches!(failure, Failure::TimedOut(_));
                if is_silent || !std::mem::replace(&mut may_reopen, false) {
                    return Err(failure.into());
                }
                continue;
            }
            let session = link.session()?;
            session.roll_back();
            if is_missing(&failure) {
                // A newer program has renamed the gate.
                session.prepare_schema(Permission::Nothing)?;
            }
            let is_conflict = failure.health() == Health::Conflict;
            let may_repeat = is_conflict || failure.code() == Some(&SqlState::LOCK_NOT_AVAILABLE);
            let is_late = start.elapsed() >= patience;
            if !may_repeat || (is_conflict && is_late) {
                return Err(failure.into());
            }
            if is_late {
                return Err(StoreError::Busy { waited: patience, holder: None });
            }
            pause(GATE_PAUSE);
        }
    }

    /// One turn, together with others if it can be.
    fn one_turn(&self, exchange: &Exchange<'_>) -> Result<ExchangeResult> {
        if let Some(exchanged) = self.exchange_together(exchange)? {
            return Ok(exchanged);
        }
        loop {
            // A store with a registered worker does not move, so the mark need not be read.
            let exchanged = self.shared().transact_anyway("exchange", |tx| exchange::exchange(tx, exchange));
            if let Some(exchanged) = exchanged? {
                return Ok(exchanged);
            }
        }
    }

    /// Runs a verb row by row, and repeats it if other transactions make it fail.
    fn write_rows(
        &self,
        opened: &mut Opened,
        passage: Passage,
        verb: &str,
        work: &mut WriteWork<'_>,
    ) -> Result<Effects> {
        let mut tries = 1;
        loop {
            match self.commit(opened, passage, verb, work)? {
                Try::Done(effects) => return Ok(effects),
                Try::Refused => return Ok(Effects::default()),
                Try::Conflict(Some(error)) if tries == MAX_TRIES => return Err(error),
                Try::Conflict(None) if tries == MAX_TRIES => return Ok(Effects::default()),
                Try::Conflict(_) => pause(GATE_PAUSE),
            }
            tries += 1;
        }
    }

    /// One try of a verb.
    fn commit(
        &self,
        opened: &mut Opened,
        passage: Passage,
        verb: &str,
        work: &mut WriteWork<'_>,
    ) -> Result<Try> {
        let (session, time) = Self::enter(&mut opened.link, |session| session.begin_write(passage))?;
        let transaction = Transaction(session);
        let mut tx = self.tx(session, &opened.last_environment, time);
        tx.shard = match passage {
            Passage::Alone => 0,
            Passage::Together => enqueue::shard(),
        };
        let effects = match work(&mut tx) {
            Ok(Verdict::Commit) => tx.finish(),
            Ok(Verdict::RollBack) => return Ok(Try::of_refused(session.health())),
            Err(error) => Err(error),
        };
        let effects = match (effects, session.health()) {
            (Ok(effects), Health::Fit) => effects,
            (Ok(_), Health::Aborted | Health::Conflict | Health::Broken) => {
                let source = "a statement failed, and the verb ignored that".into();
                return Err(StoreError::Unavailable { source });
            }
            (Err(error), Health::Conflict) => return Ok(Try::Conflict(Some(error))),
            (Err(error), _) => return Err(error),
        };
        failpoint::hit(format_args!("{verb}.before_commit"));
        transaction.commit()?;
        failpoint::hit(format_args!("{verb}.after_commit"));
        Ok(Try::Done(effects))
    }
}

/// The primary, or a standby if there is none.
fn open_link(address: &Address) -> Result<Link> {
    match Link::open(address, Target::Primary, Permission::Nothing) {
        Err(StoreError::Unreachable(error)) if error.is_standby() => {
            Link::open(address, Target::Any, Permission::Nothing)
        }
        link => link,
    }
}

/// The result of one try of a verb.
enum Try {
    Done(Effects),
    /// Nothing changed, and the answer of the verb says why.
    Refused,
    /// Nothing changed, because of another transaction. Without an error the answer of the verb has it.
    Conflict(Option<StoreError>),
}

impl Try {
    fn of_refused(health: Health) -> Self {
        match health {
            Health::Conflict => Self::Conflict(None),
            Health::Fit | Health::Aborted | Health::Broken => Self::Refused,
        }
    }
}

/// A transaction that is rolled back unless it was committed.
struct Transaction<'s>(&'s Session);

impl Transaction<'_> {
    fn commit(self) -> Result<()> {
        let session = self.0;
        std::mem::forget(self);
        session.commit().map_err(Failure::of_commit)
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        self.0.roll_back();
    }
}

/// Why a schema cannot be read. Views that make an earlier version readable are refused by a standby, and to a role without
/// the right to create temporary objects.
fn unreadable(session: &Session, failure: Failure) -> StoreError {
    session.roll_back();
    let is_refused = failure.code().is_some_and(|code| {
        [SqlState::READ_ONLY_SQL_TRANSACTION, SqlState::INSUFFICIENT_PRIVILEGE].contains(code)
    });
    let refusal = session.refuse_older().err().filter(|_| is_refused);
    refusal.unwrap_or_else(|| failure.into())
}

fn pause(millis: std::ops::Range<u64>) {
    thread::sleep(Duration::from_millis(fastrand::u64(millis)));
}

impl Store for PostgresStore {
    /// Costs no question to the server.
    fn now(&self) -> Result<Timestamp> {
        let millis = match &self.clock {
            Some(clock) => clock.wall_millis(),
            None => clock::millis_since_boot() + self.server_offset.load(Ordering::Relaxed),
        };
        Ok(Timestamp::from_millis(millis))
    }

    /// A snapshot that was lost with its session, or that a standby could not keep, is taken again.
    fn read(&self, work: &mut ReadWork<'_>) -> Result<()> {
        let (mut opened, start) = (self.lock(), Instant::now());
        let mut tries = 1;
        loop {
            let result = self.snapshot(&mut opened, work);
            let may_repeat = opened.link.is_broken() || opened.link.session()?.health() == Health::Conflict;
            let is_late = start.elapsed() >= opened.link.read_patience;
            if result.is_ok() || !may_repeat || is_late || tries == MAX_TRIES {
                return result;
            }
            tries += 1;
        }
    }

    fn write(&self, verb: &str, work: &mut WriteWork<'_>) -> Result<Effects> {
        let effects = self.write_rows(&mut self.lock(), Passage::Alone, verb, work)?;
        self.wake_worker(effects.wakes_workers);
        Ok(effects)
    }

    /// A commit is visible only when it is safe, unless the server is set up otherwise.
    fn secure_reads(&self) -> Result<()> {
        Ok(())
    }

    fn listen(&self, worker: &NewWorker) -> Result<Box<dyn Wake>> {
        self.listen_for(worker)
    }

    fn write_together(&self, verb: HotVerb<'_>, work: &mut WriteWork<'_>) -> Result<Option<Effects>> {
        match verb {
            HotVerb::Enqueue(jobs) => {
                let effects = self.enqueue_together(jobs, work)?;
                self.wake_worker_for(effects.wakes_workers, &ReadyJobs::of(jobs));
                Ok(Some(effects))
            }
            HotVerb::Extend(worker) => {
                let effects = self.extend_together(worker, work)?;
                self.wake_worker(effects.as_ref().is_some_and(|effects| effects.wakes_workers));
                Ok(effects)
            }
            HotVerb::Prune(step) => self.prune_together(step, work),
        }
    }

    fn history_cache(&self) -> &Arc<HistoryCache> {
        &self.history_cache
    }

    fn share_history_cache(&mut self, cache: Arc<HistoryCache>) {
        self.history_cache = cache;
    }

    /// Which transactions a snapshot sees: a commit always changes that. So do those of other users of the server.
    fn version(&self) -> Result<StoreVersion> {
        let snapshot = self.shared().view(|tx| {
            tx.one("select cast(pg_current_snapshot() as text) as seen", params![], |row| row.get("seen"))
        })?;
        Ok(StoreVersion(snapshot))
    }

    fn exchange(&self, exchange: &Exchange<'_>) -> Result<ExchangeResult> {
        self.make_up_mark(exchange);
        let exchanged = self.one_turn(exchange)?;
        self.prepare_sleep(exchange, exchanged)
    }

    fn orders(&self, worker: &WorkerId) -> Result<Orders> {
        let orders = self.shared().view(|tx| orders::orders(tx, worker))?;
        let mut opened = self.lock();
        opened.link.limit_waits(orders.settings.lease);
        opened.link.set_durability(orders.settings.durability)?;
        self.notice_pooler(&opened.link);
        Ok(orders)
    }

    fn has_worker(&self) -> Result<bool> {
        self.shared().view(|tx| workers::any_live(tx.sql()))
    }

    fn announce(&self, notice: Notice<'_>) -> Result<()> {
        self.send_notice(notice)
    }

    fn pace(&self) -> Pace {
        self.hearing().map_or(Pace::Polling, |hearing| hearing.pace())
    }

    fn check_fitness_for_workers(&self) -> Result<()> {
        match self.shared().view(grant::missing_of_worker)? {
            None => self.check_way_to_listen(),
            Some(problem) => Err(StoreError::NotAllowed {
                problem,
                advice: "`queuectl store grant ROLE --as worker` prints the SQL that lets a role run jobs",
            }),
        }
    }

    fn bound_waits(&self, lease: Duration) {
        self.lock().link.limit_waits(lease);
    }

    fn wait_at_most(&self, lock_timeout: Duration) -> Result<()> {
        self.lock().link.wait_at_most(lock_timeout);
        Ok(())
    }

    fn spans_machines(&self) -> bool {
        true
    }

    fn default_settings(&self) -> Settings {
        Settings::default_on_server()
    }

    fn adopt_settings(&self) -> Result<()> {
        let settings = self.shared().view(|tx| tx.settings().map(|known| (known.durability, known.lease)));
        let (durability, lease) = match settings {
            Ok(known) => known,
            // Operations that need the settings report the error. Until it is repaired, commits are as safe as
            // possible.
            Err(StoreError::BadSetting { .. }) => (Durability::Full, Settings::default_on_server().lease),
            Err(error) => return Err(error),
        };
        let link = &mut self.lock().link;
        link.limit_stops(lease);
        link.set_durability(durability)
    }

    fn reach(&self, folder: &Path) -> PathBuf {
        reached_folder(folder)
    }

    fn prepare_logs(&self, _logs: &Path) -> Result<()> {
        Ok(())
    }

    fn lagging_standbys(&self) -> Result<u64> {
        let found = self.lock().link.session()?.batch(LAGGING_STANDBYS)?;
        Ok(found.and_then(|count| count.parse().ok()).unwrap_or(0))
    }

    fn writer(&self) -> Option<Holder> {
        None
    }

    /// A process that waits, such as a supervisor, needs no session meanwhile. The next verb opens another.
    fn tidy(&self) {
        self.send_owed();
        self.lock().link.close();
    }
}
