//! Lines from pieces of output: each stream has one line that has not ended. A line has the number in whose order it began.

use std::io::BufRead;

use crate::parts::log_lines::LogLine;
use crate::parts::sgr::{self, Look};
use domain::log::Stream;
use domain::values::timestamp::Timestamp;

/// Of one line, this much is read.
const MAX_LINE_BYTES: usize = 16 << 10;
const ESCAPE: u8 = 0x1b;

/// Bytes of one line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part<'a> {
    text: &'a [u8],
    is_end: bool,
}

impl<'a> Part<'a> {
    /// The part with which these bytes begin; they lose it.
    pub(super) fn first(bytes: &mut &'a [u8]) -> Option<Self> {
        let all = *bytes;
        let length = bytes.skip_until(b'\n').unwrap_or(all.len());
        let text = &all[..length];
        let (last, before) = text.split_last()?;
        let is_end = *last == b'\n';
        Some(Self { text: if is_end { before } else { text }, is_end })
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Assembly {
    /// How many lines of each stream have begun.
    begun: [u64; 2],
    open: [Option<LogLine>; 2],
    looks: [Look; 2],
}

impl Assembly {
    /// How many lines have begun.
    pub(super) fn begun(&self) -> u64 {
        self.begun.iter().sum()
    }

    pub(super) fn begun_of(&self, stream: Stream) -> u64 {
        self.begun[slot(stream)]
    }

    /// The lines that have not ended.
    pub(super) fn open(&self) -> impl Iterator<Item = &LogLine> {
        self.open.iter().flatten()
    }

    /// Number and row of the line to which the next part of this stream belongs.
    pub(super) fn next(&self, stream: Stream) -> (u64, u64) {
        let open = self.open[slot(stream)].as_ref();
        open.map_or((self.begun() + 1, self.begun_of(stream) + 1), |line| (line.number, line.row))
    }

    /// Counts a whole line without assembling it; `false` if that cannot be done.
    pub(super) fn skip(&mut self, stream: Stream, part: Part<'_>) -> bool {
        let is_whole = part.is_end && self.open[slot(stream)].is_none();
        // An escape may change the look of the lines that follow.
        let can_skip = is_whole && !part.text.contains(&ESCAPE);
        if can_skip {
            self.begun[slot(stream)] += 1;
        }
        can_skip
    }

    /// Adds a part; the line, if that was its end.
    pub(super) fn extend(&mut self, stream: Stream, at: Timestamp, part: Part<'_>) -> Option<LogLine> {
        if self.open[slot(stream)].is_none() {
            self.begun[slot(stream)] += 1;
        }
        let (number, row, look) = (self.begun(), self.begun_of(stream), self.looks[slot(stream)]);
        let begin = || LogLine { number, row, at, stream, bytes: Vec::new(), look, is_hit: false };
        self.open[slot(stream)].get_or_insert_with(begin).overwrite(part.text, MAX_LINE_BYTES);
        if part.is_end { self.close(stream) } else { None }
    }

    /// Ends the open line of a stream.
    pub(super) fn close(&mut self, stream: Stream) -> Option<LogLine> {
        let line = self.open[slot(stream)].take()?;
        if line.bytes.contains(&ESCAPE) {
            sgr::follow(&line.bytes, &mut self.looks[slot(stream)]);
        }
        Some(line)
    }
}

fn slot(stream: Stream) -> usize {
    match stream {
        Stream::Out => 0,
        Stream::Err => 1,
    }
}
