//! An index of the lines of a long output: every so often, how many lines had begun. A window then reads only what is near
//! it, and of an output that grows only what is new is read again.
//!
//! The middle of a long output may be cut out while it is written, after which its lines have other numbers. A bookmark
//! notices that: the points after the cut are given up, and what follows is counted anew.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use super::assembly::{Assembly, Part};
use crate::problem::Problem;
use domain::job::{Attempt, JobRecord};
use domain::log::Stream;
use domain::values::name::JobId;
use domain::values::timestamp::Timestamp;
use ops::jobs::logs::bookmark::Bookmark;
use ops::jobs::logs::{AttemptOutput, Piece};
use store::Store;

/// The outputs whose index is kept: those that were read last.
const MAX_INDEXES: usize = 8;
/// The points of an index. If there were more, every second one is given up.
const MAX_POINTS: usize = 256;
/// How many bytes there are between two points of an output that is not very long.
const MIN_SPACING: u64 = 128 << 10;
/// A point keeps no more than this of lines that have not ended; where there is more, there is no point.
const MAX_OPEN_BYTES: usize = 1 << 10;
/// How often counting begins again because the output was cut meanwhile. Then the count is that of a moment.
const MAX_RESTARTS: usize = 3;

/// The output of an attempt.
pub(super) struct Output<'a> {
    pub(super) store: &'a dyn Store,
    pub(super) home: &'a Path,
    pub(super) record: &'a JobRecord,
    pub(super) attempt: &'a Attempt,
    pub(super) has_ended: bool,
}

impl Output<'_> {
    /// A reader at its beginning.
    pub(super) fn open(&self) -> AttemptOutput {
        AttemptOutput::new(self.home, &self.record.job, self.attempt)
    }

    fn key(&self) -> Key {
        let job = &self.record.job;
        (job.id.clone(), job.number, self.attempt.number, self.has_ended)
    }
}

/// What an attempt printed until it ended may be stored in another way than before.
type Key = (JobId, u64, u32, bool);

/// The indexes of the outputs that were read last.
#[derive(Debug, Default)]
pub(crate) struct LogIndexes(Mutex<VecDeque<(Key, Arc<Mutex<LineIndex>>)>>);

impl LogIndexes {
    pub(super) fn of(&self, output: &Output<'_>) -> Arc<Mutex<LineIndex>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = output.key();
        let known = all.iter().position(|(known, _)| *known == key).and_then(|at| all.remove(at));
        let (key, index) = known.unwrap_or_else(|| (key, Arc::default()));
        all.push_front((key, Arc::clone(&index)));
        all.truncate(MAX_INDEXES);
        index
    }
}

/// A place in an output, and what was counted before it.
#[derive(Clone, Debug)]
pub(super) struct Point {
    pub(super) bookmark: Bookmark,
    pub(super) assembly: Assembly,
}

/// What there is so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Totals {
    pub(super) lines: u64,
    pub(super) has_output: bool,
}

#[derive(Debug)]
pub(super) struct LineIndex {
    /// In the order of the output; the last one is as near to its end as possible.
    points: Vec<Point>,
    /// Points are at least so many bytes apart.
    spacing: u64,
    /// What was counted up to the end.
    end: Assembly,
}

impl Default for LineIndex {
    fn default() -> Self {
        Self { points: Vec::new(), spacing: MIN_SPACING, end: Assembly::default() }
    }
}

impl LineIndex {
    /// Counts the lines that were printed since the last time.
    pub(super) fn catch_up(&mut self, output: &Output<'_>) -> Result<Totals, Problem> {
        for _ in 0..MAX_RESTARTS {
            let (totals, is_whole) = self.scan(output)?;
            if is_whole {
                return Ok(totals);
            }
        }
        Ok(self.scan(output)?.0)
    }

    /// Also whether nothing was cut out meanwhile.
    fn scan(&mut self, output: &Output<'_>) -> Result<(Totals, bool), Problem> {
        let mut reader = output.open();
        let (mut assembly, mut before) = (Assembly::default(), None);
        while let Some(last) = self.points.last() {
            if reader.resume(output.store, output.has_ended, &last.bookmark)? {
                (assembly, before) = (last.assembly.clone(), Some(last.bookmark.clone()));
                break;
            }
            self.points.pop();
        }
        let (mut is_whole, mut has_output) = (true, before.is_some());
        loop {
            let pieces = reader.read(output.store, output.has_ended)?;
            if pieces.is_empty() {
                break;
            }
            has_output = true;
            for piece in &pieces {
                count(&mut assembly, piece, output.attempt.started_at);
            }
            is_whole &= before.as_ref().is_none_or(|before| reader.is_after(before));
            before = reader.bookmark()?;
            if let Some(bookmark) = before.clone().filter(|_| is_whole) {
                self.add(Point { bookmark, assembly: assembly.clone() });
            }
        }
        let totals = Totals { lines: assembly.begun(), has_output };
        self.end = assembly;
        Ok((totals, is_whole))
    }

    fn add(&mut self, point: Point) {
        let open: usize = point.assembly.open().map(|line| line.bytes.len()).sum();
        if open > MAX_OPEN_BYTES {
            return;
        }
        // The last point is the end so far: it stays only if it is far enough from the one before.
        if let [.., before, last] = self.points.as_slice()
            && last.bookmark.offset().saturating_sub(before.bookmark.offset()) < self.spacing
        {
            self.points.pop();
        }
        self.points.push(point);
        if self.points.len() > MAX_POINTS {
            // The last one stays.
            let mut left = self.points.len();
            self.points.retain(|_| {
                left -= 1;
                left.is_multiple_of(2)
            });
            self.spacing *= 2;
        }
    }

    /// The last point before this line begins.
    pub(super) fn point_before(&self, line: u64) -> Option<&Point> {
        let at = self.points.partition_point(|point| point.assembly.begun() < line);
        at.checked_sub(1).and_then(|at| self.points.get(at))
    }

    /// The last point before this line of a stream begins; without a stream, this line of all.
    pub(super) fn point_before_row(&self, only: Option<Stream>, row: u64) -> Option<&Point> {
        let Some(only) = only else { return self.point_before(row) };
        let at = self.points.partition_point(|point| point.assembly.begun_of(only) < row);
        at.checked_sub(1).and_then(|at| self.points.get(at))
    }

    /// How many lines of a stream there are.
    pub(super) fn lines_of(&self, stream: Stream) -> u64 {
        self.end.begun_of(stream)
    }
}

fn count(assembly: &mut Assembly, piece: &Piece, started_at: Timestamp) {
    let Piece::Output(chunk) = piece else { return };
    let at = started_at.saturating_add(chunk.at);
    let mut rest = chunk.bytes.as_slice();
    while let Some(part) = Part::first(&mut rest) {
        if !assembly.skip(chunk.stream, part) {
            assembly.extend(chunk.stream, at, part);
        }
    }
}
