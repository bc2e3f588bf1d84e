//! The last lines of an output.

use super::Piece;
use domain::log::Stream;

/// How many lines to keep, and of which stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tail {
    pub lines: usize,
    /// `None`: of both, as they were printed.
    pub only: Option<Stream>,
}

/// The last lines of these pieces, and whether there were as many as wanted. A line that does not end counts.
pub(crate) fn last_lines(mut pieces: Vec<Piece>, tail: Tail) -> (Vec<Piece>, bool) {
    if tail.lines == 0 {
        return (Vec::new(), true);
    }
    let mut left = tail.lines;
    let mut is_end = true;
    for index in (0..pieces.len()).rev() {
        let Piece::Output(chunk) = &mut pieces[index] else {
            continue;
        };
        if tail.only.is_some_and(|only| only != chunk.stream) || chunk.bytes.is_empty() {
            continue;
        }
        // The newline at the very end belongs to the last line; a line begins after each one before it.
        let end = chunk.bytes.len() - usize::from(is_end && chunk.bytes.ends_with(b"\n"));
        is_end = false;
        let newlines = chunk.bytes[..end].iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n');
        let (mut found, mut start) = (0, None);
        for (at, _) in newlines.take(left) {
            (found, start) = (found + 1, Some(at + 1));
        }
        left -= found;
        if let (0, Some(start)) = (left, start) {
            chunk.bytes.drain(..start);
            let is_empty = chunk.bytes.is_empty();
            return (pieces.split_off(index + usize::from(is_empty)), true);
        }
    }
    (pieces, false)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::jobs::logs::Chunk;

    const NEITHER: Option<Stream> = None;

    fn pieces(printed: &[(Stream, &str)]) -> Vec<Piece> {
        let piece = |(stream, text): &(Stream, &str)| {
            let (at, bytes) = (Duration::ZERO, text.as_bytes().to_vec());
            Piece::Output(Chunk { stream: *stream, at, bytes })
        };
        printed.iter().map(piece).collect()
    }

    fn text(pieces: &[Piece]) -> String {
        let text = |piece: &Piece| match piece {
            Piece::Output(chunk) => String::from_utf8_lossy(&chunk.bytes).into_owned(),
            Piece::Cut { bytes } => format!("[{bytes}]"),
        };
        pieces.iter().map(text).collect()
    }

    #[test]
    fn the_last_lines_are_kept_across_pieces() {
        use Stream::{Err, Out};
        let whole = [(Out, "one\ntw"), (Err, "oh\n"), (Out, "o\nthree\n"), (Out, "four")];
        for (lines, only, kept, enough) in [
            (0, NEITHER, "", true),
            (1, NEITHER, "four", true),
            (2, NEITHER, "three\nfour", true),
            (3, NEITHER, "o\nthree\nfour", true),
            (4, NEITHER, "twoh\no\nthree\nfour", true),
            (5, NEITHER, "one\ntwoh\no\nthree\nfour", false),
            (9, NEITHER, "one\ntwoh\no\nthree\nfour", false),
            (1, Some(Err), "one\ntwoh\no\nthree\nfour", false),
            (3, Some(Out), "twoh\no\nthree\nfour", true),
        ] {
            let (found, is_enough) = last_lines(pieces(&whole), Tail { lines, only });
            assert_eq!((text(&found).as_str(), is_enough), (kept, enough), "{lines} of {only:?}");
        }
    }

    #[test]
    fn a_newline_at_the_end_is_no_line_of_its_own() {
        let whole = [(Stream::Out, "a\n"), (Stream::Out, "b\n"), (Stream::Out, "\n")];
        let last = |lines| text(&last_lines(pieces(&whole), Tail { lines, only: None }).0);
        assert_eq!((last(1).as_str(), last(2).as_str(), last(3).as_str()), ("\n", "b\n\n", "a\nb\n\n"));
        assert_eq!(last_lines(Vec::new(), Tail { lines: 1, only: None }), (Vec::new(), false));
    }

    #[test]
    fn a_cut_between_the_lines_is_kept() {
        let mut whole = pieces(&[(Stream::Out, "a\nb\n")]);
        whole.push(Piece::Cut { bytes: 7 });
        whole.extend(pieces(&[(Stream::Out, "c\n")]));
        assert_eq!(text(&last_lines(whole, Tail { lines: 2, only: None }).0), "b\n[7]c\n");
    }
}
