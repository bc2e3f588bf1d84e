//! Lines of the output of an attempt: a window on them, or those that were printed since a follower looked.

mod assembly;
mod index;

use std::collections::BTreeMap;
use std::sync::PoisonError;

use crate::pages::visit::Visit;
use crate::parts::log_lines::{LogLine, LogRow};
use crate::problem::Problem;
use domain::job::{Attempt, JobRecord};
use domain::log::Stream;
use domain::values::timestamp::Timestamp;
use ops::jobs::logs::follow::missing;
use ops::jobs::logs::{Piece, has_ended};

use assembly::{Assembly, Part};
pub(crate) use index::LogIndexes;
use index::{Output, Point, Totals};

/// The most rows of a window.
pub(super) const MAX_ROWS: usize = 200;
/// The most lines with the text that is searched for whose numbers are kept.
const MAX_HITS: usize = 1_000;
/// Rows before the first line with the text.
const ROWS_BEFORE_HIT: u64 = 10;

/// Which lines are shown.
#[derive(Clone, Debug, Default)]
pub(super) struct Wanted {
    pub(super) only: Option<Stream>,
    /// Lines with this text are marked; unless a line is named, the window begins with the first of them.
    pub(super) text: Option<String>,
    /// From this line on, instead of the last lines.
    pub(super) from: Option<u64>,
    /// The same, but counting only the lines of the stream that is shown.
    pub(super) row: Option<u64>,
    /// Lists the lines with the text though a line is named.
    pub(super) with_hits: bool,
}

impl Wanted {
    /// Whether all of the output is searched.
    pub(super) fn lists_hits(&self) -> bool {
        self.text.is_some() && (!self.names_first() || self.with_hits)
    }

    /// Whether the window begins with a certain line, instead of ending with the last one.
    fn names_first(&self) -> bool {
        self.from.is_some() || self.row.is_some()
    }

    /// Whether a line is before the window.
    fn is_before(&self, number: u64, row: u64) -> bool {
        self.from.is_some_and(|from| number < from) || self.row.is_some_and(|first| row < first)
    }
}

/// The rows that were found, and how many lines there are so far.
#[derive(Debug)]
pub(super) struct Window {
    pub(super) rows: Vec<LogRow>,
    pub(super) lines: u64,
    /// Of the stream that is shown: its lines, and which of them is the first row.
    pub(super) shown: u64,
    pub(super) first: u64,
    /// The numbers of the lines with the text.
    pub(super) hits: Vec<u64>,
}

/// A window on the output. The index makes it cheap wherever it is: only the lines near it are read.
pub(super) fn read(
    visit: &Visit<'_>,
    record: &JobRecord,
    attempt: &Attempt,
    wanted: Wanted,
) -> Result<Window, Problem> {
    let output = Output {
        store: visit.store,
        home: &visit.server.options.location.home,
        record,
        attempt,
        has_ended: has_ended(&record.job, attempt.number),
    };
    let index = visit.server.log_indexes.of(&output);
    let lock = || index.lock().unwrap_or_else(PoisonError::into_inner);
    let totals = lock().catch_up(&output)?;
    if let Some(error) = missing(&record.job.id, attempt).filter(|_| !totals.has_output) {
        return Err(error.into());
    }
    // Other readers of this output do not wait for the search.
    let hits = if wanted.lists_hits() { find(&output, &wanted)? } else { Vec::new() };
    let index = lock();
    let wanted = if wanted.names_first() { wanted } else { Wanted { from: before(&hits), ..wanted } };
    let (only, shown) = (wanted.only, wanted.only.map_or(totals.lines, |only| index.lines_of(only)));
    let mut lines = Lines::new(wanted, attempt.started_at);
    let begin = match (lines.wanted.from, lines.wanted.row) {
        (Some(from), _) => index.point_before(from),
        (None, Some(row)) => index.point_before_row(only, row),
        (None, None) => {
            let row = shown.saturating_sub(MAX_ROWS as u64 - 1);
            lines.least = if only.is_none() { row } else { 0 };
            index.point_before_row(only, row)
        }
    };
    let mut reader = output.open();
    if let Some(Point { bookmark, assembly, .. }) = begin
        && reader.resume(output.store, output.has_ended, bookmark)?
    {
        lines.assembly = assembly.clone();
    }
    drop(index);
    while !lines.is_full() {
        let pieces = reader.read(output.store, output.has_ended)?;
        if pieces.is_empty() {
            break;
        }
        for piece in &pieces {
            lines.add(piece);
        }
    }
    Ok(lines.window(&totals, shown, hits))
}

