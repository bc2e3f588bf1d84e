//! The log file of one attempt, while it is written.
//!
//! Entries are only appended, so that a reader can follow the file like any other. Of long output the start and the end
//! are kept, half of the limit each:
//!
//! ```text
//! header │ start     │░░░░░ cut: a hole ░░░░░│ end ──▶ grows
//!                    ▲ cut.at                ▲ cut.resume_at
//! ```
//!
//! When there is too much output after the start, `resume_at` moves to a later entry: first in the header, then the
//! space before it is freed. A reader that reads the header *after* some entries therefore knows whether they were
//! intact. When the attempt has ended, the file is rewritten without the hole, and with exactly as much output as the
//! limit allows. On a filesystem without support for holes only the start is kept.
//!
//! No error here fails an attempt: output that cannot be written is counted, and a mark in the file says how much is
//! missing. The length of a file is limited only by the filesystem (ext4: 16 TiB, beyond which the rest counts as cut).

mod compact;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use domain::log::{Cut, Frame, HEADER_BYTES, Header, MAX_FRAME_BYTES, Stream, encode_cut_into, encode_into};
use sys::fs::{owner_only, sparse};

/// How long to wait before writing to a file again after an error.
pub(crate) const RETRY_AFTER: Duration = Duration::from_secs(1);
/// How much is cut at once at least: a system call for every few bytes would be expensive.
const MIN_STEP_BYTES: u64 = 256 << 10;
/// In how many steps the kept end is replaced.
const TAIL_STEPS: u64 = 8;

#[derive(Debug)]
pub(crate) struct LogFile {
    file: File,
    path: PathBuf,
    max_bytes: u64,
    /// How much of `max_bytes` is reserved for the start.
    head_bytes: u64,
    /// Where the next entry goes.
    end: Boundary,
    /// Where the start ends, once it is complete.
    head: Option<Boundary>,
    /// Boundaries of entries after the start, one step apart. Everything before the first of them is cut.
    boundaries: VecDeque<Boundary>,
    /// The header or the hole does not yet match the first of `boundaries`.
    cut_pending: bool,
    /// Bytes printed since `end`, but not written.
    dropped: u64,
    write_state: WriteState,
    scratch: Vec<u8>,
}

/// A boundary between entries.
#[derive(Clone, Copy, Debug)]
struct Boundary {
    offset: u64,
    /// How many bytes had been printed up to here.
    printed: u64,
    /// How many of them were written.
    written: u64,
}

#[derive(Clone, Copy, Debug)]
enum WriteState {
    Enabled,
    /// A write failed: try again at this moment.
    SuspendedUntil(Instant),
    /// Only the start can be kept, and it is complete.
    Full,
    /// The file ends with a partial entry that could not be removed: nothing may follow it.
    Broken,
}

