//! Reading the log file of an attempt, also while the worker is writing it.
//!
//! While the attempt runs, the writer may cut the middle out of a long log. It changes the header before the file, so
//! the reader reads the header last: the bytes read before it are valid unless the header says that they were cut.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::tail::{Tail, last_lines};
use super::{Piece, whole_pieces};
use crate::OpError;
use domain::log::{Cut, HEADER_BYTES, Header, LogError, MAX_ENTRY_BYTES, first_certain_entry};
use sys::fs::owner_only;

/// How many bytes one read requests.
const READ_BYTES: usize = 256 << 10;
const _: () = assert!(READ_BYTES >= MAX_ENTRY_BYTES, "an entry must fit, or the reader could not advance");
/// How often a damaged header is read again, because the worker may be writing it.
const HEADER_TRIES: u32 = 1_000;
/// How much of the end is searched for the last lines at first. If they are longer, the window grows.
const TAIL_BYTES: u64 = 4 * MAX_ENTRY_BYTES as u64;
const TAIL_GROWTH: u64 = 4;

#[derive(Debug)]
pub struct LogReader {
    file: File,
    path: PathBuf,
    /// The offset of the next entry.
    at: u64,
    /// How many bytes the command had printed before it; `None` if the reader began near the end.
    printed: Option<u64>,
    /// What had been cut out at the last read.
    cut: Option<Cut>,
    buffer: Vec<u8>,
}

/// Where a reader of a log file was.
#[derive(Clone, Debug)]
pub(super) struct FilePlace {
    inode: u64,
    at: u64,
    printed: Option<u64>,
    cut: Option<Cut>,
}

impl FilePlace {
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    /// Whether the output before it is the same with this cut.
    fn is_unchanged(&self, cut: Option<Cut>) -> bool {
        let is_before = |cut: Option<Cut>| cut.is_none_or(|cut| self.at <= cut.at);
        self.cut == cut || (is_before(self.cut) && is_before(cut))
    }
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
            printed: Some(0),
            cut: None,
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
            self.cut = header.cut;
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

    /// Where it is.
    pub(super) fn place(&self) -> Result<FilePlace, OpError> {
        let inode = self.file.metadata().map_err(|source| self.cannot_read(source))?.ino();
        Ok(FilePlace { inode, at: self.at, printed: self.printed, cut: self.cut })
    }

    /// Whether this reader has come from that place without missing a line that was counted before it.
    pub(super) fn is_after(&self, place: &FilePlace) -> bool {
        place.is_unchanged(self.cut)
    }

    /// Continues where another reader of the file was; `false` if the output before that place has been cut since.
    pub(super) fn resume(&mut self, place: &FilePlace) -> Result<bool, OpError> {
        let metadata = self.file.metadata().map_err(|source| self.cannot_read(source))?;
        let is_same = metadata.ino() == place.inode && metadata.len() >= place.at;
        let cut = self.header()?.and_then(|header| header.cut);
        if !is_same || !place.is_unchanged(cut) {
            return Ok(false);
        }
        (self.at, self.printed, self.cut) = (place.at, place.printed, cut);
        Ok(true)
    }

    /// Decodes the complete entries. An incomplete one is read again from its beginning next time.
    fn decode(&mut self, read: usize, pieces: &mut Vec<Piece>) -> Result<(), OpError> {
        let (found, taken) = whole_pieces(&self.buffer[..read]).map_err(|source| self.damaged(source))?;
        self.at += taken as u64;
        // A damaged file may contain any number.
        let printed = |before| found.iter().map(Piece::printed).fold(before, u64::saturating_add);
        self.printed = self.printed.map(printed);
        pieces.extend(found);
        Ok(())
    }

    fn skip(&mut self, cut: Cut, pieces: &mut Vec<Piece>) {
        // The number of skipped bytes in the file is nearly that of the output.
        let about = cut.resume_at.saturating_sub(self.at);
        let bytes = self.printed.map_or(about, |printed| cut.resume_printed.saturating_sub(printed));
        pieces.extend((bytes > 0).then_some(Piece::Cut { bytes }));
        self.at = cut.resume_at;
        self.printed = Some(cut.resume_printed);
    }

    /// Skips everything but the last lines, which are returned. Reads only the end of a long file.
    pub(crate) fn seek_tail(&mut self, tail: Tail) -> Result<Vec<Piece>, OpError> {
        let mut length = TAIL_BYTES;
        loop {
            let size = self.file.metadata().map_err(|source| self.cannot_read(source))?.len();
            let from = size.saturating_sub(length);
            let mut window = vec![0; usize::try_from(size - from).unwrap_or(usize::MAX)];
            let read = self.file.read_at(&mut window, from).map_err(|source| self.cannot_read(source))?;
            let begin = self.header()?.and_then(|header| header.cut).map_or(self.at, |cut| cut.resume_at);
            if from <= begin || read < window.len() {
                return self.read_to_tail(tail);
            }
            if let Some(lines) = self.tail_in(&window, from, tail) {
                return Ok(lines);
            }
            length = length.saturating_mul(TAIL_GROWTH);
        }
    }

    /// The last lines, if all of them are in this window, which begins at `from` and ends with the file.
    fn tail_in(&mut self, window: &[u8], from: u64, tail: Tail) -> Option<Vec<Piece>> {
        let first = first_certain_entry(window)?;
        let (pieces, taken) = whole_pieces(&window[first..]).ok()?;
        let (lines, is_enough) = last_lines(pieces, tail);
        if !is_enough {
            return None;
        }
        (self.at, self.printed) = (from + (first + taken) as u64, None);
        Some(lines)
    }

    /// Reads everything, and keeps the last lines.
    fn read_to_tail(&mut self, tail: Tail) -> Result<Vec<Piece>, OpError> {
        let mut lines = Vec::new();
        loop {
            match self.read() {
                Ok(pieces) if pieces.is_empty() => return Ok(lines),
                Ok(pieces) => lines.extend(pieces),
                Err(error) if lines.is_empty() => return Err(error),
                // The next read reports it.
                Err(_) => return Ok(lines),
            }
            lines = last_lines(lines, tail).0;
        }
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