/// The line with which the window begins if the text was found.
fn before(hits: &[u64]) -> Option<u64> {
    hits.first().map(|hit| hit.saturating_sub(ROWS_BEFORE_HIT).max(1))
}

/// The numbers of the lines with the text, of all the output.
fn find(output: &Output<'_>, wanted: &Wanted) -> Result<Vec<u64>, Problem> {
    let search = Wanted { from: Some(u64::MAX), ..wanted.clone() };
    let mut lines = Lines::new(search, output.attempt.started_at);
    let mut reader = output.open();
    while lines.hits.len() < MAX_HITS {
        let pieces = reader.read(output.store, output.has_ended)?;
        if pieces.is_empty() {
            break;
        }
        for piece in &pieces {
            lines.add(piece);
        }
    }
    lines.close_all();
    // Lines end in another order than they begin.
    lines.hits.sort_unstable();
    Ok(lines.hits)
}

/// The place of a row: after the line with this number has begun.
type Place = (u64, bool);

/// Keeps the rows that are wanted.
#[derive(Debug)]
pub(super) struct Lines {
    wanted: Wanted,
    started_at: Timestamp,
    /// The lines before this one are of no interest, or on the page of a follower.
    least: u64,
    kept: BTreeMap<Place, LogRow>,
    /// Whether rows had to be left out for want of room.
    has_skipped: bool,
    assembly: Assembly,
    has_changed: bool,
    hits: Vec<u64>,
}

impl Lines {
    pub(super) fn new(wanted: Wanted, started_at: Timestamp) -> Self {
        Self {
            wanted,
            started_at,
            least: 0,
            kept: BTreeMap::new(),
            has_skipped: false,
            assembly: Assembly::default(),
            has_changed: false,
            hits: Vec::new(),
        }
    }

    /// For a follower who has the lines before this one.
    #[must_use]
    pub(super) fn after(self, least: u64) -> Self {
        Self { least, ..self }
    }

    pub(super) fn add(&mut self, piece: &Piece) {
        self.has_changed = true;
        let chunk = match piece {
            Piece::Cut { bytes } => return self.keep_cut(*bytes),
            Piece::Output(chunk) => chunk,
        };
        let at = self.started_at.saturating_add(chunk.at);
        // Most pieces of a long output have neither a line of the window nor one with the text.
        let may_have_hits = self.may_have_hits(&chunk.bytes);
        let mut rest = chunk.bytes.as_slice();
        while let Some(part) = Part::first(&mut rest) {
            let can_skip = !may_have_hits && !self.may_keep(chunk.stream);
            if can_skip && self.assembly.skip(chunk.stream, part) {
                continue;
            }
            if let Some(line) = self.assembly.extend(chunk.stream, at, part) {
                self.take_line(line);
            }
        }
    }

    /// Whether a line of a piece with these bytes may have the text that is searched for.
    fn may_have_hits(&self, bytes: &[u8]) -> bool {
        let Some(text) = self.wanted.text.as_deref().filter(|_| self.hits.len() < MAX_HITS) else {
            return false;
        };
        // What is no UTF-8 is shown as replacement characters, which can be searched for.
        std::str::from_utf8(bytes).map_or(true, |valid| valid.contains(text))
    }

    /// Whether the next line of a stream would be among the rows.
    fn may_keep(&self, stream: Stream) -> bool {
        let (number, row) = self.assembly.next(stream);
        let is_wanted = self.wanted.only.is_none_or(|only| only == stream);
        let has_room = self.kept.len() < MAX_ROWS
            || !self.wanted.names_first()
            || self.kept.last_key_value().is_some_and(|(last, _)| number < last.0);
        is_wanted && has_room && number >= self.least && !self.wanted.is_before(number, row)
    }

    fn take_line(&mut self, mut line: LogLine) {
        if self.wanted.only.is_some_and(|only| only != line.stream) {
            return;
        }
        let text = self.wanted.text.as_deref();
        line.is_hit = text.is_some_and(|text| String::from_utf8_lossy(&line.bytes).contains(text));
        if line.is_hit && self.hits.len() < MAX_HITS {
            self.hits.push(line.number);
        }
        if !self.wanted.is_before(line.number, line.row) {
            self.keep((line.number, false), LogRow::Line(line));
        }
    }

