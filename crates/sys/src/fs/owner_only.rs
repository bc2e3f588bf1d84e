//! Directories and files that only their owner can access. Root creates and opens those of another user's home with the
//! rights of that user; see [`OwnerAccess`].

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{Access, CWD, Mode, OFlags, RenameFlags, access, open, renameat_with};
use rustix::io::Errno;

use super::owner_access::OwnerAccess;
use super::ownership;
use super::ownership::{OwnershipError, OwnershipProblem};
use crate::failpoint;
use crate::host::FileId;

/// Creates a directory and its missing parents with mode 0700, and syncs them, so that they survive a power failure.
/// Existing ones are left as they are.
pub fn create_folder(path: &Path) -> io::Result<()> {
    let folders = path.ancestors().take_while(|folder| !folder.as_os_str().is_empty());
    let (missing, found): (Vec<&Path>, Vec<&Path>) = folders.partition(|folder| !folder.exists());
    if let (false, Some(lowest)) = (missing.is_empty(), found.first()) {
        sync_found(lowest)?;
    }
    missing.into_iter().rev().try_for_each(add_folder)
}

/// Creates a directory in an existing one: for callers that must not recreate a home that was deleted.
pub fn add_folder(path: &Path) -> io::Result<()> {
    let access = OwnerAccess::take()?;
    match DirBuilder::new().mode(0o700).create(path) {
        // It existed, or another process was faster.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        result => result?,
    }
    drop(access);
    failpoint::hit("folder.made");
    sync_entry(path)
}

/// Syncs the directory that contains `path`, so that the new entry survives a power failure.
pub fn sync_entry(path: &Path) -> io::Result<()> {
    File::open(folder_of(path))?.sync_all()
}

/// As [`sync_entry`], for a directory that another process created: it may not have synced it yet, or have died before. If
/// the parent cannot be read or synced by us, we would not have created the directory, and nothing can be done.
pub fn sync_found(folder: &Path) -> io::Result<()> {
    match sync_entry(folder) {
        Err(error) if is_not_permitted(&error) => Ok(()),
        result => result,
    }
}

fn is_not_permitted(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidInput, PermissionDenied, ReadOnlyFilesystem, Unsupported};
    matches!(error.kind(), InvalidInput | PermissionDenied | ReadOnlyFilesystem | Unsupported)
}

/// The directory that contains `path`.
pub fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Whether the path still leads to this open file.
pub fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    match path.metadata() {
        Ok(there) => Ok(FileId::from(there) == FileId::from(file.metadata()?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Opens a file for reading and writing, and creates it with mode 0600 if it is missing. A symlink is not followed.
pub fn open_file(path: &Path) -> io::Result<File> {
    open_or_add(path, File::options().read(true).write(true))
}

/// As [`open_file`], for reading and appending.
pub fn open_to_append(path: &Path) -> io::Result<File> {
    open_or_add(path, File::options().read(true).append(true))
}

/// What is checked is the file that was opened, never the path: its owner can replace the file at any moment.
fn open_or_add(path: &Path, options: &OpenOptions) -> io::Result<File> {
    let _access = OwnerAccess::take()?;
    loop {
        match options.clone().custom_flags(OFlags::NOFOLLOW.bits().cast_signed()).open(path) {
            // The check is for homes of others only.
            Ok(file) if ownership::accepted().is_none() => return Ok(file),
            Ok(file) => {
                let checked = ownership::check_opened(path, &file.metadata()?);
                return checked.map(|()| file).map_err(io::Error::other);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(refusal(path, error)),
        }
        match options.clone().create_new(true).mode(0o600).open(path) {
            // Another process was faster.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            result => return result,
        }
    }
}

/// Says why a file was not opened, if its kind or its owner is the reason.
fn refusal(path: &Path, error: io::Error) -> io::Error {
    if Errno::from_io_error(&error) == Some(Errno::LOOP) {
        let problem = OwnershipProblem::Link;
        return io::Error::other(OwnershipError { path: path.to_owned(), problem });
    }
    let found = path.symlink_metadata().ok().filter(|_| error.kind() == io::ErrorKind::PermissionDenied);
    match found.map(|meta| ownership::check_opened(path, &meta)) {
        Some(Err(refused)) => io::Error::other(refused),
        Some(Ok(())) | None => error,
    }
}

/// Creates a file with mode 0600 for reading and writing. An existing file or link with that name is removed and never
/// written through.
pub fn replace_file(path: &Path) -> io::Result<File> {
    let _access = OwnerAccess::take()?;
    let create = || File::options().read(true).write(true).create_new(true).mode(0o600).open(path);
    match create() {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            std::fs::remove_file(path)?;
            create()
        }
        result => result,
    }
}

/// Renames a file to a name that must not exist.
pub fn rename_to_free(from: &Path, to: &Path) -> io::Result<()> {
    let _access = OwnerAccess::take()?;
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // Some filesystems do not support RENAME_NOREPLACE.
        Err(Errno::INVAL | Errno::NOSYS) if !to.exists() => std::fs::rename(from, to),
        Err(Errno::INVAL | Errno::NOSYS) => Err(io::ErrorKind::AlreadyExists.into()),
        result => Ok(result?),
    }
}

/// Opens a file for reading that another user may have put there. It follows no symlink and does not block on a FIFO
/// without a writer. `None` if the file does not exist or is not a regular file.
pub fn open_regular(path: &Path) -> io::Result<Option<File>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match open(path, flags, Mode::empty()) {
        Ok(descriptor) => File::from(descriptor),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NXIO) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    Ok(file.metadata()?.is_file().then_some(file))
}

/// Whether this user can create files in a directory; the error says why not.
pub fn may_write_in(folder: &Path) -> io::Result<()> {
    Ok(access(folder, Access::WRITE_OK | Access::EXEC_OK)?)
}
