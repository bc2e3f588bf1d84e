//! Writing a log anew when its attempt is over: without the hole, and with no more than the limit allows.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;

use super::{LogFile, Place, new_name};
use domain::log::{Entry, HEADER_BYTES, Header, MAX_ENTRY_BYTES, encode_cut_into, encode_into, entries};
use sys::fs::owner_only;

/// Where the end that is kept begins.
struct Resume {
    /// The first entry that is kept whole.
    offset: u64,
    /// How many bytes had been printed before what is kept.
    printed: u64,
    /// The last part of the entry before it.
    part: Vec<u8>,
}

impl Resume {
    /// Goes on over as many of these entries as it takes; returns how many bytes are left to be skipped.
    fn skip(&mut self, mut bytes: u64, read: &[u8]) -> io::Result<u64> {
        let mut reading = entries(read);
        while bytes > 0 {
            match reading.next() {
                None if reading.read() == 0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                None => break,
                Some(Err(error)) => return Err(io::Error::other(error)),
                // Whoever shares our user can have written any number into it.
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
        let (Some(head), Some(first)) = (self.head, self.places.front()) else {
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

    /// Goes on from `place` to where exactly as much is left as may be kept.
    fn find_resume(&self, place: Place) -> io::Result<Resume> {
        let mut skip = self.end.written - self.tail_bytes() - place.written;
        let mut resume = Resume { offset: place.offset, printed: place.printed, part: Vec::new() };
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
        // Where it does not go on before its end, it is not what was written.
        let length = to.checked_sub(from).ok_or(io::ErrorKind::InvalidData)?;
        let copied = io::copy(&mut file.take(length), new)?;
        if copied < length { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
    }
}
