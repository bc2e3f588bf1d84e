//! The stored output of an attempt: a sequence of entries in the order in which they were printed.
//!
//! An entry is a frame of output, or a mark for missing output. Numbers are little-endian base 128 (seven bits per byte;
//! the high bit says that more bytes follow), so that the frame of a short line costs two or three bytes:
//!
//! ```text
//! frame   (milliseconds since the attempt's start << 1) + stream · length, at least 1 · bytes
//! cut     0 · 0 · number of missing bytes, at least 1
//! ```
//!
//! Small outputs are stored with their attempt as bare entries; a log file has a [`Header`] before them. An entry is
//! readable once all of it has been written: readers ignore an incomplete last entry. A sparse region, which reads as
//! zeros, is not a valid entry.

mod boundary;
mod header;
#[cfg(test)]
mod tests;

pub use boundary::first_certain_entry;
pub use header::{Cut, HEADER_BYTES, Header};

use std::time::Duration;

/// The directory of log files in a home.
pub const FOLDER: &str = "logs";
/// The most output that one frame holds. Longer output takes several frames.
pub const MAX_FRAME_BYTES: usize = 64 << 10;
/// The longest entry: a frame of maximum length with the maximum time.
pub const MAX_ENTRY_BYTES: usize = MAX_FRAME_BYTES + 9;
/// The maximum time since the start, 69 years. Later times are written as this.
const MAX_MILLIS: u64 = (1 << 41) - 1;

/// The name of an attempt's log file. It uses the job's number, because an id must never become a file name.
pub fn file_name(job_number: u64, attempt: u32) -> String {
    format!("{job_number}-{attempt}.log")
}

/// The job's number and the attempt of a log file; `None` if this is not the name of a log file.
pub fn parse_file_name(name: &str) -> Option<(u64, u32)> {
    let (number, attempt) = name.strip_suffix(".log")?.split_once('-')?;
    let (number, attempt) = (number.parse().ok()?, attempt.parse().ok()?);
    (file_name(number, attempt) == name).then_some((number, attempt))
}

crate::named_enum! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Stream {
        Out = "stdout",
        Err = "stderr",
    }
}

/// A piece of output from one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    pub stream: Stream,
    /// Since the attempt's start.
    pub at: Duration,
    pub bytes: &'a [u8],
}

impl Frame<'_> {
    /// The number of output bytes.
    pub fn printed(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// The first `count` bytes, and the rest.
    #[must_use]
    pub fn split_at(self, count: u64) -> (Self, Self) {
        let at = usize::try_from(count).unwrap_or(usize::MAX).min(self.bytes.len());
        let (first, rest) = self.bytes.split_at(at);
        (Self { bytes: first, ..self }, Self { bytes: rest, ..self })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry<'a> {
    Output(Frame<'a>),
    /// This many bytes of output were not kept.
    Cut {
        bytes: u64,
    },
}

/// Why a log cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    #[error("not a log file")]
    NotALog,
    #[error("the log was written by a newer version of queuectl")]
    TooNew,
    /// Bytes that no version of queuectl writes.
    #[error("the log is damaged")]
    Damaged,
}

/// Appends a frame, or several if it is long. An empty frame appends nothing.
pub fn encode_into(out: &mut Vec<u8>, frame: Frame<'_>) {
    let millis = u64::try_from(frame.at.as_millis()).unwrap_or(u64::MAX).min(MAX_MILLIS);
    let stream = match frame.stream {
        Stream::Out => 0,
        Stream::Err => 1,
    };
    for bytes in frame.bytes.chunks(MAX_FRAME_BYTES) {
        push_number(out, millis << 1 | stream);
        push_number(out, bytes.len() as u64);
        out.extend_from_slice(bytes);
    }
}

/// Appends a mark for `bytes` missing bytes. If none are missing, it appends nothing.
pub fn encode_cut_into(out: &mut Vec<u8>, bytes: u64) {
    if bytes > 0 {
        out.extend_from_slice(&[0, 0]);
        push_number(out, bytes);
    }
}

/// Iterates over the complete entries.
pub fn entries(bytes: &[u8]) -> Entries<'_> {
    Entries { bytes, read: 0, is_damaged: false }
}

