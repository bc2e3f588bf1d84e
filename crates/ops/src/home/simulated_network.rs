//! In debug builds, a store that behaves as if it were on a network, so that tests can cut it off without a server.
//!
//! `QUEUECTL_SIMULATE_NETWORK=FOLDER` makes every store of the process say that it spans machines. While one of these files is in
//! the folder, calls behave accordingly:
//!
//! | file | effect |
//! |---|---|
//! | `cut` | every call fails at once |
//! | `hang` | every call waits until the file is gone |
//! | `lose-answers` | the verb that it contains takes effect, and fails with an unknown outcome |
//! | `cut-output` | every call that ships output fails |
//! | `listening` | the store says that its workers hear of every change |
//!
//! The folder is in the home of the process, and the folders of other homes are out of reach, as on another machine.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use domain::settings::Settings;
use domain::values::name::WorkerId;
use domain::values::timestamp::Timestamp;
use store::{
    Effects, Exchange, ExchangeResult, HistoryCache, NewWorker, Notice, Orders, Pace, ReadWork, Result,
    Store, StoreError, StoreVersion, Wake, WriteWork,
};
use sys::process::Holder;

/// How often a call that hangs checks whether it may continue.
const HANG_POLL_INTERVAL: Duration = Duration::from_millis(10);

/// The store itself, unless a test wants another one.
pub(super) fn wrap(store: Box<dyn Store>) -> Box<dyn Store> {
    match std::env::var_os("QUEUECTL_SIMULATE_NETWORK") {
        Some(folder) => Box::new(SimulatedNetwork { store, folder: folder.into() }),
        None => store,
    }
}

#[derive(Debug)]
struct SimulatedNetwork {
    store: Box<dyn Store>,
    folder: PathBuf,
}

impl SimulatedNetwork {
    fn is(&self, name: &str) -> bool {
        self.folder.join(name).exists()
    }

    /// The store, if the network lets the call through.
    fn reached(&self) -> Result<&dyn Store> {
        while self.is("hang") {
            std::thread::sleep(HANG_POLL_INTERVAL);
        }
        if self.is("cut") {
            return Err(StoreError::Unavailable { source: "the network is cut".into() });
        }
        Ok(self.store.as_ref())
    }

    fn written<T>(&self, verb: &str, answer: Result<T>) -> Result<T> {
        let loses =
            || std::fs::read_to_string(self.folder.join("lose-answers")).is_ok_and(|lost| lost == verb);
        if answer.is_ok() && loses() {
            return Err(StoreError::OutcomeUnknown { source: "the answer was lost".into() });
        }
        answer
    }
}

impl Store for SimulatedNetwork {
    fn now(&self) -> Result<Timestamp> {
        self.store.now()
    }

    fn read(&self, work: &mut ReadWork<'_>) -> Result<()> {
        self.reached()?.read(work)
    }

    fn write(&self, verb: &str, work: &mut WriteWork<'_>) -> Result<Effects> {
        if verb == "put_output" && self.is("cut-output") {
            return Err(StoreError::Unavailable { source: "the network is cut".into() });
        }
        self.written(verb, self.reached()?.write(verb, work))
    }

    fn secure_reads(&self) -> Result<()> {
        self.reached()?.secure_reads()
    }

    fn listen(&self, worker: &NewWorker) -> Result<Box<dyn Wake>> {
        self.reached()?.listen(worker)
    }

    fn exchange(&self, exchange: &Exchange<'_>) -> Result<ExchangeResult> {
        self.written("exchange", self.reached()?.exchange(exchange))
    }

    fn orders(&self, worker: &WorkerId) -> Result<Orders> {
        self.reached()?.orders(worker)
    }

    fn has_worker(&self) -> Result<bool> {
        self.reached()?.has_worker()
    }

    fn announce(&self, notice: Notice<'_>) -> Result<()> {
        self.reached()?.announce(notice)
    }

    fn pace(&self) -> Pace {
        if self.is("listening") { Pace::Listening } else { self.store.pace() }
    }

    fn bound_waits(&self, lease: Duration) {
        self.store.bound_waits(lease);
    }

    fn wait_at_most(&self, lock_timeout: Duration) -> Result<()> {
        self.store.wait_at_most(lock_timeout)
    }

    fn spans_machines(&self) -> bool {
        true
    }

    fn history_cache(&self) -> &Arc<HistoryCache> {
        self.store.history_cache()
    }

    fn share_history_cache(&mut self, cache: Arc<HistoryCache>) {
        self.store.share_history_cache(cache);
    }

    fn version(&self) -> Result<StoreVersion> {
        self.reached()?.version()
    }

    fn default_settings(&self) -> Settings {
        self.store.default_settings()
    }

    fn adopt_settings(&self) -> Result<()> {
        self.reached()?.adopt_settings()
    }

    fn reach(&self, folder: &Path) -> PathBuf {
        let path = self.store.reach(folder);
        let is_of_this_home = self.folder.parent().is_some_and(|home| path.starts_with(home));
        if is_of_this_home { path } else { self.folder.join("out-of-reach") }
    }

    fn prepare_logs(&self, logs: &Path) -> Result<()> {
        self.store.prepare_logs(logs)
    }

    fn lagging_standbys(&self) -> Result<u64> {
        self.reached()?.lagging_standbys()
    }

    fn writer(&self) -> Option<Holder> {
        self.store.writer()
    }

    fn tidy(&self) {
        self.store.tidy();
    }
}
