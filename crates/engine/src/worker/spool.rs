//! The log files of a worker whose store keeps the output of attempts: a reader on another machine cannot open them.
//!
//! Slots write them as they do everywhere. The shipper, a thread with its own connection, copies them into the store, every
//! second, and more often while a reader follows. When an attempt is settled it copies the rest and deletes the file. The
//! file of a worker that died is shipped by the next worker of its home. That one cannot know whether the worker of an
//! attempt that has just ended is alive, so both may ship the file, and the first deletes it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::OpenStore;
use domain::log::parse_file_name;
use domain::values::name::JobId;
use store::jobs::shipment::Shipment;
use store::{LeaseRef, Settlement, ShippedAttempt, Store, StoreError};
use sys::host;

/// The folder of these files in a home. Not that of other log files: their numbers are those of another store.
pub(crate) const FOLDER: &str = "spool";
/// How often output is shipped.
const SHIP_INTERVAL: Duration = Duration::from_secs(1);
/// The same while a reader follows.
const FOLLOWED_SHIP_INTERVAL: Duration = Duration::from_millis(250);
/// How often the files of dead workers are looked for.
const SCAN_INTERVAL: Duration = Duration::from_secs(60);
/// How long a worker that ends waits for the last of its output to be shipped; after that, another worker does it.
const END_TIMEOUT: Duration = Duration::from_secs(10);

