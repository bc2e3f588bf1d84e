//! Finds the workers on other machines and in other containers that have been silent for a whole lease. One worker of each
//! home reads the beats for all of them.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::beats::{Asked, BeatWatch, read_interval};
use super::reaper::holds_a_lock;
use domain::settings::Settings;
use domain::values::name::WorkerId;
use store::{Beat, Store, StoreError, Worker};
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

    /// Whether to read the beats of all workers now.
    pub(crate) fn is_due(&mut self, settings: &Settings) -> bool {
        if Instant::now() < self.next {
            return false;
        }
        self.next = Instant::now() + read_interval(settings);
        if self.lock.is_none() {
            // A home whose id cannot be read now is observed later.
            self.lock = ObserverLock::take(&self.folder).ok().flatten();
            self.beats.start_over();
        }
        self.lock.is_some()
    }

    /// Notes the beats of all workers; returns those that have been silent for a whole lease.
    pub(crate) fn note(&mut self, beats: &[Beat], asked: Asked, lease: Duration) -> Vec<WorkerId> {
        self.beats.note(beats, asked, lease)
    }
}

/// Those of the silent workers that are elsewhere: their leases may be taken over now.
pub(crate) fn elsewhere(
    store: &dyn Store,
    observer: &Observer,
    own: Option<&WorkerId>,
    mut silent: Vec<WorkerId>,
) -> Result<Vec<Worker>, StoreError> {
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
