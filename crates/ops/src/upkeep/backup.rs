//! Backing up the whole queue to one file.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::OpError;
use crate::home::location::{Location, ensure_home};
use crate::home::open::open_readable;
use domain::log;
use store::Store;
use store::sqlite::{Backup, Progress};
use sys::failpoint;
use sys::fs::owner_only;

/// Writes a backup to `file` and returns its size. An existing file is replaced only with `force`. The backup is written
/// under a temporary name and renamed when it is complete, so a partial backup never has the final name.
pub fn backup(
    location: &Location,
    file: &Path,
    force: bool,
    progress: &mut dyn FnMut(Progress),
) -> Result<u64, OpError> {
    let database = location.database_file("backup")?;
    location.check_exists()?;
    ensure_home(&location.home)?;
    let store = open_readable(database)?;
    refuse_the_queue_itself(database, file)?;
    let new = NewFile::create(file, force)?;
    let logs = location.home.join(log::FOLDER);
    store.prepare_logs(&logs)?;
    store.backup(&Backup { to: &new.partial, logs: &logs }, progress)?;
    failpoint::hit("backup.before_rename");
    let meta = new.partial.metadata();
    let bytes = meta.map_err(|source| OpError::CannotMake { path: file.to_owned(), source })?.len();
    new.publish()?;
    Ok(bytes)
}

/// Refuses to overwrite the queue with its own backup.
fn refuse_the_queue_itself(database: &Path, file: &Path) -> Result<(), OpError> {
    let is_same = file.canonicalize().ok().zip(database.canonicalize().ok());
    match is_same {
        Some((file, database)) if file == database => Err(OpError::BackupOntoItself(file)),
        Some(_) | None => Ok(()),
    }
}

/// A file with mode 0600 that has a temporary name in the destination folder until [`NewFile::publish`] renames it. Dropping
/// it before that deletes it.
#[derive(Debug)]
pub struct NewFile {
    file: PathBuf,
    partial: PathBuf,
    force: bool,
}

impl NewFile {
    /// An existing file is replaced only with `force`.
    pub fn create(file: &Path, force: bool) -> Result<Self, OpError> {
        if file.is_dir() {
            return Err(cannot_make(file, io::ErrorKind::IsADirectory.into()));
        }
        if !force && file.symlink_metadata().is_ok() {
            return Err(OpError::FileExists(file.to_owned()));
        }
        let new = Self { file: file.to_owned(), partial: partial(file), force };
        match file.file_name() {
            Some(_) => new.open().map(|_| new).map_err(|source| cannot_make(file, source)),
            None => Err(cannot_make(file, io::ErrorKind::InvalidFilename.into())),
        }
    }

    /// Opens the temporary file, truncated.
    pub fn open(&self) -> io::Result<File> {
        owner_only::replace_file(&self.partial)
    }

    /// Renames the complete file to its final name.
    pub fn publish(self) -> Result<(), OpError> {
        let renamed = if self.force {
            std::fs::rename(&self.partial, &self.file)
        } else {
            owner_only::rename_to_free(&self.partial, &self.file)
        };
        match renamed.and_then(|()| owner_only::sync_entry(&self.file)) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(OpError::FileExists(self.file.clone()))
            }
            result => result.map_err(|source| cannot_make(&self.file, source)),
        }
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        // After `publish` the temporary name no longer exists.
        let _ = std::fs::remove_file(&self.partial);
    }
}

fn partial(file: &Path) -> PathBuf {
    let mut hidden = OsString::from(".");
    hidden.push(file.file_name().unwrap_or_default());
    hidden.push(format!(".{}.partial", std::process::id()));
    owner_only::folder_of(file).join(hidden)
}

fn cannot_make(file: &Path, source: io::Error) -> OpError {
    OpError::CannotMake { path: file.to_owned(), source }
}
