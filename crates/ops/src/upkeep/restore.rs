//! Replacing the queue with a backup.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::OpError;
use crate::home::location::{Location, ensure_home};
use crate::worker::live::live_workers;
use domain::log;
use store::sqlite::{IncomingBackup, RestoreError, RestoreSummary, SqliteStore};
use store::{Store, StoreError};
use sys::clock::SystemClock;
use sys::fs::liveness_lock;
use sys::fs::liveness_lock::{FOLDER, LOCK, Role};
use sys::poll::Poll;

/// How long to wait for processes of workers that have stopped; on a busy machine they may need seconds to end.
const EXIT_TIMEOUT: Duration = Duration::from_secs(10);
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(5);
const MAX_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A checked backup that is ready to replace the queue.
#[derive(Debug)]
pub struct PreparedRestore {
    incoming: IncomingBackup,
    home: PathBuf,
    database: PathBuf,
}

/// The queue that would be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExistingQueue {
    Jobs(u64),
    /// It exists but cannot be read.
    Unreadable,
}

/// Checks a backup and prepares it; does not change the queue.
pub fn prepare(location: &Location, file: &Path, by: &str) -> Result<PreparedRestore, OpError> {
    let database = location.database_file("restore")?;
    File::open(file).map_err(|source| OpError::CannotRead { path: file.to_owned(), source })?;
    ensure_home(&location.home)?;
    wait_for_stopped_workers(&location.home, database)?;
    let logs = location.home.join(log::FOLDER);
    let incoming = IncomingBackup::stage(file, database, &logs, Arc::new(SystemClock), by)?;
    Ok(PreparedRestore { incoming, home: location.home.clone(), database: database.to_owned() })
}

impl PreparedRestore {
    /// The queue at the destination.
    pub fn existing_queue(&self) -> ExistingQueue {
        if self.database.metadata().map_or(0, |meta| meta.len()) == 0 {
            return ExistingQueue::Jobs(0);
        }
        let counted = read(&self.database).and_then(|store| store.count_jobs());
        counted.map_or(ExistingQueue::Unreadable, ExistingQueue::Jobs)
    }

    pub fn jobs(&self) -> u64 {
        self.incoming.jobs()
    }

    /// Replaces the queue, unless workers are alive.
    pub fn commit(self) -> Result<RestoreSummary, OpError> {
        let Self { incoming, home, database } = self;
        Ok(incoming.install(&|| LiveWorkers::of(&home, &database).count())?)
    }
}

fn read(database: &Path) -> Result<Box<dyn Store>, StoreError> {
    Ok(Box::new(SqliteStore::open_read_only(database, Arc::new(SystemClock))?))
}

/// Waits a moment for processes of this home that are not registered: `worker stop` has returned, and the processes are
/// about to end.
fn wait_for_stopped_workers(home: &Path, database: &Path) -> Result<(), RestoreError> {
    let mut poll = Poll::growing(MIN_POLL_INTERVAL, MAX_POLL_INTERVAL).within(EXIT_TIMEOUT);
    loop {
        let live = LiveWorkers::of(home, database);
        match live.count() {
            0 => return Ok(()),
            count if live.registered > 0 || !poll.sleep() => return Err(RestoreError::Workers { count }),
            _ => {}
        }
    }
}

/// The live workers and supervisors that use this queue or are about to.
struct LiveWorkers {
    /// Of this home, whether registered or not.
    here: usize,
    /// Of other homes.
    elsewhere: usize,
    registered: usize,
}

impl LiveWorkers {
    fn of(home: &Path, database: &Path) -> Self {
        let folder = home.join(FOLDER);
        let files = folder.read_dir().into_iter().flatten().flatten();
        let here = files.filter(|entry| is_held(&entry.path())).count();
        // An unreadable queue has no registered workers.
        let known = read(database).and_then(|store| live_workers(store.as_ref())).unwrap_or_default();
        let home = folder.canonicalize().unwrap_or(folder);
        let elsewhere = known.iter().filter(|worker| worker.folder != home).count();
        Self { here, elsewhere, registered: known.len() }
    }

    fn count(&self) -> usize {
        self.here + self.elsewhere
    }
}

fn is_held(path: &Path) -> bool {
    let name = path.extension().filter(|extension| *extension == LOCK).and(path.file_stem());
    let Some((folder, name)) = path.parent().zip(name.and_then(|name| name.to_str())) else {
        return false;
    };
    // If the lock cannot be checked, assume that its holder is alive.
    [Role::Worker, Role::Supervisor]
        .into_iter()
        .any(|role| liveness_lock::is_held(folder, name, role).unwrap_or(true))
}
