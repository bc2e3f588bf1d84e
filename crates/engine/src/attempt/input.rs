//! The standard input of a command.

use std::fs::File;
use std::io;
use std::io::{Seek, Write};

use rustix::fs::{MemfdFlags, memfd_create};

/// A file in memory: unlike a pipe it takes all of the input at once, so the worker does not wait for the reader.
pub(crate) fn readable(bytes: &[u8]) -> io::Result<File> {
    let mut file = File::from(memfd_create("queuectl-input", MemfdFlags::CLOEXEC)?);
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file)
}
