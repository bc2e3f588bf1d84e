//! A copy of the whole queue in one file.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::OpError;
use crate::home::location::{Location, StoreAddress};
use domain::log;
use store::{Backup, Progress, Store};
use sys::failpoint;
use sys::fs::owner_only;

/// Writes a backup to `file`; one that is there already is replaced if `force` is given. Gives how long it is. Until it is
/// whole it has another name, so there is never half a backup.
pub fn backup(
    store: &dyn Store,
    location: &Location,
    file: &Path,
    force: bool,
    progress: &mut dyn FnMut(Progress),
) -> Result<u64, OpError> {
    refuse_the_queue_itself(location, file)?;
    let new = NewFile::make(file, force)?;
    let logs = location.home.join(log::FOLDER);
    store.finish_restore(&logs)?;
    store.backup(&Backup { to: &new.partial, logs: &logs }, progress)?;
    failpoint::hit("backup.before_rename");
    let meta = new.partial.metadata();
    let bytes = meta.map_err(|source| OpError::CannotMake { path: file.to_owned(), source })?.len();
    new.name()?;
    Ok(bytes)
}

/// Nobody means to write a copy of the queue over the queue.
fn refuse_the_queue_itself(location: &Location, file: &Path) -> Result<(), OpError> {
    let StoreAddress::Sqlite(database) = &location.store;
    let is_same = file.canonicalize().ok().zip(database.canonicalize().ok());
    match is_same {
        Some((file, database)) if file == database => Err(OpError::BackupOntoItself(file)),
        Some(_) | None => Ok(()),
    }
}

/// A file that only its owner may read, and that has another name beside the one that it will have until it is whole. Gone
/// when it was not finished.
#[derive(Debug)]
pub struct NewFile {
    file: PathBuf,
    partial: PathBuf,
    force: bool,
}

impl NewFile {
    /// A file that is there already is replaced if `force` is given.
    pub fn make(file: &Path, force: bool) -> Result<Self, OpError> {
        if !force && file.symlink_metadata().is_ok() {
            return Err(OpError::FileExists(file.to_owned()));
        }
        let new = Self { file: file.to_owned(), partial: partial(file), force };
        match file.file_name() {
            Some(_) => new.open().map(|_| new).map_err(|source| cannot_make(file, source)),
            None => Err(cannot_make(file, io::ErrorKind::InvalidFilename.into())),
        }
    }

    /// The empty file.
    pub fn open(&self) -> io::Result<File> {
        owner_only::replace_file(&self.partial)
    }

    /// It is whole: gives it its name.
    pub fn name(self) -> Result<(), OpError> {
        let named = if self.force {
            std::fs::rename(&self.partial, &self.file)
        } else {
            owner_only::rename_to_free(&self.partial, &self.file)
        };
        match named.and_then(|()| owner_only::sync_entry(&self.file)) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(OpError::FileExists(self.file.clone()))
            }
            result => result.map_err(|source| cannot_make(&self.file, source)),
        }
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        // Where it was finished it has another name by now.
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
