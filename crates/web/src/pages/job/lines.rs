//! Lines of the output of an attempt: a window on them, or those that were printed since a follower looked.

use std::collections::BTreeMap;
use std::io::BufRead;

use crate::pages::visit::Visit;
use crate::parts::log_lines::{LogLine, LogRow};
use crate::parts::sgr::{self, Look};
use crate::problem::Problem;
use domain::job::{Attempt, JobRecord};
use domain::log::Stream;
use domain::values::timestamp::Timestamp;
use ops::jobs::logs::follow::missing;
use ops::jobs::logs::{AttemptOutput, Piece, has_ended};

/// The most rows of a window.
pub(super) const MAX_ROWS: usize = 200;
/// Of one line, this much is read.
const MAX_LINE_BYTES: usize = 16 << 10;
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
}

/// The rows that were found, and how many lines there are so far.
#[derive(Debug)]
pub(super) struct Window {
    pub(super) rows: Vec<LogRow>,
    pub(super) lines: u64,
    /// The numbers of the lines with the text.
    pub(super) hits: Vec<u64>,
}

pub(super) fn read(
    visit: &Visit<'_>,
    record: &JobRecord,
    attempt: &Attempt,
    wanted: Wanted,
) -> Result<Window, Problem> {
    let home = &visit.server.options.location.home;
    let mut output = AttemptOutput::new(home, &record.job, attempt);
    let has_ended = has_ended(&record.job, attempt.number);
    let mut lines = Lines::new(wanted, attempt.started_at);
    let mut has_output = false;
    loop {
        let pieces = output.read(visit.store, has_ended)?;
        if pieces.is_empty() {
            break;
        }
        has_output = true;
        for piece in &pieces {
            lines.add(piece);
        }
    }
    match missing(&record.job.id, attempt).filter(|_| !has_output) {
        Some(error) => Err(error.into()),
        None => Ok(lines.window()),
    }
}

/// The place of a row: after the line with this number has begun.
type Place = (u64, bool);