    fn keep_cut(&mut self, bytes: u64) {
        let (number, row) = (self.count(), self.wanted.only.map_or(0, |only| self.assembly.begun_of(only)));
        if !self.wanted.is_before(number, row) {
            self.keep((number, true), LogRow::Cut { bytes });
        }
    }

    fn keep(&mut self, place: Place, row: LogRow) {
        if place.0 < self.least {
            return;
        }
        self.kept.insert(place, row);
        if self.kept.len() > MAX_ROWS {
            let _ = if self.wanted.names_first() { self.kept.pop_last() } else { self.kept.pop_first() };
            self.has_skipped = true;
        }
    }

    /// Whether the window has all its rows: nothing that follows can be one of them.
    fn is_full(&self) -> bool {
        let Some((last, _)) = self.kept.last_key_value() else { return false };
        let is_over = |line: &LogLine| line.number > last.0;
        self.wanted.names_first() && self.kept.len() == MAX_ROWS && self.assembly.open().all(is_over)
    }

    fn close_all(&mut self) {
        for stream in Stream::ALL {
            if let Some(line) = self.assembly.close(stream) {
                self.take_line(line);
            }
        }
    }

    /// All rows that are wanted, those of lines that have not ended too.
    fn window(mut self, totals: &Totals, shown: u64, hits: Vec<u64>) -> Window {
        self.close_all();
        // The output may have grown meanwhile.
        let lines = totals.lines.max(self.count());
        let shown = shown.max(self.shown());
        let rows: Vec<LogRow> = self.kept.into_values().collect();
        let first = rows.iter().find_map(|row| match row {
            LogRow::Line(line) if self.wanted.only.is_some() => Some(line.row),
            LogRow::Line(line) => Some(line.number),
            LogRow::Cut { .. } => None,
        });
        Window { rows, lines, shown, first: first.unwrap_or(1), hits }
    }

    /// How many lines there are of the stream that is shown.
    pub(super) fn shown(&self) -> u64 {
        self.wanted.only.map_or_else(|| self.count(), |only| self.assembly.begun_of(only))
    }

    pub(super) fn has_changed(&self) -> bool {
        self.has_changed
    }

    pub(super) fn count(&self) -> u64 {
        self.assembly.begun()
    }