/// The attempts whose output is to be shipped, shared by slots, ledger and shipper.
#[derive(Debug)]
pub(crate) struct Spool {
    pub(crate) folder: PathBuf,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    attempts: HashMap<LeaseRef, SpooledAttempt>,
    closed_at: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
struct SpooledAttempt {
    number: u64,
    is_followed: bool,
    /// It has ended, and its outcome is recorded or does not count.
    is_over: bool,
    /// Its output is stored with its outcome, so that parts in the store are superfluous.
    is_stored: bool,
}

impl Spool {
    pub(crate) fn new(home: &Path) -> Self {
        Self { folder: home.join(FOLDER), state: Mutex::default(), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn begin(&self, lease: &LeaseRef, number: u64) {
        let attempt = SpooledAttempt { number, is_followed: false, is_over: false, is_stored: false };
        self.lock().attempts.insert(lease.clone(), attempt);
    }

    /// Readers follow the output of these jobs.
    pub(crate) fn follow(&self, numbers: &[u64]) {
        for attempt in self.lock().attempts.values_mut() {
            attempt.is_followed |= numbers.contains(&attempt.number);
        }
        self.changed.notify_all();
    }

    /// The outcome of an attempt was recorded.
    pub(crate) fn settle(&self, settlement: &Settlement) {
        let has_file = settlement.output.is_none() && settlement.log_bytes > 0;
        self.end(&settlement.lease, has_file);
    }

    /// The lease of an attempt was lost.
    pub(crate) fn lose(&self, lease: &LeaseRef) {
        self.end(lease, true);
    }

    /// The output of most attempts is short, and stored with the outcome: then the shipper is not needed.
    fn end(&self, lease: &LeaseRef, may_have_file: bool) {
        let mut state = self.lock();
        match state.attempts.get_mut(lease) {
            Some(attempt) if may_have_file || attempt.is_followed => {
                attempt.is_over = true;
                attempt.is_stored = !may_have_file;
            }
            Some(_) => {
                state.attempts.remove(lease);
                return;
            }
            None => return,
        }
        drop(state);
        self.changed.notify_all();
    }

    /// The worker ends: the shipper finishes its work.
    pub(crate) fn close(&self) {
        self.lock().closed_at = Some(Instant::now());
        self.changed.notify_all();
    }

    /// Waits for the next round; `None` when the worker has ended and nothing is left to ship.
    fn next_round(&self) -> Option<Vec<(LeaseRef, SpooledAttempt)>> {
        let mut state = self.lock();
        let began = Instant::now();
        loop {
            let is_over = |attempt: &SpooledAttempt| attempt.is_over;
            let is_any_over = state.attempts.values().any(is_over);
            if let Some(at) = state.closed_at
                && (!is_any_over || at.elapsed() >= END_TIMEOUT)
            {
                return None;
            }
            let is_followed = state.attempts.values().any(|attempt| attempt.is_followed);
            let interval = if is_followed { FOLLOWED_SHIP_INTERVAL } else { SHIP_INTERVAL };
            let left = interval.saturating_sub(began.elapsed());
            if is_any_over || left.is_zero() {
                return Some(
                    state.attempts.iter().map(|(lease, attempt)| (lease.clone(), *attempt)).collect(),
                );
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn forget(&self, lease: &LeaseRef) {
        self.lock().attempts.remove(lease);
    }

    fn is_known(&self, number: u64, attempt: u32) -> bool {
        self.lock().attempts.iter().any(|(lease, known)| known.number == number && lease.attempt == attempt)
    }

    fn path(&self, number: u64, attempt: u32) -> PathBuf {
        self.folder.join(domain::log::file_name(number, attempt))
    }
}

/// Ships output until the worker has ended.
pub(crate) fn run(spool: &Spool, workers: &Path, open: OpenStore<'_>) {
    let mut shipper = Shipper { spool, workers, open, store: None, shipments: HashMap::new() };
    let mut next_scan = Instant::now();
    while let Some(attempts) = spool.next_round() {
        let mut result =
            attempts.iter().map(|(lease, attempt)| shipper.ship(lease, *attempt)).fold(Ok(()), Result::and);
        if next_scan <= Instant::now() && result.is_ok() {
            result = shipper.ship_abandoned();
            next_scan = Instant::now() + SCAN_INTERVAL;
        }
        if result.is_err() {
            // The worker itself reports that the store fails. Everything is offered again by a new connection.
            shipper.store = None;
            std::thread::sleep(SHIP_INTERVAL);
        }
    }
}

struct Shipper<'a> {
    spool: &'a Spool,
    /// The folder of the workers of this home.
    workers: &'a Path,
    open: OpenStore<'a>,
    /// Opened when there is something to ship.
    store: Option<Box<dyn Store>>,
    shipments: HashMap<LeaseRef, Shipment>,
}

impl Shipper<'_> {
    fn ship(&mut self, lease: &LeaseRef, attempt: SpooledAttempt) -> Result<(), StoreError> {
        let path = self.spool.path(attempt.number, lease.attempt);
        let known = self.shipments.remove(lease);
        let shipped_attempt = ShippedAttempt { lease: lease.clone(), number: attempt.number };
        let shipment = known.or_else(|| Shipment::open(&path));
        let Some(mut shipment) = shipment else {
            // It printed nothing, or so little that it is stored with the attempt.
            if attempt.is_over {
                self.spool.forget(lease);
            }
            return Ok(());
        };
        if attempt.is_stored && !path.exists() {
            let shipped = self.store()?.delete_output_parts(&shipped_attempt);
            if shipped.is_ok() {
                self.spool.forget(lease);
            }
            return shipped;
        }
        let shipped = self.store().and_then(|store| shipment.ship(&shipped_attempt, store));
        if attempt.is_over && shipped.is_ok() {
            let _ = std::fs::remove_file(&path);
            self.spool.forget(lease);
        } else {
            self.shipments.insert(lease.clone(), shipment);
        }
        shipped
    }

    /// Ships the files of attempts that ended with their worker.
    fn ship_abandoned(&mut self) -> Result<(), StoreError> {
        let Ok(entries) = self.spool.folder.read_dir() else {
            return Ok(());
        };
        let home_id = host::home_id(self.workers);
        for path in entries.flatten().map(|entry| entry.path()) {
            let name = path.file_name().and_then(|name| name.to_str());
            let Some((number, attempt)) = name.and_then(parse_file_name) else { continue };
            if self.spool.is_known(number, attempt) {
                continue;
            }
            let Some(job) = self.abandoned_job(number, attempt, home_id.as_deref())? else { continue };
            let shipped_attempt = ShippedAttempt { lease: LeaseRef { job, attempt }, number };
            if let Some(mut shipment) = Shipment::open(&path) {
                shipment.ship(&shipped_attempt, self.store()?)?;
            }
            let _ = std::fs::remove_file(&path);
        }
        Ok(())
    }

    /// The job of an attempt of this home that has ended, so that no living worker ships its output.
    fn abandoned_job(
        &mut self,
        number: u64,
        attempt: u32,
        home_id: Option<&str>,
    ) -> Result<Option<JobId>, StoreError> {
        let store = self.store()?;
        let Some(job) = store.id_of_number(number)? else {
            return Ok(None);
        };
        let history = store.record(&job)?.map(|record| record.history).unwrap_or_default();
        let is_abandoned = history.iter().any(|known| {
            known.number == attempt && known.ending.is_some() && Some(known.home.id.as_str()) == home_id
        });
        Ok(is_abandoned.then_some(job))
    }

    fn store(&mut self) -> Result<&dyn Store, StoreError> {
        let store = match self.store.take() {
            Some(store) => store,
            None => (self.open)()?,
        };
        Ok(&**self.store.insert(store))
    }
}
