//! Finds the workers on other machines and in other containers that have been silent for a whole lease. One worker of each
//! home reads the beats for all of them.

use std::path::PathBuf;
use std::time::Instant;

use super::beats::{Asked, BeatWatch, read_interval};
use super::reaper::holds_a_lock;
use domain::settings::Settings;
use domain::values::name::WorkerId;
use store::{Store, StoreError, Worker};
use sys::clock::since_boot_with_sleep;
use sys::host;
use sys::host::{Observer, ObserverLock, Reach};

#[derive(Debug)]
pub(crate) struct SilenceWatch {
    /// The folder of the workers of this home.
    folder: PathBuf,
    beats: BeatWatch,
    /// When to read the beats of all workers.
    next: Instant,
    /// While this worker observes for its home.
    lock: Option<ObserverLock>,
}

impl SilenceWatch {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder, beats: BeatWatch::default(), next: Instant::now(), lock: None }
    }

    /// The store has failed, so other workers cannot reach it either, and their missing heartbeats prove nothing.
    pub(crate) fn start_over(&mut self) {
        self.beats.start_over();
    }

    /// The workers elsewhere whose leases may be taken over now.
    pub(crate) fn silent_workers(
        &mut self,
        store: &dyn Store,
        observer: &Observer,
        own: Option<&WorkerId>,
        settings: &Settings,
    ) -> Result<Vec<Worker>, StoreError> {
        if Instant::now() < self.next {
            return Ok(Vec::new());
        }
        self.next = Instant::now() + read_interval(settings);
        if self.lock.is_none() {
            // A home whose id cannot be read now is observed later.
            self.lock = ObserverLock::take(&self.folder).ok().flatten();
            self.beats.start_over();
        }
        if self.lock.is_none() {
            return Ok(Vec::new());
        }
        let sent = since_boot_with_sleep();
        let beats = store.beats()?;
        let asked = Asked { sent, answered: since_boot_with_sleep() };
        let mut silent = self.beats.note(&beats, asked, settings.lease);
        silent.retain(|id| Some(id) != own);
        if silent.is_empty() {
            return Ok(Vec::new());
        }
        let mut workers = store.workers()?;
        workers.retain(|worker| {
            let reach = || host::reach(observer, &worker.origin, &worker.folder, worker.id.as_str());
            silent.contains(&worker.id) && reach() == Reach::Elsewhere && !holds_a_lock(worker)
        });
        Ok(workers)
    }
}
