//! Holes: giving the disk space in the middle of a file back.

use std::fs::File;
use std::io;

use rustix::fs::{FallocateFlags, SeekFrom, fallocate, seek};
use rustix::io::{Errno, retry_on_intr};

/// What is there reads as zeros from now on and takes no space. The length of the file stays as it is.
pub fn punch(file: &File, from: u64, length: u64) -> io::Result<()> {
    let how = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    Ok(retry_on_intr(|| fallocate(file, how, from, length))?)
}

/// Whether the filesystem can do that: tried where it changes nothing, behind the end.
pub fn is_supported(file: &File) -> bool {
    const ANY_LENGTH: u64 = 4096;
    file.metadata().is_ok_and(|meta| punch(file, meta.len(), ANY_LENGTH).is_ok())
}

/// Where the next bytes are that were written, from this offset on; `None`: there are none. A filesystem that knows no
/// holes says that they begin at once.
pub fn next_data(file: &File, from: u64) -> io::Result<Option<u64>> {
    match seek(file, SeekFrom::Data(from)) {
        Ok(at) => Ok(Some(at)),
        Err(Errno::NXIO) => Ok(None),
        Err(Errno::INVAL | Errno::OPNOTSUPP) => Ok(Some(from)),
        Err(error) => Err(error.into()),
    }
}
