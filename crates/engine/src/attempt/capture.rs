//! Taking what an attempt prints.
//!
//! What is small and comes soon stays in memory and is stored with the attempt's outcome, in the same transaction. What
//! is large, or there while the attempt is no longer young, goes to a log file, so that others can follow it; all of it
//! does at once where a reader waits for it. Memory and disk stay bounded, whatever a command prints, and no trouble with
//! the file reaches the attempt.

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::last_line::LastLine;
use super::log_file::{LogFile, RETRY_AFTER};
use domain::log::{Entry, Frame, MAX_FRAME_BYTES, Stream, encode_cut_into, encode_into, entries, keep_ends};

/// The most that stays in memory.
pub const SMALL_BYTES: usize = 32 << 10;
/// How old an attempt is when its output goes to a file.
pub const SPILL_AFTER: Duration = Duration::from_millis(500);
/// What one stream prints within this time shares a frame.
const SAME_MOMENT: Duration = Duration::from_millis(5);

/// The output of one attempt while it runs. Nothing is allocated or opened before something is printed.
#[derive(Debug)]
pub struct Capture {
    log: PathBuf,
    max_bytes: u64,
    start: Instant,
    /// A reader follows the output.
    is_watched: bool,
    young: Young,
    file: Option<LogFile>,
    /// Memory and file hold the same output; if the attempt ends soon, only the memory copy is stored.
    is_copied: bool,
    /// Printed and lost, while there was no file.
    dropped: u64,
    /// When to try again to make the file.
    retry_at: Option<Instant>,
    errors: LastLine,
}

/// What is left when the attempt is over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Captured {
    /// Entries (see [`domain::log`]), if there was output and no file was made.
    pub output: Option<Vec<u8>>,
    /// Bytes of output that are kept.
    pub log_bytes: u64,
    /// The last line of stderr that was not blank.
    pub last_error_line: Option<String>,
}

impl Capture {
    /// The attempt starts now. `log` is where its file would be, `max_bytes` how much may be kept.
    pub fn new(log: PathBuf, max_bytes: u64) -> Self {
        Self::starting_at(log, max_bytes, Instant::now())
    }

    fn starting_at(log: PathBuf, max_bytes: u64, start: Instant) -> Self {
        Self {
            log,
            max_bytes,
            start,
            is_watched: false,
            young: Young::default(),
            file: None,
            is_copied: false,
            dropped: 0,
            retry_at: None,
            errors: LastLine::default(),
        }
    }

    /// Takes what was read from one of the command's pipes.
    pub fn take(&mut self, stream: Stream, bytes: &[u8]) {
        self.take_at(stream, bytes, Instant::now());
    }

    /// A reader waits for the output: from now on nothing stays in memory alone. Small output of a short attempt is still
    /// stored with the outcome, and its file is removed: a reader has it open.
    pub fn watch(&mut self) {
        self.is_watched = true;
        self.spill();
    }

    /// When [`Self::spill`] wants to be called: somebody may be waiting to see what is in memory.
    pub fn spill_due(&self) -> Option<Instant> {
        let is_waiting = self.file.is_none() && !self.young.is_empty();
        is_waiting.then(|| self.retry_at.unwrap_or(self.start + SPILL_AFTER))
    }

    /// Moves what is in memory to the log file.
    pub fn spill(&mut self) {
        if self.file.is_none() && !self.young.is_empty() {
            self.spill_at(Instant::now());
        }
    }

    pub fn finish(self) -> Captured {
        let last_error_line = self.errors.finish();
        match self.file {
            Some(file) if self.is_copied => file.remove(),
            Some(file) => return Captured { output: None, log_bytes: file.finish(), last_error_line },
            None => {}
        }
        let head_bytes = self.max_bytes - self.max_bytes / 2;
        let mut output = self.young.finish();
        if printed(&output) > self.max_bytes {
            output = keep_ends(&output, head_bytes, self.max_bytes - head_bytes);
        }
        let log_bytes = printed(&output);
        encode_cut_into(&mut output, self.dropped);
        Captured { output: (!output.is_empty()).then_some(output), log_bytes, last_error_line }
    }

    fn take_at(&mut self, stream: Stream, bytes: &[u8], now: Instant) {
        if bytes.is_empty() {
            return;
        }
        if stream == Stream::Err {
            self.errors.take(bytes);
        }
        let at = now.saturating_duration_since(self.start);
        let frame = Frame { stream, at, bytes };
        let is_small = self.young.length() + bytes.len() <= SMALL_BYTES;
        let stays = is_small && at < SPILL_AFTER;
        if self.file.is_none() && (self.is_watched || !stays) {
            self.spill_at(now);
        }
        if self.is_copied && !stays {
            self.is_copied = false;
            self.young = Young::default();
        }
        match &mut self.file {
            Some(file) => {
                file.append(frame, now);
                if self.is_copied {
                    self.young.take(frame);
                }
            }
            // Behind what was lost nothing is kept: there is no mark between.
            None if is_small && self.dropped == 0 => self.young.take(frame),
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
        let young = std::mem::take(&mut self.young);
        self.is_copied = self.is_watched && self.dropped == 0;
        if self.is_copied {
            self.young = young.clone();
        }
        for frame in frames(&young.finish()) {
            file.append(frame, now);
        }
        file.drop_bytes(self.dropped);
        self.file = Some(file);
    }
}

/// What is in memory: whole frames, and one that may still grow.
#[derive(Clone, Debug, Default)]
struct Young {
    frames: Vec<u8>,
    last: Option<(Stream, Duration)>,
    last_bytes: Vec<u8>,
}

impl Young {
    fn is_empty(&self) -> bool {
        self.last.is_none()
    }

    fn length(&self) -> usize {
        self.frames.len() + self.last_bytes.len()
    }

    fn take(&mut self, frame: Frame<'_>) {
        let goes_on = self.last.is_some_and(|(stream, at)| {
            stream == frame.stream
                && frame.at.saturating_sub(at) <= SAME_MOMENT
                && self.last_bytes.len() + frame.bytes.len() <= MAX_FRAME_BYTES
        });
        if !goes_on {
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

/// The frames of output that was never cut.
fn frames(output: &[u8]) -> impl Iterator<Item = Frame<'_>> {
    entries(output).filter_map(|entry| match entry {
        Ok(Entry::Output(frame)) => Some(frame),
        Ok(Entry::Cut { .. }) | Err(_) => None,
    })
}

fn printed(output: &[u8]) -> u64 {
    frames(output).map(|frame| frame.printed()).sum()
}
