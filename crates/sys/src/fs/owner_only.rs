//! Folders and files that only their owner may look into.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{Access, CWD, Mode, OFlags, RenameFlags, access, open, renameat_with};
use rustix::io::Errno;

use super::ownership::{Flaw, NotOwn};
use crate::failpoint;

/// Makes a folder, and those above it, with mode 0700, so that they survive a power cut. What is there already is left
/// as it is.
pub fn create_folder(path: &Path) -> io::Result<()> {
    let folders = path.ancestors().take_while(|folder| !folder.as_os_str().is_empty());
    let (missing, found): (Vec<&Path>, Vec<&Path>) = folders.partition(|folder| !folder.exists());
    if let (false, Some(lowest)) = (missing.is_empty(), found.first()) {
        sync_found(lowest)?;
    }
    missing.into_iter().rev().try_for_each(add_folder)
}

/// Makes a folder in one that is there: for those who must not bring back a home that somebody deleted.
pub fn add_folder(path: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(path) {
        // It was there, or somebody else was quicker.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        result => result?,
    }
    failpoint::hit("folder.made");
    sync_entry(path)
}

/// Makes sure that what was just made at `path` is still listed in its folder after a power cut.
pub fn sync_entry(path: &Path) -> io::Result<()> {
    File::open(folder_of(path))?.sync_all()
}

/// The same for a folder that somebody else made: they may not have come to it yet, or have died before. Where it lies in
/// a folder that we may not read, or cannot sync, it is none that we would have made, and nothing can be done.
pub fn sync_found(folder: &Path) -> io::Result<()> {
    match sync_entry(folder) {
        Err(error) if is_beyond_us(&error) => Ok(()),
        result => result,
    }
}

fn is_beyond_us(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidInput, PermissionDenied, ReadOnlyFilesystem, Unsupported};
    matches!(error.kind(), InvalidInput | PermissionDenied | ReadOnlyFilesystem | Unsupported)
}

/// The folder that holds `path`.
pub fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Opens a file for reading and writing; where it is missing it is made with mode 0600. A link is not followed.
pub fn open_file(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    let no_links = OFlags::NOFOLLOW.bits().cast_signed();
    match options.custom_flags(no_links).open(path) {
        Err(error) if Errno::from_io_error(&error) == Some(Errno::LOOP) => {
            Err(io::Error::other(NotOwn { path: path.to_owned(), flaw: Flaw::Link }))
        }
        result => result,
    }
}

/// Opens a file for reading and for writing at its end; where it is missing it is made with mode 0600.
pub fn open_to_append(path: &Path) -> io::Result<File> {
    File::options().read(true).append(true).create(true).mode(0o600).open(path)
}

/// Makes a file with mode 0600 for reading and writing. What had that name before is gone, be it a link or whatever: it is
/// never written through.
pub fn replace_file(path: &Path) -> io::Result<File> {
    let create = || File::options().read(true).write(true).create_new(true).mode(0o600).open(path);
    match create() {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            std::fs::remove_file(path)?;
            create()
        }
        result => result,
    }
}

/// Gives a file a name that must be free.
pub fn rename_to_free(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // Not every filesystem can do both at once.
        Err(Errno::INVAL | Errno::NOSYS) if !to.exists() => std::fs::rename(from, to),
        Err(Errno::INVAL | Errno::NOSYS) => Err(io::ErrorKind::AlreadyExists.into()),
        result => Ok(result?),
    }
}

/// Opens a file for reading that somebody else may have put there: neither a link nor a pipe that nobody writes to leads
/// astray. `None` if it is not there, or no file.
pub fn open_regular(path: &Path) -> io::Result<Option<File>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match open(path, flags, Mode::empty()) {
        Ok(descriptor) => File::from(descriptor),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NXIO) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    Ok(file.metadata()?.is_file().then_some(file))
}

/// Whether this user may make files in a folder; the error says why not.
pub fn may_write_in(folder: &Path) -> io::Result<()> {
    Ok(access(folder, Access::WRITE_OK | Access::EXEC_OK)?)
}
