//! The last line of a stream that is not blank, in bounded memory.

/// How much of a line is kept from its start: more than an error line shows, because colour codes take space too.
const MAX_LINE_BYTES: usize = 1024;

/// Allocates nothing until there is output.
#[derive(Debug, Default)]
pub(crate) struct LastLine {
    /// The last complete line that was not blank.
    ended: Vec<u8>,
    /// The line that is not complete yet.
    open: Vec<u8>,
}

impl LastLine {
    /// Examines only the end of `bytes`, so that much output costs little.
    pub(crate) fn take(&mut self, bytes: &[u8]) {
        // A progress bar ends its lines with a carriage return.
        if !bytes.contains(&b'\n') && !bytes.contains(&b'\r') {
            extend(&mut self.open, bytes);
            return;
        }
        let mut lines = bytes.rsplit(|byte| matches!(byte, b'\n' | b'\r')).peekable();
        let unfinished = lines.next().unwrap_or_default();
        while let Some(line) = lines.next() {
            let continues_open_line = lines.peek().is_none();
            if continues_open_line {
                extend(&mut self.open, line);
                if !is_blank(&self.open) {
                    std::mem::swap(&mut self.ended, &mut self.open);
                }
            } else if !is_blank(line) {
                self.ended.clear();
                extend(&mut self.ended, line);
                break;
            }
        }
        self.open.clear();
        extend(&mut self.open, unfinished);
    }

    pub(crate) fn finish(self) -> Option<String> {
        let line = if is_blank(&self.open) { self.ended } else { self.open };
        let mut text = String::from_utf8_lossy(&line).into_owned();
        if line.len() == MAX_LINE_BYTES && text.ends_with(char::REPLACEMENT_CHARACTER) {
            // A character that the limit cut in two.
            text.pop();
        }
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }
}

fn extend(line: &mut Vec<u8>, bytes: &[u8]) {
    let room = MAX_LINE_BYTES - line.len();
    line.extend_from_slice(&bytes[..room.min(bytes.len())]);
}

fn is_blank(line: &[u8]) -> bool {
    line.iter().all(u8::is_ascii_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn last_of(parts: &[&[u8]]) -> Option<String> {
        let mut last = LastLine::default();
        for part in parts {
            last.take(part);
        }
        last.finish()
    }

    #[test]
    fn the_last_line_that_is_not_blank_is_kept() {
        for (printed, expected) in [
            ("one\ntwo\n", Some("two")),
            ("one\ntwo", Some("two")),
            ("one\n\n  \n\t\r\n", Some("one")),
            ("10%\r50%\r100%\r\n", Some("100%")),
            ("  padded  \n", Some("padded")),
            ("\n\n", None),
            ("", None),
        ] {
            assert_eq!(last_of(&[printed.as_bytes()]).as_deref(), expected, "{printed:?}");
        }
    }

    #[test]
    fn lines_may_arrive_in_pieces() {
        assert_eq!(last_of(&[b"he", b"llo", b"\n", b"\n"]).as_deref(), Some("hello"));
        assert_eq!(last_of(&[b"first\nsec", b"ond\n \n"]).as_deref(), Some("second"));
        assert_eq!(last_of(&[b"first\n  ", b"\nx"]).as_deref(), Some("x"));
    }

    #[test]
    fn the_start_of_a_long_line_is_kept() {
        let line = last_of(&[b"error: ", &vec![b'x'; 1 << 20], b"\n"]).expect("a line");
        assert!(line.starts_with("error: xx") && line.len() == MAX_LINE_BYTES);
        let line = last_of(&["ä".repeat(MAX_LINE_BYTES).as_bytes()]).expect("a line");
        assert_eq!(line, "ä".repeat(MAX_LINE_BYTES / 2));
        let line = last_of(&[format!("x{}", "ä".repeat(MAX_LINE_BYTES)).as_bytes()]).expect("a line");
        assert!(line.ends_with('ä'), "no half of a character is left");
    }

    #[test]
    fn invalid_utf8_is_replaced() {
        assert_eq!(last_of(&[b"\xff\xfe bad\n"]).as_deref(), Some("\u{fffd}\u{fffd} bad"));
    }

    proptest! {
        #[test]
        fn the_result_does_not_depend_on_how_the_output_was_split(printed in "[ab \n\r]{0,60}", cuts in prop::collection::vec(0_usize..60, 0..6)) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|at| at.min(printed.len())).collect();
            cuts.extend([0, printed.len()]);
            cuts.sort_unstable();
            let parts: Vec<&[u8]> = cuts.windows(2).map(|pair| &printed.as_bytes()[pair[0]..pair[1]]).collect();
            let expected = printed.split(['\n', '\r']).map(str::trim).rfind(|line| !line.is_empty());
            prop_assert_eq!(last_of(&parts), expected.map(str::to_owned));
        }
    }
}
