//! Waking workers through FIFOs: one beside the database that rings for work, and one for each worker in its folder.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use super::session::open::OpenDatabase;
use crate::{NewWorker, Notice, OrderHints, Result, Store, StoreError, WORKER_FILE, Wake, Worker};
use domain::values::name::WorkerId;
use sys::bell;
use sys::bell::Bell;

/// The bells that one worker hears.
#[derive(Debug)]
pub(super) struct Bells {
    shared: Bell,
    own: Bell,
}

impl Bells {
    pub(super) fn open(opened: &OpenDatabase, worker: &NewWorker) -> Result<Self> {
        let own = bell_of(&worker.folder, &worker.id);
        Ok(Self { shared: open(&opened.bell)?, own: open(&own)? })
    }
}

fn open(path: &Path) -> Result<Bell> {
    Bell::open(path).map_err(StoreError::cannot_open(path))
}

impl Wake for Bells {
    fn work(&self) -> BorrowedFd<'_> {
        self.shared.as_fd()
    }

    fn take_work(&self) -> Option<u8> {
        self.shared.take()
    }

    fn pass_on(&self, hops: u8) {
        self.shared.ring(hops);
    }

    fn orders(&self) -> BorrowedFd<'_> {
        self.own.as_fd()
    }

    fn take_orders(&self) -> OrderHints {
        let rings = self.own.take_numbered();
        OrderHints { has_orders: rings.is_plain, readers: rings.numbers }
    }
}

/// The bell of one worker.
fn bell_of(folder: &Path, worker: &WorkerId) -> PathBuf {
    folder.join(format!("{worker}.{WORKER_FILE}"))
}

pub(super) fn announce(store: &dyn Store, notice: Notice<'_>) -> Result<()> {
    if store.has_worker()? {
        for worker in store.workers()? {
            ring(&worker, notice);
        }
    }
    Ok(())
}

fn ring(worker: &Worker, notice: Notice<'_>) {
    let bell = bell_of(&worker.folder, &worker.id);
    match notice {
        Notice::Orders => bell::ring_at(&bell, 1),
        Notice::Reader { worker: id, job } if *id == worker.id => bell::ring_with_number(&bell, job),
        Notice::Reader { .. } => {}
    }
}
