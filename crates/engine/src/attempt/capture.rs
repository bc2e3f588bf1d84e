//! Capturing the output of an attempt.
//!
//! Small output of a short attempt stays in memory and is stored with the attempt's outcome, in the same transaction.
//! Large output, and output of an attempt that has run for a while, goes to a log file, so that readers can follow it;
//! when a reader waits, all output goes there at once. Memory and disk use are bounded, however much a command prints,
//! and an error with the file does not affect the attempt.

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::last_line::LastLine;
use super::log_file::{LogFile, RETRY_AFTER};
use domain::log::{Entry, Frame, MAX_FRAME_BYTES, Stream, encode_cut_into, encode_into, entries, keep_ends};

/// How much output stays in memory at most.
pub const SMALL_BYTES: usize = 32 << 10;
/// After this time, the output of an attempt goes to a file.
pub const SPILL_AFTER: Duration = Duration::from_millis(500);
/// Output of one stream within this time shares a frame.
const FRAME_MERGE_WINDOW: Duration = Duration::from_millis(5);

/// The output of one attempt while it runs. Nothing is allocated or opened before the first output.
#[derive(Debug)]
pub struct Capture {
    log: PathBuf,
    max_bytes: u64,
    start: Instant,
    /// A reader follows the output.
    is_watched: bool,
    /// Nothing is kept but the last line of either stream.
    is_last_line_only: bool,
    buffer: MemoryBuffer,
    file: Option<LogFile>,
    /// Memory and file hold the same output; if the attempt ends soon, only the copy in memory is stored.
    is_copied: bool,
    /// Bytes that were printed and lost while there was no file.
    dropped: u64,
    /// When to try again to create the file.
    retry_at: Option<Instant>,
    errors: LastLine,
}

/// The captured output of an attempt that has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CapturedOutput {
    /// Entries (see [`domain::log`]), if there was output and no file is kept.
    pub output: Option<Vec<u8>>,
    /// How many bytes of output are kept.
    pub log_bytes: u64,
    /// The last line of stderr that was not blank.
    pub last_error_line: Option<String>,
}

impl Capture {
    /// For an attempt that starts now. `log` is the path of its log file, `max_bytes` the limit of what is kept.
    pub fn new(log: PathBuf, max_bytes: u64) -> Self {
        Self::starting_at(log, max_bytes, Instant::now())
    }

    /// Keeps only the last line, of either stream.
    pub(crate) fn of_last_line() -> Self {
        Self { is_last_line_only: true, ..Self::new(PathBuf::new(), 0) }
    }

    fn starting_at(log: PathBuf, max_bytes: u64, start: Instant) -> Self {
        Self {
            log,
            max_bytes,
            start,
            is_watched: false,
            is_last_line_only: false,
            buffer: MemoryBuffer::default(),
            file: None,
            is_copied: false,
            dropped: 0,
            retry_at: None,
            errors: LastLine::default(),
        }
    }

    /// Captures bytes that were read from one of the command's pipes.
    pub fn take(&mut self, stream: Stream, bytes: &[u8]) {
        self.take_at(stream, bytes, Instant::now());
    }

    /// A reader waits for the output: from now on all of it also goes to the file. Small output of a short attempt is
    /// still stored with the outcome, and its file is removed: readers have it open.
    pub fn watch(&mut self) {
        self.is_watched = true;
        self.spill();
    }

    /// When [`Self::spill`] must be called: a reader may be waiting for the output in memory.
    pub fn spill_due(&self) -> Option<Instant> {
        let is_waiting = self.file.is_none() && !self.buffer.is_empty();
        is_waiting.then(|| self.retry_at.unwrap_or(self.start + SPILL_AFTER))
    }

    /// Moves the output in memory to the log file.
    pub fn spill(&mut self) {
        if self.file.is_none() && !self.buffer.is_empty() {
            self.spill_at(Instant::now());
        }
    }

    pub fn finish(self) -> CapturedOutput {
        self.finish_with(LogFile::finish)
    }

    /// As [`Self::finish`], but leaves every entry of the log file where it is: it is copied elsewhere by offset.
    pub(crate) fn finish_in_place(self) -> CapturedOutput {
        self.finish_with(LogFile::finish_in_place)
    }

