//! Reading an output from the middle, and searching it line by line. Both read it from the beginning, a piece at a time:
//! the entries of a log have no index, and reading is quick.

use std::time::Duration;

use super::{AttemptOutput, Chunk, Piece};
use crate::OpError;
use domain::log::Stream;
use store::Store;

/// More of a line than this is not searched.
const MAX_LINE_BYTES: usize = 64 << 10;

/// A line of output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Counted from 1, in the order in which lines began.
    pub number: u64,
    /// How many bytes the command had printed before it, kept or not.
    pub from: u64,
    /// Since the attempt's start.
    pub at: Duration,
    pub stream: Stream,
    /// Without its end, and at most the first 64 KiB.
    pub bytes: Vec<u8>,
}

impl AttemptOutput {
    /// The pieces from this place on, which counts the bytes that the command had printed before; each with its own place.
    /// At least one piece is read, and then more until they have `max_bytes`. Empty: as [`AttemptOutput::read`].
    pub fn read_from(
        &mut self,
        store: &dyn Store,
        has_ended: bool,
        from: u64,
        max_bytes: usize,
    ) -> Result<Vec<(u64, Piece)>, OpError> {
        let (mut place, mut kept, mut found) = (0_u64, 0, Vec::new());
        while kept < max_bytes {
            let pieces = self.read(store, has_ended)?;
            if pieces.is_empty() {
                break;
            }
            for piece in pieces {
                let next = place.saturating_add(piece.printed());
                if let Some(piece) = after(piece, from.saturating_sub(place)) {
                    let start = next.saturating_sub(piece.printed());
                    kept += if let Piece::Output(chunk) = &piece { chunk.bytes.len() } else { 0 };
                    found.push((start, piece));
                }
                place = next;
            }
        }
        Ok(found)
    }

    /// The lines that contain this text, up to `limit`; with `only`, those of one stream.
    pub fn find_lines(
        &mut self,
        store: &dyn Store,
        has_ended: bool,
        text: &str,
        only: Option<Stream>,
        limit: usize,
    ) -> Result<Vec<Line>, OpError> {
        let mut search = LineSearch { text: text.as_bytes(), only, limit, ..LineSearch::default() };
        while search.found.len() < limit {
            let pieces = self.read(store, has_ended)?;
            if pieces.is_empty() {
                search.end();
                break;
            }
            for piece in &pieces {
                search.add(piece);
            }
        }
        // Lines end in another order than they begin.
        search.found.sort_unstable_by_key(|line| line.number);
        search.found.truncate(limit);
        Ok(search.found)
    }
}

/// The rest of a piece after this many bytes; `None` if nothing is left.
fn after(piece: Piece, skip: u64) -> Option<Piece> {
    match piece {
        whole if skip == 0 => Some(whole),
        Piece::Cut { bytes } => {
            bytes.checked_sub(skip).filter(|left| *left > 0).map(|bytes| Piece::Cut { bytes })
        }
        Piece::Output(Chunk { stream, at, mut bytes }) => {
            let skip = usize::try_from(skip).unwrap_or(usize::MAX).min(bytes.len());
            bytes.drain(..skip);
            (!bytes.is_empty()).then_some(Piece::Output(Chunk { stream, at, bytes }))
        }
    }
}

#[derive(Debug, Default)]
struct LineSearch<'t> {
    text: &'t [u8],
    only: Option<Stream>,
    limit: usize,
    found: Vec<Line>,
    /// How many lines have begun.
    lines: u64,
    /// How many bytes were printed before the next piece.
    place: u64,
    /// The lines that have not ended, one of each stream.
    open: Vec<Line>,
}

