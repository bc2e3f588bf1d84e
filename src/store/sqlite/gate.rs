//! The gate that every writer passes, one at a time and in turn.
//!
//! It also remembers that there is a queue: once the database is complete a word is written into the file. An empty
//! database beside it is then not a new one but a lost one.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::open::beside;
use crate::store::StoreError;
use crate::sys::lock::{lock_within, unlock};
use crate::sys::private;

/// How long a writer waits for its turn.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(super) struct Gate {
    /// `None`: nobody passes.
    file: Option<File>,
}

/// The right to write; dropping it lets the next one in.
#[derive(Debug)]
pub(super) struct Pass<'a> {
    file: &'a File,
}

impl Gate {
    pub(super) fn open(database: &Path) -> std::io::Result<Self> {
        Ok(Self { file: Some(private::open_file(&path(database))?) })
    }

    /// For those who only read.
    pub(super) fn closed() -> Self {
        Self { file: None }
    }

    pub(super) fn enter(&self) -> Result<Pass<'_>, StoreError> {
        let file = self.file.as_ref().ok_or(StoreError::ReadOnly)?;
        let entered =
            lock_within(file, PATIENCE).map_err(|error| StoreError::Unavailable { source: error.into() })?;
        if !entered {
            return Err(StoreError::Busy { waited: PATIENCE });
        }
        Ok(Pass { file })
    }

    /// Whether a queue was once completed behind this gate.
    pub(super) fn remembers_a_queue(&self) -> std::io::Result<bool> {
        self.file.as_ref().map_or(Ok(false), |file| Ok(file.metadata()?.len() > 0))
    }

    pub(super) fn remember_the_queue(&self) -> std::io::Result<()> {
        let Some(mut file) = self.file.as_ref() else {
            return Ok(());
        };
        file.write_all(
            b"queuectl
",
        )?;
        file.sync_all()
    }
}

/// Where the gate of a database is.
pub fn path(database: &Path) -> PathBuf {
    beside(database, "-gate")
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        // A lock that cannot be let go of goes with the process.
        let _ = unlock(self.file);
    }
}
