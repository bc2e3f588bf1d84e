//! Rewriting a log after its attempt has ended: without the hole, and within the limit.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;

use super::{Boundary, LogFile, new_name};
use domain::log::{Entry, HEADER_BYTES, Header, MAX_ENTRY_BYTES, encode_cut_into, encode_into, entries};
use sys::fs::owner_only;

/// Where the kept end begins.
struct Resume {
    /// The offset of the first entry that is kept whole.
    offset: u64,
    /// How many bytes had been printed before the kept end.
    printed: u64,
    /// The kept part of the entry before it.
    part: Vec<u8>,
}

impl Resume {
    /// Skips `bytes` of output in these entries; returns how many bytes are left to skip.
    fn skip(&mut self, mut bytes: u64, read: &[u8]) -> io::Result<u64> {
        let mut reading = entries(read);
        while bytes > 0 {
            match reading.next() {
                None if reading.read() == 0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                None => break,
                Some(Err(error)) => return Err(io::Error::other(error)),
                // A job of the same user can have written any number into the file.
                Some(Ok(Entry::Cut { bytes })) => self.printed = self.printed.saturating_add(bytes),
                Some(Ok(Entry::Output(frame))) => {
                    let (skipped, kept) = frame.split_at(bytes);
                    encode_into(&mut self.part, kept);
                    self.printed = self.printed.saturating_add(skipped.printed());
                    bytes -= skipped.printed();
                }
            }
        }
        self.offset += reading.read() as u64;
        Ok(bytes)
    }
}

impl LogFile {
    pub(super) fn compact(&self) -> io::Result<()> {
        let new_path = new_name(&self.path);
        let written = self.write_compacted(&mut owner_only::replace_file(&new_path)?);
        let replaced = written.and_then(|()| std::fs::rename(&new_path, &self.path));
        if replaced.is_err() {
            let _ = std::fs::remove_file(&new_path);
        }
        replaced
    }

    fn write_compacted(&self, new: &mut File) -> io::Result<()> {
        let (Some(head), Some(first)) = (self.head, self.boundaries.front()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let resume = self.find_resume(*first)?;
        new.write_all(&Header::default().encode())?;
        self.copy(HEADER_BYTES as u64, head.offset, new)?;
        let mut between = Vec::new();
        encode_cut_into(&mut between, resume.printed - head.printed);
        between.extend_from_slice(&resume.part);
        new.write_all(&between)?;
        self.copy(resume.offset, self.end.offset, new)
    }

    /// Finds the point after `boundary` from which exactly as much output is left as may be kept.
    fn find_resume(&self, boundary: Boundary) -> io::Result<Resume> {
        let mut skip = self.end.written - self.tail_bytes() - boundary.written;
        let mut resume = Resume { offset: boundary.offset, printed: boundary.printed, part: Vec::new() };
        let mut buffer = vec![0; 4 * MAX_ENTRY_BYTES];
        while skip > 0 {
            let length = self.file.read_at(&mut buffer, resume.offset)?;
            skip = resume.skip(skip, &buffer[..length])?;
        }
        Ok(resume)
    }

    fn copy(&self, from: u64, to: u64, new: &mut File) -> io::Result<()> {
        let mut file = &self.file;
        file.seek(SeekFrom::Start(from))?;
        // If the end comes first, the file was changed by another process.
        let length = to.checked_sub(from).ok_or(io::ErrorKind::InvalidData)?;
        let copied = io::copy(&mut file.take(length), new)?;
        if copied < length { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
    }
}
