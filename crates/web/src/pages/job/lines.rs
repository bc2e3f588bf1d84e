//! A window on the output of an attempt: the last lines, or those around one.

use std::collections::VecDeque;

use crate::pages::visit::Visit;
use crate::parts::log_lines::LogRow;
use crate::problem::Problem;
use domain::job::{Attempt, JobRecord};
use domain::log::Stream;
use domain::values::timestamp::Timestamp;
use ops::jobs::logs::follow::missing;
use ops::jobs::logs::{AttemptOutput, Piece, has_ended};

/// The most rows of a page.
pub(super) const MAX_ROWS: usize = 200;
/// Of one line, this much is read.
const MAX_LINE_BYTES: usize = 16 << 10;

/// Which lines are shown.
pub(super) struct Wanted<'a> {
    pub(super) only: Option<Stream>,
    /// Only lines with this text.
    pub(super) text: Option<&'a str>,
    /// From this line on, instead of the last lines.
    pub(super) from: Option<u64>,
}

/// The rows that were found, and how many lines there are so far.
pub(super) struct Window {
    pub(super) rows: Vec<LogRow>,
    pub(super) lines: u64,
}

pub(super) fn read(
    visit: &Visit<'_>,
    record: &JobRecord,
    attempt: &Attempt,
    wanted: &Wanted<'_>,
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
        None => Ok(lines.end()),
    }
}

/// Assembles lines: each stream has one that has not ended.
struct Lines<'a> {
    wanted: &'a Wanted<'a>,
    started_at: Timestamp,
    kept: VecDeque<LogRow>,
    open: [Option<(u64, Timestamp, Vec<u8>)>; 2],
    begun: u64,
}

impl<'a> Lines<'a> {
    fn new(wanted: &'a Wanted<'a>, started_at: Timestamp) -> Self {
        Self { wanted, started_at, kept: VecDeque::new(), open: [None, None], begun: 0 }
    }

    fn add(&mut self, piece: &Piece) {
        let chunk = match piece {
            Piece::Cut { bytes } => return self.keep(LogRow::Cut { bytes: *bytes }),
            Piece::Output(chunk) => chunk,
        };
        let at = self.started_at.saturating_add(chunk.at);
        let mut rest = chunk.bytes.as_slice();
        while !rest.is_empty() {
            let end = rest.iter().position(|byte| *byte == b'\n');
            let (part, after) = end.map_or((rest, &[][..]), |end| (&rest[..end], &rest[end + 1..]));
            self.extend(chunk.stream, at, part);
            if end.is_some() {
                self.close(chunk.stream);
            }
            rest = after;
        }
    }

    fn extend(&mut self, stream: Stream, at: Timestamp, part: &[u8]) {
        let open = &mut self.open[slot(stream)];
        if open.is_none() {
            self.begun += 1;
        }
        let (_, _, bytes) = open.get_or_insert_with(|| (self.begun, at, Vec::new()));
        let room = MAX_LINE_BYTES.saturating_sub(bytes.len()).min(part.len());
        bytes.extend_from_slice(&part[..room]);
    }

    fn close(&mut self, stream: Stream) {
        let Some((number, at, bytes)) = self.open[slot(stream)].take() else {
            return;
        };
        let has_text = |text: &str| bytes.windows(text.len().max(1)).any(|part| part == text.as_bytes());
        let is_wanted = self.wanted.only.is_none_or(|only| only == stream)
            && self.wanted.text.is_none_or(has_text)
            && self.wanted.from.is_none_or(|from| number >= from);
        if is_wanted {
            self.keep(LogRow::Line { number, at, stream, bytes });
        }
    }

    /// From a line on, the first rows are kept, otherwise the last.
    fn keep(&mut self, row: LogRow) {
        if self.wanted.from.is_some() && self.kept.len() >= MAX_ROWS {
            return;
        }
        self.kept.push_back(row);
        if self.kept.len() > MAX_ROWS {
            self.kept.pop_front();
        }
    }

    fn end(mut self) -> Window {
        for stream in Stream::ALL {
            self.close(stream);
        }
        Window { rows: self.kept.into(), lines: self.begun }
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

    fn window(wanted: &Wanted<'_>, pieces: &[(Stream, &str)]) -> Window {
        let mut lines = Lines::new(wanted, Timestamp::EPOCH);
        for (stream, text) in pieces {
            let bytes = text.as_bytes().to_vec();
            lines.add(&Piece::Output(Chunk { stream: *stream, at: Duration::ZERO, bytes }));
        }
        lines.end()
    }

    fn texts(window: &Window) -> Vec<(u64, String)> {
        let text = |row: &LogRow| match row {
            LogRow::Line { number, bytes, .. } => (*number, String::from_utf8_lossy(bytes).into_owned()),
            LogRow::Cut { bytes } => (0, bytes.to_string()),
        };
        window.rows.iter().map(text).collect()
    }

    #[test]
    fn lines_of_two_streams_keep_their_numbers() {
        let all = Wanted { only: None, text: None, from: None };
        let pieces = [(Stream::Out, "a"), (Stream::Err, "x\n"), (Stream::Out, "b\nc"), (Stream::Err, "\n")];
        let found = window(&all, &pieces);
        assert_eq!(texts(&found), [(2, "x".into()), (1, "ab".into()), (4, String::new()), (3, "c".into())]);
        assert_eq!(found.lines, 4);
        let only = Wanted { only: Some(Stream::Err), ..all };
        assert_eq!(texts(&window(&only, &pieces)).len(), 2);
        let text = Wanted { only: None, text: Some("b"), from: None };
        assert_eq!(texts(&window(&text, &pieces)), [(1, "ab".into())]);
    }

    #[test]
    fn the_last_rows_are_kept_unless_a_line_is_named() {
        let text = (1..=1_000).map(|number| number.to_string() + "\n").collect::<String>();
        let last = window(&Wanted { only: None, text: None, from: None }, &[(Stream::Out, &text)]);
        assert_eq!((last.rows.len(), texts(&last)[0].0, last.lines), (MAX_ROWS, 801, 1_000));
        let from = window(&Wanted { only: None, text: None, from: Some(11) }, &[(Stream::Out, &text)]);
        assert_eq!((from.rows.len(), texts(&from)[0].0), (MAX_ROWS, 11));
    }
}