impl LogFile {
    /// Creates the file, and its folder if that is missing.
    pub(crate) fn create(path: PathBuf, max_bytes: u64) -> io::Result<Self> {
        let file = match owner_only::replace_file(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                owner_only::add_folder(owner_only::folder_of(&path))?;
                owner_only::replace_file(&path)?
            }
            result => result?,
        };
        if let Err(error) = file.write_all_at(&Header::default().encode(), 0) {
            let _ = std::fs::remove_file(&path);
            return Err(error);
        }
        Ok(Self {
            file,
            path,
            max_bytes,
            head_bytes: max_bytes - max_bytes / 2,
            end: Boundary { offset: HEADER_BYTES as u64, printed: 0, written: 0 },
            head: None,
            boundaries: VecDeque::new(),
            cut_pending: false,
            dropped: 0,
            write_state: WriteState::Enabled,
            scratch: Vec::new(),
        })
    }

    pub(crate) fn append(&mut self, frame: Frame<'_>, now: Instant) {
        let mut rest = frame;
        while rest.printed() > 0 && self.may_write(now) {
            let (part, others) = rest.split_at(self.room_for_one());
            match self.make_room().and_then(|()| self.write(part)) {
                Ok(()) => rest = others,
                Err(_) => self.suspend_writing(now),
            }
        }
        self.dropped += rest.printed();
    }

    /// Counts bytes that were printed and are lost.
    pub(crate) fn drop_bytes(&mut self, bytes: u64) {
        self.dropped += bytes;
    }

    /// Completes the file; returns how many bytes of output it keeps.
    pub(crate) fn finish(mut self) -> u64 {
        self.mark_dropped();
        if self.end.written <= self.max_bytes {
            return self.end.written;
        }
        match self.compact() {
            Ok(()) => self.max_bytes,
            // Then it is a little too long, but still readable.
            Err(_) => self.end.written - self.cut_bytes(),
        }
    }

    /// As [`Self::finish`], but leaves every entry where it is.
    pub(crate) fn finish_in_place(mut self) -> u64 {
        self.mark_dropped();
        self.end.written - self.cut_bytes()
    }

    fn mark_dropped(&mut self) {
        if self.dropped > 0 && !matches!(self.write_state, WriteState::Broken) {
            let nothing = Frame { stream: Stream::Out, at: Duration::ZERO, bytes: &[] };
            // If even the mark cannot be written, the loss cannot be shown.
            let _ = self.write(nothing);
        }
    }

    /// Removes the file, because its contents are stored elsewhere. A reader that has it open can read it to its end.
    pub(crate) fn remove(self) {
        let _ = std::fs::remove_file(&self.path);
    }

    fn tail_bytes(&self) -> u64 {
        self.max_bytes - self.head_bytes
    }

    fn step_bytes(&self) -> u64 {
        (self.tail_bytes() / TAIL_STEPS).max(MIN_STEP_BYTES)
    }

    /// How many bytes were written and cut again.
    fn cut_bytes(&self) -> u64 {
        match (self.head, self.boundaries.front()) {
            (Some(head), Some(resume)) => resume.written - head.written,
            (None, _) | (_, None) => 0,
        }
    }

    fn may_write(&mut self, now: Instant) -> bool {
        match self.write_state {
            WriteState::Full | WriteState::Broken => return false,
            WriteState::SuspendedUntil(at) if now < at => return false,
            WriteState::Enabled | WriteState::SuspendedUntil(_) => self.write_state = WriteState::Enabled,
        }
        if self.head.is_none() && self.end.written == self.head_bytes {
            self.end_head();
        }
        matches!(self.write_state, WriteState::Enabled)
    }

    fn suspend_writing(&mut self, now: Instant) {
        if matches!(self.write_state, WriteState::Enabled) {
            self.write_state = WriteState::SuspendedUntil(now + RETRY_AFTER);
        }
    }

    /// The limit of the next frame: the start ends exactly at `head_bytes`.
    fn room_for_one(&self) -> u64 {
        match self.head {
            Some(_) => MAX_FRAME_BYTES as u64,
            None => (self.head_bytes - self.end.written).min(MAX_FRAME_BYTES as u64),
        }
    }

    fn end_head(&mut self) {
        if sparse::is_supported(&self.file) {
            self.head = Some(self.end);
        } else if self.head_bytes < self.max_bytes {
            self.head_bytes = self.max_bytes;
        } else {
            self.write_state = WriteState::Full;
        }
    }

    /// Cuts output, so that the end does not exceed its limit.
    fn make_room(&mut self) -> io::Result<()> {
        let Some(head) = self.head else {
            return Ok(());
        };
        let (written, step) = (self.end.written, self.step_bytes());
        if self.boundaries.back().is_none_or(|last| written - last.written >= step) {
            self.boundaries.push_back(self.end);
        }
        let is_too_long = |first: &Boundary| written - first.written > self.tail_bytes() + 2 * step;
        if self.boundaries.front().is_some_and(is_too_long) {
            let later =
                self.boundaries.iter().rposition(|boundary| written - boundary.written >= self.tail_bytes());
            self.boundaries.drain(..later.unwrap_or(0));
            self.cut_pending = true;
        }
        if self.cut_pending {
            self.cut(head)?;
        }
        Ok(())
    }

    /// Writes the header first, so that no reader takes the hole for output.
    fn cut(&mut self, head: Boundary) -> io::Result<()> {
        let resume = self.boundaries[0];
        let cut = Cut { at: head.offset, resume_at: resume.offset, resume_printed: resume.printed };
        self.file.write_all_at(&Header { cut: Some(cut) }.encode(), 0)?;
        // The whole range each time: the blocks at both ends of a hole stay allocated, and would add up at every step.
        sparse::punch_hole(&self.file, head.offset, resume.offset - head.offset)?;
        self.cut_pending = false;
        Ok(())
    }

    /// Writes a frame, and before it a mark for lost output.
    fn write(&mut self, frame: Frame<'_>) -> io::Result<()> {
        self.scratch.clear();
        encode_cut_into(&mut self.scratch, self.dropped);
        encode_into(&mut self.scratch, frame);
        if let Err(error) = self.file.write_all_at(&self.scratch, self.end.offset) {
            if self.file.set_len(self.end.offset).is_err() {
                self.write_state = WriteState::Broken;
            }
            return Err(error);
        }
        self.end = Boundary {
            offset: self.end.offset + self.scratch.len() as u64,
            printed: self.end.printed + self.dropped + frame.printed(),
            written: self.end.written + frame.printed(),
        };
        self.dropped = 0;
        Ok(())
    }
}

/// The temporary name of a file that will replace another.
fn new_name(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    name.into()
}
