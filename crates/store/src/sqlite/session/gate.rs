//! The gate that every writer passes, one at a time and in turn.
//!
//! It also remembers that there is a queue: once the database is complete a word is written into the file. An empty
//! database beside it is then not a new one but a lost one.

use std::cell::Cell;
use std::fs::Metadata;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::open::beside;
use crate::StoreError;
use sys::fs::lock::PatientLock;
use sys::fs::{owner_only, ownership};
use sys::process;
use sys::process::Holder;
use sys::signal::StopSignalBlock;

/// How long a writer waits for its turn, unless somebody waits for it in turn.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(crate) struct Gate {
    path: PathBuf,
    /// `None`: nobody passes.
    lock: Option<PatientLock>,
    /// Whether Ctrl-Z has to wait until a writer is through.
    defers_stops: Cell<bool>,
}

/// The right to write; dropping it lets the next one in.
#[derive(Debug)]
pub(crate) struct Pass<'a> {
    lock: &'a PatientLock,
    /// Dropped after the lock was let go of.
    _stops: Option<StopSignalBlock>,
}

impl Gate {
    pub(crate) fn open(database: &Path) -> Result<Self, StoreError> {
        let path = path(database);
        let opened = owner_only::open_file(&path).and_then(|file| Ok((file.metadata()?, file)));
        let (meta, file) =
            opened.map_err(|error| StoreError::CannotOpen { path: path.clone(), source: error.into() })?;
        ownership::check(&path, &meta)?;
        Ok(Self { path, lock: Some(PatientLock::new(file)), defers_stops: Cell::new(true) })
    }

    /// For those who only read.
    pub(crate) fn closed(database: &Path) -> Self {
        Self { path: path(database), lock: None, defers_stops: Cell::new(false) }
    }

    /// For a worker, which writes all the time: one that is stopped in here is killed by others when its lease is over.
    pub(crate) fn defer_no_stops(&self) {
        self.defers_stops.set(false);
    }

    /// Who is writing now.
    pub(crate) fn holder(&self) -> Option<Holder> {
        process::holder_of(&self.path)
    }

    pub(crate) fn enter(&self, patience: Duration) -> Result<Pass<'_>, StoreError> {
        let lock = self.lock.as_ref().ok_or(StoreError::ReadOnly)?;
        let entered = lock.take_within(patience);
        if entered.map_err(|error| StoreError::Unavailable { source: error.into() })? {
            // A process that is stopped in here keeps all others from writing.
            Ok(Pass { lock, _stops: self.defers_stops.get().then(StopSignalBlock::new) })
        } else {
            Err(StoreError::Busy { waited: patience, holder: self.holder() })
        }
    }

    /// Whether a queue was once completed behind this gate.
    pub(crate) fn remembers_a_queue(&self) -> std::io::Result<bool> {
        self.lock.as_ref().map_or(Ok(false), |lock| Ok(holds_a_word(&lock.file().metadata()?)))
    }

    pub(crate) fn remember_the_queue(&self) -> std::io::Result<()> {
        let Some(mut file) = self.lock.as_ref().map(PatientLock::file) else {
            return Ok(());
        };
        file.write_all(b"queuectl\n")?;
        file.sync_all()
    }
}

/// Where the gate of a database is.
pub fn path(database: &Path) -> PathBuf {
    beside(database, "-gate")
}

/// The same for those who leave the gate alone.
pub fn remembers_a_queue(database: &Path) -> bool {
    path(database).metadata().is_ok_and(|gate| holds_a_word(&gate))
}

fn holds_a_word(gate: &Metadata) -> bool {
    gate.len() > 0
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        // A lock that cannot be let go of goes with the process.
        let _ = self.lock.let_go();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_in_the_way_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let database = folder.path().join("queue.db");
        let (first, second) =
            (Gate::open(&database).expect("a gate"), Gate::open(&database).expect("a gate"));
        assert_eq!(second.holder(), None);
        let pass = first.enter(PATIENCE).expect("it is free");
        let refused = second.enter(Duration::from_millis(10)).expect_err("it is held");
        let said = format!("the store was busy for 10ms: process {} (", std::process::id());
        assert!(refused.to_string().starts_with(&said), "{refused}");
        drop(pass);
        assert_eq!(second.holder(), None);
    }
}