    fn finish_with(self, finish: impl FnOnce(LogFile) -> u64) -> CapturedOutput {
        let last_error_line = self.errors.finish();
        match self.file {
            Some(file) if self.is_copied => file.remove(),
            Some(file) => {
                return CapturedOutput { output: None, log_bytes: finish(file), last_error_line };
            }
            None => {}
        }
        let head_bytes = self.max_bytes - self.max_bytes / 2;
        let mut output = self.buffer.finish();
        if printed(&output) > self.max_bytes {
            output = keep_ends(&output, head_bytes, self.max_bytes - head_bytes);
        }
        let log_bytes = printed(&output);
        encode_cut_into(&mut output, self.dropped);
        CapturedOutput { output: (!output.is_empty()).then_some(output), log_bytes, last_error_line }
    }

    fn take_at(&mut self, stream: Stream, bytes: &[u8], now: Instant) {
        if bytes.is_empty() {
            return;
        }
        if stream == Stream::Err || self.is_last_line_only {
            self.errors.take(bytes);
        }
        if self.is_last_line_only {
            return;
        }
        let at = now.saturating_duration_since(self.start);
        let frame = Frame { stream, at, bytes };
        let is_small = self.buffer.length() + bytes.len() <= SMALL_BYTES;
        let stays = is_small && at < SPILL_AFTER;
        if self.file.is_none() && (self.is_watched || !stays) {
            self.spill_at(now);
        }
        if self.is_copied && !stays {
            self.is_copied = false;
            self.buffer = MemoryBuffer::default();
        }
        match &mut self.file {
            Some(file) => {
                file.append(frame, now);
                if self.is_copied {
                    self.buffer.take(frame);
                }
            }
            // Nothing is kept after lost output: memory cannot hold a mark for the gap.
            None if is_small && self.dropped == 0 => self.buffer.take(frame),
            None => self.dropped += frame.printed(),
        }
    }

    fn spill_at(&mut self, now: Instant) {
        if self.file.is_some() || self.retry_at.is_some_and(|at| now < at) {
            return;
        }
        let Ok(mut file) = LogFile::create(self.log.clone(), self.max_bytes) else {
            self.retry_at = Some(now + RETRY_AFTER);
            return;
        };
        let buffer = std::mem::take(&mut self.buffer);
        self.is_copied = self.is_watched && self.dropped == 0;
        if self.is_copied {
            self.buffer = buffer.clone();
        }
        for frame in frames(&buffer.finish()) {
            file.append(frame, now);
        }
        file.drop_bytes(self.dropped);
        self.file = Some(file);
    }
}

/// The output in memory: complete frames, and one that may still grow.
#[derive(Clone, Debug, Default)]
struct MemoryBuffer {
    frames: Vec<u8>,
    last: Option<(Stream, Duration)>,
    last_bytes: Vec<u8>,
}

impl MemoryBuffer {
    fn is_empty(&self) -> bool {
        self.last.is_none()
    }

    fn length(&self) -> usize {
        self.frames.len() + self.last_bytes.len()
    }

    fn take(&mut self, frame: Frame<'_>) {
        let extends_last = self.last.is_some_and(|(stream, at)| {
            stream == frame.stream
                && frame.at.saturating_sub(at) <= FRAME_MERGE_WINDOW
                && self.last_bytes.len() + frame.bytes.len() <= MAX_FRAME_BYTES
        });
        if !extends_last {
            self.end_last();
            self.last = Some((frame.stream, frame.at));
        }
        self.last_bytes.extend_from_slice(frame.bytes);
    }

    fn end_last(&mut self) {
        if let Some((stream, at)) = self.last {
            encode_into(&mut self.frames, Frame { stream, at, bytes: &self.last_bytes });
            self.last_bytes.clear();
        }
    }

    fn finish(mut self) -> Vec<u8> {
        self.end_last();
        self.frames
    }
}

/// The frames of output without cuts.
fn frames(output: &[u8]) -> impl Iterator<Item = Frame<'_>> {
    entries(output).filter_map(|entry| match entry {
        Ok(Entry::Output(frame)) => Some(frame),
        Ok(Entry::Cut { .. }) | Err(_) => None,
    })
}

fn printed(output: &[u8]) -> u64 {
    frames(output).map(|frame| frame.printed()).sum()
}