    /// The rows since the last call, and whether some are missing before them. Lines that have not ended come again.
    pub(super) fn take(&mut self) -> (Vec<LogRow>, bool) {
        let is_wanted = |stream: Stream| self.wanted.only.is_none_or(|only| only == stream);
        let open = self.assembly.open().filter(|line| is_wanted(line.stream));
        let open: Vec<(Place, LogRow)> =
            open.map(|line| ((line.number, false), LogRow::Line(line.clone()))).collect();
        let mut rows = std::mem::take(&mut self.kept);
        rows.extend(open);
        self.has_changed = false;
        let rows = rows.into_iter().filter(|(place, _)| place.0 >= self.least).map(|(_, row)| row);
        (rows.collect(), std::mem::take(&mut self.has_skipped))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ops::jobs::logs::Chunk;
    use std::time::Duration;

    fn lines(wanted: Wanted, pieces: &[(Stream, &str)]) -> Lines {
        let mut lines = Lines::new(wanted, Timestamp::EPOCH);
        for (stream, text) in pieces {
            let bytes = text.as_bytes().to_vec();
            lines.add(&Piece::Output(Chunk { stream: *stream, at: Duration::ZERO, bytes }));
        }
        lines
    }

    /// As [`read`] does it, without an index.
    fn window(wanted: Wanted, pieces: &[(Stream, &str)]) -> Window {
        let mut hits = Vec::new();
        if wanted.lists_hits() {
            let mut search = lines(Wanted { from: Some(u64::MAX), ..wanted.clone() }, pieces);
            search.close_all();
            hits = search.hits;
        }
        let wanted = if wanted.names_first() { wanted } else { Wanted { from: before(&hits), ..wanted } };
        lines(wanted, pieces).window(&Totals::default(), 0, hits)
    }

    fn texts(rows: &[LogRow]) -> Vec<(u64, String)> {
        let text = |row: &LogRow| match row {
            LogRow::Line(line) => (line.number, String::from_utf8_lossy(&line.bytes).into_owned()),
            LogRow::Cut { bytes } => (0, bytes.to_string()),
        };
        rows.iter().map(text).collect()
    }

    #[test]
    fn lines_of_two_streams_are_in_the_order_in_which_they_began() {
        let pieces = [(Stream::Out, "a"), (Stream::Err, "x\n"), (Stream::Out, "b\nc"), (Stream::Err, "\n")];
        let found = window(Wanted::default(), &pieces);
        assert_eq!(
            texts(&found.rows),
            [(1, "ab".into()), (2, "x".into()), (3, "c".into()), (4, String::new())]
        );
        assert_eq!(found.lines, 4);
        let only = Wanted { only: Some(Stream::Err), ..Wanted::default() };
        assert_eq!(window(only, &pieces).rows.len(), 2);
    }

    #[test]
    fn the_last_rows_are_kept_unless_a_line_or_a_text_is_named() {
        let text = (1..=1_000).map(|number| number.to_string() + "\n").collect::<String>();
        let pieces = [(Stream::Out, text.as_str())];
        let last = window(Wanted::default(), &pieces);
        assert_eq!((last.rows.len(), texts(&last.rows)[0].0, last.lines), (MAX_ROWS, 801, 1_000));
        let from = window(Wanted { from: Some(11), ..Wanted::default() }, &pieces);
        assert_eq!((from.rows.len(), texts(&from.rows)[0].0), (MAX_ROWS, 11));
        let text = window(Wanted { text: Some("50".into()), ..Wanted::default() }, &pieces);
        assert_eq!(
            (text.rows.len(), texts(&text.rows)[0].0, &text.hits[..2]),
            (MAX_ROWS, 40, &[50, 150][..])
        );
        let none = window(Wanted { text: Some("x".into()), ..Wanted::default() }, &pieces);
        assert_eq!((texts(&none.rows)[0].0, none.hits.len()), (801, 0));
    }

    #[test]
    fn the_rows_of_a_stream_are_counted_apart() {
        let pieces: Vec<(Stream, &str)> =
            (0..1_000).map(|at| (if at % 3 == 0 { Stream::Err } else { Stream::Out }, "x\n")).collect();
        let only = Some(Stream::Err);
        let last = window(Wanted { only, ..Wanted::default() }, &pieces);
        assert_eq!((last.rows.len(), last.first, last.shown, last.lines), (MAX_ROWS, 135, 334, 1_000));
        let row = window(Wanted { only, row: Some(11), ..Wanted::default() }, &pieces);
        assert_eq!((row.rows.len(), row.first, texts(&row.rows)[0].0), (MAX_ROWS, 11, 31));
        let line = window(Wanted { only, from: Some(32), ..Wanted::default() }, &pieces);
        assert_eq!((line.first, texts(&line.rows)[0].0), (12, 34));
    }

    #[test]
    fn a_follower_gets_new_rows_once_and_an_open_line_until_it_has_ended() {
        let mut lines = lines(Wanted::default(), &[(Stream::Out, "one\ntw")]);
        assert_eq!(texts(&lines.take().0), [(1, "one".into()), (2, "tw".into())]);
        assert!(!lines.has_changed());
        let bytes = b"o\n10%\r20%".to_vec();
        lines.add(&Piece::Output(Chunk { stream: Stream::Out, at: Duration::ZERO, bytes }));
        assert_eq!(texts(&lines.take().0), [(2, "two".into()), (3, "20%".into())]);
        let many = "x\n".repeat(MAX_ROWS + 1);
        lines.add(&Piece::Output(Chunk { stream: Stream::Err, at: Duration::ZERO, bytes: many.into() }));
        let (rows, has_skipped) = lines.take();
        assert!(rows.len() <= MAX_ROWS + 1 && has_skipped, "{}", rows.len());
        let mut later = self::lines(Wanted::default(), &[]).after(500);
        let bytes = "x\n".repeat(600).into_bytes();
        later.add(&Piece::Output(Chunk { stream: Stream::Out, at: Duration::ZERO, bytes }));
        let (rows, has_skipped) = later.take();
        assert_eq!((rows.len(), texts(&rows)[0].0, has_skipped), (101, 500, false));
    }
}
