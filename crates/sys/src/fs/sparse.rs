//! Sparse files: returns the disk space in the middle of a file to the filesystem.

use std::fs::File;
use std::io;

use rustix::fs::{FallocateFlags, SeekFrom, fallocate, seek};
use rustix::io::{Errno, retry_on_intr};

/// Frees the space of a range, which reads as zeros afterwards. The length of the file does not change.
pub fn punch_hole(file: &File, from: u64, length: u64) -> io::Result<()> {
    let how = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    Ok(retry_on_intr(|| fallocate(file, how, from, length))?)
}

/// Whether the filesystem supports holes: tried after the end of the file, where it changes nothing.
pub fn is_supported(file: &File) -> bool {
    const ANY_LENGTH: u64 = 4096;
    file.metadata().is_ok_and(|meta| punch_hole(file, meta.len(), ANY_LENGTH).is_ok())
}

/// The offset of the next written bytes, from this offset on; `None` if there are none. A filesystem without support for
/// holes reports that they start at this offset.
pub fn next_data(file: &File, from: u64) -> io::Result<Option<u64>> {
    match seek(file, SeekFrom::Data(from)) {
        Ok(at) => Ok(Some(at)),
        Err(Errno::NXIO) => Ok(None),
        Err(Errno::INVAL | Errno::OPNOTSUPP) => Ok(Some(from)),
        Err(error) => Err(error.into()),
    }
}
