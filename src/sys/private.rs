//! Folders and files that only their owner may look into.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Makes a folder, and those above it, with mode 0700, so that they survive a power cut. What is there already is left
/// as it is.
pub fn create_folder(path: &Path) -> io::Result<()> {
    let missing: Vec<&Path> =
        path.ancestors().take_while(|folder| !folder.as_os_str().is_empty() && !folder.exists()).collect();
    for folder in missing.into_iter().rev() {
        match DirBuilder::new().mode(0o700).create(folder) {
            // Somebody else was quicker.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            result => result?,
        }
        sync_entry(folder)?;
    }
    Ok(())
}

/// Makes sure that what was just made at `path` is still listed in its folder after a power cut.
pub fn sync_entry(path: &Path) -> io::Result<()> {
    File::open(folder_of(path))?.sync_all()
}

/// The folder that holds `path`.
pub fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Opens a file for reading and writing; where it is missing it is made with mode 0600.
pub fn open_file(path: &Path) -> io::Result<File> {
    File::options().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}

/// Opens a file for reading and for writing at its end; where it is missing it is made with mode 0600.
pub fn open_to_append(path: &Path) -> io::Result<File> {
    File::options().read(true).append(true).create(true).mode(0o600).open(path)
}

/// Whether `path` is a folder of the user who runs this process.
pub fn is_own_folder(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.is_dir() && meta.uid() == rustix::process::geteuid().as_raw())
}