impl LineSearch<'_> {
    fn add(&mut self, piece: &Piece) {
        if let Piece::Output(chunk) = piece {
            let mut place = self.place;
            for part in chunk.bytes.split_inclusive(|byte| *byte == b'\n') {
                self.add_part(chunk, part, place);
                place = place.saturating_add(part.len() as u64);
            }
        }
        self.place = self.place.saturating_add(piece.printed());
    }

    /// Adds a part of a line, or the end of one.
    fn add_part(&mut self, chunk: &Chunk, part: &[u8], place: u64) {
        let known = self.open.iter().position(|line| line.stream == chunk.stream);
        let at = known.unwrap_or_else(|| {
            self.lines += 1;
            let Chunk { stream, at, .. } = *chunk;
            self.open.push(Line { number: self.lines, from: place, at, stream, bytes: Vec::new() });
            self.open.len() - 1
        });
        let text = part.strip_suffix(b"\n").unwrap_or(part);
        let line = &mut self.open[at];
        let room = MAX_LINE_BYTES.saturating_sub(line.bytes.len()).min(text.len());
        line.bytes.extend_from_slice(&text[..room]);
        if text.len() < part.len() {
            let line = self.open.swap_remove(at);
            self.take(line);
        }
    }

    fn end(&mut self) {
        for line in std::mem::take(&mut self.open) {
            self.take(line);
        }
    }

    /// Keeps a whole line that matches.
    fn take(&mut self, line: Line) {
        let is_wanted = self.only.is_none_or(|only| only == line.stream) && self.found.len() < self.limit;
        if is_wanted && contains(&line.bytes, self.text) {
            self.found.push(line);
        }
    }
}

fn contains(line: &[u8], text: &[u8]) -> bool {
    text.is_empty() || line.windows(text.len()).any(|part| part == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(stream: Stream, text: &str) -> Piece {
        Piece::Output(Chunk { stream, at: Duration::from_millis(7), bytes: text.as_bytes().to_vec() })
    }

    fn search(text: &str, only: Option<Stream>, pieces: &[Piece]) -> Vec<(u64, u64, String)> {
        let mut search = LineSearch { text: text.as_bytes(), only, limit: 9, ..LineSearch::default() };
        for piece in pieces {
            search.add(piece);
        }
        search.end();
        search.found.sort_unstable_by_key(|line| line.number);
        let shown = |line: Line| (line.number, line.from, String::from_utf8(line.bytes).expect("text"));
        search.found.into_iter().map(shown).collect()
    }

    #[test]
    fn lines_are_found_across_pieces_and_streams() {
        let pieces = [
            piece(Stream::Out, "one\ntw"),
            piece(Stream::Err, "err two\n"),
            piece(Stream::Out, "o three\nlast"),
            Piece::Cut { bytes: 100 },
            piece(Stream::Out, " two"),
        ];
        let all = [(2, 4, "two three"), (3, 6, "err two"), (4, 22, "last two")];
        let all = all.map(|(number, from, text)| (number, from, text.to_owned()));
        assert_eq!(search("two", None, &pieces), all);
        assert_eq!(search("two", Some(Stream::Err), &pieces), [all[1].clone()]);
        assert_eq!(search("nothing", None, &pieces), []);
        assert_eq!(search("", None, &pieces).len(), 4);
    }

    #[test]
    fn a_long_line_is_searched_up_to_a_limit() {
        let long = "x".repeat(MAX_LINE_BYTES) + "end";
        let found = search("x", None, &[piece(Stream::Out, &long), piece(Stream::Out, "more\nx")]);
        assert_eq!(found.iter().map(|line| line.2.len()).collect::<Vec<_>>(), [MAX_LINE_BYTES, 1]);
        assert_eq!(search("end", None, &[piece(Stream::Out, &long)]), []);
    }

    #[test]
    fn the_beginning_of_a_piece_can_be_left_out() {
        let stdout = |text| piece(Stream::Out, text);
        assert_eq!(after(stdout("abc"), 0), Some(stdout("abc")));
        assert_eq!(after(stdout("abc"), 2), Some(stdout("c")));
        assert_eq!(after(stdout("abc"), 3), None);
        assert_eq!(after(Piece::Cut { bytes: 5 }, 3), Some(Piece::Cut { bytes: 2 }));
        assert_eq!(after(Piece::Cut { bytes: 5 }, 9), None);
    }
}
