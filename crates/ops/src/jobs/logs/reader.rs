//! Reading the log file of an attempt, also while the worker is writing it.
//!
//! While the attempt runs, the writer may cut the middle out of a long log. It changes the header before the file, so
//! the reader reads the header last: the bytes read before it are valid unless the header says that they were cut.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::{Piece, whole_pieces};
use crate::OpError;
use domain::log::{Cut, HEADER_BYTES, Header, LogError, MAX_ENTRY_BYTES};
use sys::fs::owner_only;

/// How many bytes one read requests.
const READ_BYTES: usize = 256 << 10;
const _: () = assert!(READ_BYTES >= MAX_ENTRY_BYTES, "an entry must fit, or the reader could not advance");
/// How often a damaged header is read again, because the worker may be writing it.
const HEADER_TRIES: u32 = 1_000;

#[derive(Debug)]
pub struct LogReader {
    file: File,
    path: PathBuf,
    /// The offset of the next entry.
    at: u64,
    /// How many bytes the command had printed before it.
    printed: u64,
    buffer: Vec<u8>,
}

impl LogReader {
    /// `None` if the file does not exist.
    pub fn open(path: &Path) -> Result<Option<Self>, OpError> {
        let cannot_read = |source| OpError::CannotReadLog { path: path.to_owned(), source };
        let file = owner_only::open_regular(path).map_err(cannot_read)?;
        Ok(file.map(|file| Self {
            file,
            path: path.to_owned(),
            at: HEADER_BYTES as u64,
            printed: 0,
            buffer: vec![0; READ_BYTES],
        }))
    }

    /// The next pieces; empty if there is nothing more for now.
    pub fn read(&mut self) -> Result<Vec<Piece>, OpError> {
        let mut pieces = Vec::new();
        loop {
            let read =
                self.file.read_at(&mut self.buffer, self.at).map_err(|source| self.cannot_read(source))?;
            let Some(header) = self.header()? else {
                return Ok(pieces);
            };
            let Some(cut) = header.cut.filter(|cut| self.at < cut.resume_at) else {
                self.decode(read, &mut pieces)?;
                return Ok(pieces);
            };
            if self.at < cut.at {
                let before_cut = usize::try_from(cut.at - self.at).unwrap_or(usize::MAX);
                self.decode(read.min(before_cut), &mut pieces)?;
            }
            if self.at < cut.at {
                return Ok(pieces);
            }
            self.skip(cut, &mut pieces);
        }
    }

    /// Decodes the complete entries. An incomplete one is read again from its beginning next time.
    fn decode(&mut self, read: usize, pieces: &mut Vec<Piece>) -> Result<(), OpError> {
        let (found, taken) = whole_pieces(&self.buffer[..read]).map_err(|source| self.damaged(source))?;
        self.at += taken as u64;
        // A damaged file may contain any number.
        self.printed = found.iter().map(Piece::printed).fold(self.printed, u64::saturating_add);
        pieces.extend(found);
        Ok(())
    }

    fn skip(&mut self, cut: Cut, pieces: &mut Vec<Piece>) {
        let bytes = cut.resume_printed.saturating_sub(self.printed);
        pieces.extend((bytes > 0).then_some(Piece::Cut { bytes }));
        self.at = cut.resume_at;
        self.printed = cut.resume_printed;
    }

    /// `None` if the header has not been written yet.
    fn header(&self) -> Result<Option<Header>, OpError> {
        let mut tries = 0;
        loop {
            let mut bytes = [0; HEADER_BYTES];
            match self.file.read_exact_at(&mut bytes, 0) {
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
                result => result.map_err(|source| self.cannot_read(source))?,
            }
            tries += 1;
            match Header::decode(&bytes) {
                Ok(header) => return Ok(Some(header)),
                Err(LogError::Damaged) if tries < HEADER_TRIES => std::thread::yield_now(),
                Err(source) => return Err(self.damaged(source)),
            }
        }
    }

    fn cannot_read(&self, source: io::Error) -> OpError {
        OpError::CannotReadLog { path: self.path.clone(), source }
    }

    fn damaged(&self, source: LogError) -> OpError {
        OpError::DamagedLog { path: self.path.clone(), source }
    }
}