#[derive(Clone, Debug)]
pub struct Entries<'a> {
    bytes: &'a [u8],
    read: usize,
    is_damaged: bool,
}

impl Entries<'_> {
    /// The length of the entries read so far. An incomplete entry may follow.
    pub fn read(&self) -> usize {
        self.read
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = Result<Entry<'a>, LogError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_damaged {
            return None;
        }
        match decode(&self.bytes[self.read..]) {
            Ok((entry, length)) => {
                self.read += length;
                Some(Ok(entry))
            }
            Err(DecodeError::Incomplete) => None,
            Err(DecodeError::Damaged) => {
                self.is_damaged = true;
                Some(Err(LogError::Damaged))
            }
        }
    }
}

/// Keeps exactly the first `head` and the last `tail` bytes of output, with a mark between them.
pub fn keep_ends(frames: &[u8], head: u64, tail: u64) -> Vec<u8> {
    let frames_of = || {
        entries(frames).map_while(|entry| match entry {
            Ok(Entry::Output(frame)) => Some(frame),
            Ok(Entry::Cut { .. }) | Err(_) => None,
        })
    };
    let printed: u64 = frames_of().map(|frame| frame.printed()).sum();
    let resume = printed.saturating_sub(tail);
    if resume <= head {
        return frames.to_vec();
    }
    let (mut beginning, mut end) = (Vec::new(), Vec::new());
    let mut position = 0;
    for frame in frames_of() {
        encode_into(&mut beginning, frame.split_at(head.saturating_sub(position)).0);
        encode_into(&mut end, frame.split_at(resume.saturating_sub(position)).1);
        position += frame.printed();
    }
    encode_cut_into(&mut beginning, resume - head);
    beginning.extend_from_slice(&end);
    beginning
}

enum DecodeError {
    /// The end of the entry is missing.
    Incomplete,
    Damaged,
}

/// The first entry and its length.
fn decode(bytes: &[u8]) -> Result<(Entry<'_>, usize), DecodeError> {
    let (time, after_time) = number(bytes)?;
    let (length, after_length) = number(&bytes[after_time..])?;
    let start = after_time + after_length;
    if length == 0 {
        let (missing, after_missing) = number(&bytes[start..])?;
        if time != 0 || missing == 0 {
            return Err(DecodeError::Damaged);
        }
        return Ok((Entry::Cut { bytes: missing }, start + after_missing));
    }
    let length = usize::try_from(length).map_err(|_| DecodeError::Damaged)?;
    if length > MAX_FRAME_BYTES || time >> 1 > MAX_MILLIS {
        return Err(DecodeError::Damaged);
    }
    let end = start + length;
    let printed = bytes.get(start..end).ok_or(DecodeError::Incomplete)?;
    let stream = if time & 1 == 0 { Stream::Out } else { Stream::Err };
    Ok((Entry::Output(Frame { stream, at: Duration::from_millis(time >> 1), bytes: printed }), end))
}

fn push_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    out.push(number.to_le_bytes()[0]);
}

/// A number and its length.
fn number(bytes: &[u8]) -> Result<(u64, usize), DecodeError> {
    let mut number = 0;
    for (at, byte) in bytes.iter().enumerate() {
        let digit = u64::from(byte & 0x7F);
        let shift = 7 * u32::try_from(at).unwrap_or(u32::MAX / 7);
        let shifted = digit.checked_shl(shift).filter(|shifted| shifted >> shift == digit);
        number |= shifted.ok_or(DecodeError::Damaged)?;
        if byte & 0x80 == 0 {
            return Ok((number, at + 1));
        }
    }
    Err(DecodeError::Incomplete)
}
