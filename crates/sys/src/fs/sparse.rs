//! Sparse files: returns the disk space in the middle of a file to the filesystem, and copies files without their holes.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use rustix::fs::{FallocateFlags, SeekFrom, fallocate, seek};
use rustix::io::{Errno, retry_on_intr};

/// The maximum size of a part.
const PART_BYTES: usize = 256 << 10;

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
fn next_data(file: &File, from: u64) -> io::Result<Option<u64>> {
    match seek(file, SeekFrom::Data(from)) {
        Ok(at) => Ok(Some(at)),
        Err(Errno::NXIO) => Ok(None),
        Err(Errno::INVAL | Errno::OPNOTSUPP) => Ok(Some(from)),
        Err(error) => Err(error.into()),
    }
}

/// Reads what is written in a file, in parts with their offsets; holes are skipped. The last part is empty, and its offset
/// is the length of the file.
#[derive(Debug)]
pub struct Parts<'f> {
    file: &'f File,
    buffer: Vec<u8>,
    /// The end of the part that was read last; `None` after the last part.
    at: Option<u64>,
}

impl<'f> Parts<'f> {
    pub fn of(file: &'f File) -> Self {
        Self { file, buffer: vec![0; PART_BYTES], at: Some(0) }
    }

    pub fn next_part(&mut self) -> io::Result<Option<(u64, &[u8])>> {
        let Some(at) = self.at else {
            return Ok(None);
        };
        if let Some(offset) = next_data(self.file, at)? {
            let length = self.file.read_at(&mut self.buffer, offset)?;
            if length > 0 {
                self.at = Some(offset + length as u64);
                return Ok(Some((offset, &self.buffer[..length])));
            }
        }
        self.at = None;
        // The file may have been truncated meanwhile.
        Ok(Some((self.file.metadata()?.len().max(at), &[])))
    }
}

/// Writes a part to a new file.
pub fn write_part(file: &File, offset: u64, content: &[u8]) -> io::Result<()> {
    if content.is_empty() { file.set_len(offset) } else { file.write_all_at(content, offset) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_in_parts_is_equal_and_keeps_the_holes() {
        let (original, copy) = (tempfile::tempfile().expect("a file"), tempfile::tempfile().expect("a file"));
        let block = vec![7; PART_BYTES + 1];
        original.write_all_at(&block, 0).expect("it is written");
        original.write_all_at(b"end", 64 << 20).expect("it is written");
        original.set_len(65 << 20).expect("it grows");
        let (mut parts, mut offsets) = (Parts::of(&original), Vec::new());
        while let Some((offset, content)) = parts.next_part().expect("it is read") {
            write_part(&copy, offset, content).expect("it is written");
            offsets.push(offset);
        }
        assert_eq!((offsets.first(), offsets.last()), (Some(&0), Some(&(65 << 20))), "{offsets:?}");
        assert_eq!(copy.metadata().expect("a file").len(), 65 << 20);
        let read = |at: u64, length: usize| {
            let mut bytes = vec![0; length];
            copy.read_exact_at(&mut bytes, at).expect("it is read");
            bytes
        };
        assert!(read(0, block.len()) == block && read(64 << 20, 4) == b"end\0");
        if is_supported(&original) {
            assert!(offsets.len() < 8, "the hole is skipped: {offsets:?}");
        }
    }

    #[test]
    fn an_empty_file_has_one_empty_part() {
        let file = tempfile::tempfile().expect("a file");
        let mut parts = Parts::of(&file);
        assert_eq!(parts.next_part().expect("it is read"), Some((0, &[][..])));
        assert_eq!(parts.next_part().expect("it is read"), None);
    }
}
