//! Putting a backup in the place of the queue.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use crate::OpError;
use crate::home::location::{Location, StoreAddress, ensure_home};
use crate::worker::alive::live_workers;
use domain::log;
use store::sqlite::{IncomingBackup, SqliteStore};
use store::{Queues, RestoreSummary, StoreError};
use sys::clock::SystemClock;
use sys::fs::liveness_lock;
use sys::fs::liveness_lock::{FOLDER, LOCK, Role};

/// A backup that was found sound and is ready to be put in the place of the queue.
#[derive(Debug)]
pub struct Ready {
    incoming: IncomingBackup,
    location: Location,
}

/// What would be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Present {
    Jobs(u64),
    /// There is something, but it cannot be read.
    Unreadable,
}

/// Checks a backup and makes it ready; the queue is not touched.
pub fn prepare(location: &Location, file: &Path, by: &str) -> Result<Ready, OpError> {
    File::open(file).map_err(|source| OpError::CannotRead { path: file.to_owned(), source })?;
    ensure_home(&location.home)?;
    if let count @ 1.. = count_workers(location) {
        return Err(OpError::LiveWorkers { count });
    }
    let StoreAddress::Sqlite(database) = &location.store;
    let logs = location.home.join(log::FOLDER);
    let incoming = IncomingBackup::stage(file, database, &logs, Arc::new(SystemClock), by)?;
    Ok(Ready { incoming, location: location.clone() })
}

impl Ready {
    /// What is there now.
    pub fn present(&self) -> Present {
        let StoreAddress::Sqlite(database) = &self.location.store;
        if database.metadata().map_or(0, |meta| meta.len()) == 0 {
            return Present::Jobs(0);
        }
        let counted = read(&self.location.store).and_then(|store| store.queues());
        counted.map_or(Present::Unreadable, |queues| {
            Present::Jobs(queues.iter().flat_map(|queue| queue.counts.values()).sum())
        })
    }

    pub fn jobs(&self) -> u64 {
        self.incoming.jobs()
    }

    /// Puts it in the place of the queue, unless there are workers.
    pub fn put(self) -> Result<RestoreSummary, OpError> {
        let Self { incoming, location } = self;
        Ok(incoming.install(&|| count_workers(&location))?)
    }
}

fn read(store: &StoreAddress) -> Result<SqliteStore, StoreError> {
    let StoreAddress::Sqlite(database) = store;
    SqliteStore::open_read_only(database, Arc::new(SystemClock))
}

/// How many workers and supervisors live that work on this queue, or are about to: those of this home, whom the queue may
/// not know yet, and those whom it knows from elsewhere.
fn count_workers(location: &Location) -> usize {
    let folder = location.home.join(FOLDER);
    let here =
        folder.read_dir().into_iter().flatten().flatten().filter(|entry| is_held(&entry.path())).count();
    // A queue that cannot be read knows nobody.
    let known = read(&location.store).and_then(|store| live_workers(&store)).unwrap_or_default();
    let home = folder.canonicalize().unwrap_or(folder);
    let elsewhere = known.iter().filter(|worker| worker.folder != home).count();
    here + elsewhere
}

fn is_held(path: &Path) -> bool {
    let name = path.extension().filter(|extension| *extension == LOCK).and(path.file_stem());
    let Some((folder, name)) = path.parent().zip(name.and_then(|name| name.to_str())) else {
        return false;
    };
    // One whose lock cannot be looked at is taken for one that lives.
    [Role::Worker, Role::Supervisor]
        .into_iter()
        .any(|role| liveness_lock::is_held(folder, name, role).unwrap_or(true))
}