/// Assembles lines: each stream has one that has not ended.
#[derive(Debug)]
pub(super) struct Lines {
    wanted: Wanted,
    started_at: Timestamp,
    /// The lines before this one are on the page of a follower.
    least: u64,
    kept: BTreeMap<Place, LogRow>,
    /// Whether rows had to be left out for want of room.
    has_skipped: bool,
    open: [Option<LogLine>; 2],
    has_changed: bool,
    looks: [Look; 2],
    begun: u64,
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
            open: [None, None],
            has_changed: false,
            looks: [Look::default(); 2],
            begun: 0,
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
            Piece::Cut { bytes } => return self.keep((self.begun, true), LogRow::Cut { bytes: *bytes }),
            Piece::Output(chunk) => chunk,
        };
        let at = self.started_at.saturating_add(chunk.at);
        let mut rest = chunk.bytes.as_slice();
        while !rest.is_empty() {
            let mut after = rest;
            let length = after.skip_until(b'\n').unwrap_or(rest.len());
            let part = &rest[..length];
            self.extend(chunk.stream, at, part.strip_suffix(b"\n").unwrap_or(part));
            if part.ends_with(b"\n") {
                self.close(chunk.stream);
            }
            rest = after;
        }
    }

    fn extend(&mut self, stream: Stream, at: Timestamp, part: &[u8]) {
        let look = self.looks[slot(stream)];
        let open = &mut self.open[slot(stream)];
        if open.is_none() {
            self.begun += 1;
        }
        let number = self.begun;
        let line = open.get_or_insert_with(|| LogLine {
            number,
            at,
            stream,
            bytes: Vec::new(),
            look,
            is_hit: false,
        });
        line.overwrite(part, MAX_LINE_BYTES);
    }

    fn close(&mut self, stream: Stream) {
        let Some(mut line) = self.open[slot(stream)].take() else {
            return;
        };
        if line.bytes.contains(&b'\x1b') {
            sgr::follow(&line.bytes, &mut self.looks[slot(stream)]);
        }
        if self.wanted.only.is_some_and(|only| only != stream) {
            return;
        }
        if self.mark(&mut line) && self.hits.len() < MAX_HITS {
            self.hits.push(line.number);
        }
        self.keep((line.number, false), LogRow::Line(line));
    }

    /// Marks a line that has the text.
    fn mark(&self, line: &mut LogLine) -> bool {
        let text = self.wanted.text.as_deref();
        line.is_hit = text.is_some_and(|text| String::from_utf8_lossy(&line.bytes).contains(text));
        line.is_hit
    }

    /// The place with which the window begins; `None` if it has the last rows.
    fn first(&self) -> Option<u64> {
        let before_hit = || self.hits.first().map(|hit| hit.saturating_sub(ROWS_BEFORE_HIT));
        self.wanted.from.or_else(before_hit)
    }

    fn keep(&mut self, place: Place, row: LogRow) {
        let first = self.first();
        if place.0 < self.least || first.is_some_and(|first| place.0 < first) {
            return;
        }
        self.kept.insert(place, row);
        if let Some(first) = first {
            while self.kept.first_key_value().is_some_and(|(place, _)| place.0 < first) {
                self.kept.pop_first();
            }
        }
        if self.kept.len() > MAX_ROWS {
            let _ = if first.is_some() { self.kept.pop_last() } else { self.kept.pop_first() };
            self.has_skipped = true;
        }
    }

    /// All rows that are wanted, those of lines that have not ended too.
    fn window(mut self) -> Window {
        for stream in Stream::ALL {
            self.close(stream);
        }
        Window { rows: self.kept.into_values().collect(), lines: self.begun, hits: self.hits }
    }

    pub(super) fn has_changed(&self) -> bool {
        self.has_changed
    }

    pub(super) fn count(&self) -> u64 {
        self.begun
    }

    /// The rows since the last call, and whether some are missing before them. Lines that have not ended come again.
    pub(super) fn take(&mut self) -> (Vec<LogRow>, bool) {
        let is_wanted = |stream: Stream| self.wanted.only.is_none_or(|only| only == stream);
        let open = self.open.iter().flatten().filter(|line| is_wanted(line.stream));
        let open: Vec<(Place, LogRow)> =
            open.map(|line| ((line.number, false), LogRow::Line(line.clone()))).collect();
        let mut rows = std::mem::take(&mut self.kept);
        rows.extend(open);
        self.has_changed = false;
        let rows = rows.into_iter().filter(|(place, _)| place.0 >= self.least).map(|(_, row)| row);
        (rows.collect(), std::mem::take(&mut self.has_skipped))
    }
}

fn slot(stream: Stream) -> usize {
    match stream {
        Stream::Out => 0,
        Stream::Err => 1,
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
        let found = lines(Wanted::default(), &pieces).window();
        assert_eq!(
            texts(&found.rows),
            [(1, "ab".into()), (2, "x".into()), (3, "c".into()), (4, String::new())]
        );
        assert_eq!(found.lines, 4);
        let only = Wanted { only: Some(Stream::Err), ..Wanted::default() };
        assert_eq!(lines(only, &pieces).window().rows.len(), 2);
    }

    #[test]
    fn the_last_rows_are_kept_unless_a_line_or_a_text_is_named() {
        let text = (1..=1_000).map(|number| number.to_string() + "\n").collect::<String>();
        let pieces = [(Stream::Out, text.as_str())];
        let last = lines(Wanted::default(), &pieces).window();
        assert_eq!((last.rows.len(), texts(&last.rows)[0].0, last.lines), (MAX_ROWS, 801, 1_000));
        let from = lines(Wanted { from: Some(11), ..Wanted::default() }, &pieces).window();
        assert_eq!((from.rows.len(), texts(&from.rows)[0].0), (MAX_ROWS, 11));
        let text = lines(Wanted { text: Some("50".into()), ..Wanted::default() }, &pieces).window();
        assert_eq!(
            (text.rows.len(), texts(&text.rows)[0].0, &text.hits[..2]),
            (MAX_ROWS, 40, &[50, 150][..])
        );
        let none = lines(Wanted { text: Some("x".into()), ..Wanted::default() }, &pieces).window();
        assert_eq!((texts(&none.rows)[0].0, none.hits.len()), (801, 0));
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
