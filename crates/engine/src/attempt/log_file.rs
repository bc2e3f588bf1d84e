//! The log file of one attempt, while it is written.
//!
//! Entries are only ever appended, so that whoever follows the file reads it like any other. Of a long output its
//! beginning and its end are kept, half of the limit each:
//!
//! ```text
//! header │ beginning │░░░░░ cut: a hole ░░░░░│ end ──▶ grows
//!                    ▲ cut.at                ▲ cut.resume_at
//! ```
//!
//! When there is too much behind the beginning, `resume_at` moves on to a later entry: first the header says so, then the
//! space before it is given back. A reader that looks at the header *after* it has read some entries therefore knows
//! whether they were whole. When the attempt is over, the file is written anew without the hole, and with exactly as much
//! as the limit allows. On a filesystem that knows no holes only the beginning is kept.
//!
//! Nothing here fails an attempt: what cannot be written is counted, and a mark says so where the output goes on.
//! A file has no length limit but the filesystem's (ext4: 16 TiB, beyond which the rest counts as cut).

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

/// How long a file that could not be written to is left alone.
pub(crate) const RETRY_AFTER: Duration = Duration::from_secs(1);
/// The least that is cut in one go: a system call for every few bytes would be dear.
const MIN_STEP_BYTES: u64 = 256 << 10;
/// In how many steps the end is renewed.
const STEPS: u64 = 8;

#[derive(Debug)]
pub(crate) struct LogFile {
    file: File,
    path: PathBuf,
    max_bytes: u64,
    /// How much of `max_bytes` is for the beginning.
    head_bytes: u64,
    /// Where the next entry goes.
    end: Place,
    /// Where the beginning ends, once it does.
    head: Option<Place>,
    /// Boundaries of entries behind the beginning, a step apart. What is before the first of them is cut.
    places: VecDeque<Place>,
    /// The header or the hole is behind the first of `places`.
    owes_cut: bool,
    /// Printed since `end`, but not written.
    dropped: u64,
    writing: Writing,
    scratch: Vec<u8>,
}

/// A boundary between entries.
#[derive(Clone, Copy, Debug)]
struct Place {
    offset: u64,
    /// How many bytes had been printed there.
    printed: u64,
    /// How many of them were written.
    written: u64,
}

#[derive(Clone, Copy, Debug)]
enum Writing {
    On,
    /// It failed: not again before this moment.
    From(Instant),
    /// Only the beginning can be kept, and it is.
    Full,
    /// Half of an entry stands at the end and could not be taken away: nothing may ever follow it.
    Broken,
}

impl LogFile {
    /// Makes the file, and its folder if that is missing.
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
            end: Place { offset: HEADER_BYTES as u64, printed: 0, written: 0 },
            head: None,
            places: VecDeque::new(),
            owes_cut: false,
            dropped: 0,
            writing: Writing::On,
            scratch: Vec::new(),
        })
    }

    pub(crate) fn append(&mut self, frame: Frame<'_>, now: Instant) {
        let mut rest = frame;
        while rest.printed() > 0 && self.may_write(now) {
            let (part, others) = rest.split_at(self.room_for_one());
            match self.make_room().and_then(|()| self.write(part)) {
                Ok(()) => rest = others,
                Err(_) => self.leave_alone(now),
            }
        }
        self.dropped += rest.printed();
    }

    /// Counts bytes that were printed and are lost.
    pub(crate) fn drop_bytes(&mut self, bytes: u64) {
        self.dropped += bytes;
    }

    /// Ends the file; returns how many bytes of output it keeps.
    pub(crate) fn finish(mut self) -> u64 {
        if self.dropped > 0 && !matches!(self.writing, Writing::Broken) {
            let nothing = Frame { stream: Stream::Out, at: Duration::ZERO, bytes: &[] };
            // Where even the mark cannot be written there is no way to say so.
            let _ = self.write(nothing);
        }
        if self.end.written <= self.max_bytes {
            return self.end.written;
        }
        match self.compact() {
            Ok(()) => self.max_bytes,
            // It is a little too long then, but it can be read.
            Err(_) => self.end.written - self.cut_bytes(),
        }
    }

    /// Takes the file away: all of it is kept elsewhere. Who has it open can read it to its end.
    pub(crate) fn remove(self) {
        let _ = std::fs::remove_file(&self.path);
    }

    fn tail_bytes(&self) -> u64 {
        self.max_bytes - self.head_bytes
    }

    fn step_bytes(&self) -> u64 {
        (self.tail_bytes() / STEPS).max(MIN_STEP_BYTES)
    }

    /// Written and given up again.
    fn cut_bytes(&self) -> u64 {
        match (self.head, self.places.front()) {
            (Some(head), Some(resume)) => resume.written - head.written,
            (None, _) | (_, None) => 0,
        }
    }

    fn may_write(&mut self, now: Instant) -> bool {
        match self.writing {
            Writing::Full | Writing::Broken => return false,
            Writing::From(at) if now < at => return false,
            Writing::On | Writing::From(_) => self.writing = Writing::On,
        }
        if self.head.is_none() && self.end.written == self.head_bytes {
            self.end_head();
        }
        matches!(self.writing, Writing::On)
    }

    fn leave_alone(&mut self, now: Instant) {
        if matches!(self.writing, Writing::On) {
            self.writing = Writing::From(now + RETRY_AFTER);
        }
    }

    /// How much the next frame may hold: the beginning ends exactly where it has to.
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
            self.writing = Writing::Full;
        }
    }

    /// Sees to it that the end does not grow beyond what is allowed.
    fn make_room(&mut self) -> io::Result<()> {
        let Some(head) = self.head else {
            return Ok(());
        };
        let (written, step) = (self.end.written, self.step_bytes());
        if self.places.back().is_none_or(|last| written - last.written >= step) {
            self.places.push_back(self.end);
        }
        let is_too_long = |first: &Place| written - first.written > self.tail_bytes() + 2 * step;
        if self.places.front().is_some_and(is_too_long) {
            let later = self.places.iter().rposition(|place| written - place.written >= self.tail_bytes());
            self.places.drain(..later.unwrap_or(0));
            self.owes_cut = true;
        }
        if self.owes_cut {
            self.cut(head)?;
        }
        Ok(())
    }

    /// The header first: nobody must take the hole for output.
    fn cut(&mut self, head: Place) -> io::Result<()> {
        let resume = self.places[0];
        let cut = Cut { at: head.offset, resume_at: resume.offset, resume_printed: resume.printed };
        self.file.write_all_at(&Header { cut: Some(cut) }.encode(), 0)?;
        // All of it each time: the ends of a hole keep their block, and blocks must not be left behind at every step.
        sparse::punch_hole(&self.file, head.offset, resume.offset - head.offset)?;
        self.owes_cut = false;
        Ok(())
    }

    /// Writes a frame, and before it a mark for what was lost.
    fn write(&mut self, frame: Frame<'_>) -> io::Result<()> {
        self.scratch.clear();
        encode_cut_into(&mut self.scratch, self.dropped);
        encode_into(&mut self.scratch, frame);
        if let Err(error) = self.file.write_all_at(&self.scratch, self.end.offset) {
            if self.file.set_len(self.end.offset).is_err() {
                self.writing = Writing::Broken;
            }
            return Err(error);
        }
        self.end = Place {
            offset: self.end.offset + self.scratch.len() as u64,
            printed: self.end.printed + self.dropped + frame.printed(),
            written: self.end.written + frame.printed(),
        };
        self.dropped = 0;
        Ok(())
    }
}

/// The name under which a file is written that will take the place of another.
fn new_name(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    name.into()
}
