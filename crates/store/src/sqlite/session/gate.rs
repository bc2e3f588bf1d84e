//! The gate that every writer passes, one at a time and in turn.
//!
//! Its file also records that a queue exists: it gets content once the database is complete. An empty database next to
//! it is then a lost queue, not a new one.

use std::cell::Cell;
use std::fs::Metadata;
use std::io;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::open::companion;
use crate::{Result, StoreError};
use sys::fs::lock::TimedLock;
use sys::fs::{owner_only, ownership};
use sys::process;
use sys::process::Holder;
use sys::signal::StopSignalBlock;

/// How long a writer waits for the gate, unless a lease demands less.
pub const GATE_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(crate) struct Gate {
    path: PathBuf,
    /// `None` for a read-only store, which refuses every write.
    lock: Option<TimedLock>,
    /// Whether job-control stops (Ctrl-Z) are deferred until the writer has left the gate.
    defers_stops: Cell<bool>,
}

/// The right to write. Dropping it lets the next writer in.
#[derive(Debug)]
pub(crate) struct GateGuard<'a> {
    lock: &'a TimedLock,
    /// Dropped after the lock is released.
    _stops: Option<StopSignalBlock>,
}

impl Gate {
    pub(crate) fn open(database: &Path) -> Result<Self> {
        let path = path(database);
        let opened = owner_only::open_file(&path).and_then(|file| Ok((file.metadata()?, file)));
        let (meta, file) = match opened {
            Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => {
                return Err(StoreError::ReadOnly);
            }
            opened => opened.map_err(StoreError::cannot_open(&path))?,
        };
        ownership::check(&path, &meta)?;
        Ok(Self { path, lock: Some(TimedLock::new(file)), defers_stops: Cell::new(true) })
    }

    /// For read-only stores.
    pub(crate) fn closed(database: &Path) -> Self {
        Self { path: path(database), lock: None, defers_stops: Cell::new(false) }
    }

    /// For workers, which write all the time: a worker that is stopped inside the gate is killed by others when its
    /// lease expires.
    pub(crate) fn disable_stop_deferral(&self) {
        self.defers_stops.set(false);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.lock.is_none()
    }

    /// The process that is writing now.
    pub(crate) fn holder(&self) -> Option<Holder> {
        process::holder_of(&self.path)
    }

    pub(crate) fn enter(&self, timeout: Duration) -> Result<GateGuard<'_>> {
        let lock = self.lock.as_ref().ok_or(StoreError::ReadOnly)?;
        let entered = lock.take_within(timeout);
        if entered.map_err(StoreError::unavailable)? {
            // A process that is stopped inside the gate blocks all other writers.
            Ok(GateGuard { lock, _stops: self.defers_stops.get().then(StopSignalBlock::new) })
        } else {
            Err(StoreError::Busy { waited: timeout, holder: self.holder() })
        }
    }

    /// Whether a queue was once completed in this database.
    pub(crate) fn is_initialized(&self) -> io::Result<bool> {
        self.lock.as_ref().map_or(Ok(false), |lock| Ok(has_content(&lock.file().metadata()?)))
    }

    pub(crate) fn mark_initialized(&self) -> io::Result<()> {
        let Some(mut file) = self.lock.as_ref().map(TimedLock::file) else {
            return Ok(());
        };
        file.write_all(b"queuectl\n")?;
        file.sync_all()
    }
}

/// The path of a database's gate file.
pub fn path(database: &Path) -> PathBuf {
    companion(database, "-gate")
}

/// The same without opening the gate.
pub fn is_initialized(database: &Path) -> bool {
    path(database).metadata().is_ok_and(|gate| has_content(&gate))
}

fn has_content(gate: &Metadata) -> bool {
    gate.len() > 0
}

impl Drop for GateGuard<'_> {
    fn drop(&mut self) {
        // If unlocking fails, the lock ends with the process.
        let _ = self.lock.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_timeout_names_the_process_that_holds_the_lock() {
        let folder = tempfile::tempdir().expect("a folder");
        let database = folder.path().join("queue.db");
        let (first, second) =
            (Gate::open(&database).expect("a gate"), Gate::open(&database).expect("a gate"));
        assert_eq!(second.holder(), None);
        let guard = first.enter(GATE_TIMEOUT).expect("it is free");
        let refused = second.enter(Duration::from_millis(10)).expect_err("it is held");
        let said = format!("the database was locked for 10ms by process {} (", std::process::id());
        assert!(refused.to_string().starts_with(&said), "{refused}");
        drop(guard);
        assert_eq!(second.holder(), None);
    }
}
