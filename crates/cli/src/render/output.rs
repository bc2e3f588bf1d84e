//! Prints the output of attempts: unchanged for a program, escaped for a terminal, or as JSON lines.

use std::borrow::Cow;
use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use clap::ColorChoice;

use super::text::{printable, printable_lines, rough_size};
use crate::context::{Context, write_json_line};
use crate::failure::Failure;
use domain::job::Attempt;
use domain::log::Stream;
use domain::values::timestamp::Timestamp;
use ops::jobs::logs::{Chunk, Piece};
use ops::json::{CutJson, OutputJson};

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PrintOptions {
    /// Only this stream.
    pub(crate) only: Option<Stream>,
    /// Unescaped, even on a terminal.
    pub(crate) raw: bool,
}

pub(crate) struct Printer<'c> {
    context: &'c Context,
    options: PrintOptions,
    mode: OutputMode,
    out: Box<dyn Write>,
    attempt: u32,
    started_at: Timestamp,
    /// When the latest output was written.
    at: Timestamp,
    /// The last bytes of each stream, if they may be the start of an incomplete character.
    held_back: [Vec<u8>; 2],
    in_line: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OutputMode {
    Bytes,
    /// Control characters are escaped; stderr is coloured.
    Terminal,
    Json,
}

impl<'c> Printer<'c> {
    pub(crate) fn new(context: &'c Context, options: PrintOptions) -> Self {
        let for_terminal = context.stdout_is_terminal || context.color == ColorChoice::Always;
        let mode = if context.json {
            OutputMode::Json
        } else if for_terminal && !options.raw {
            OutputMode::Terminal
        } else {
            OutputMode::Bytes
        };
        let out: Box<dyn Write> = match mode {
            OutputMode::Terminal => Box::new(context.out()),
            OutputMode::Bytes | OutputMode::Json => Box::new(io::BufWriter::new(io::stdout())),
        };
        Self {
            context,
            options,
            mode,
            out,
            attempt: 0,
            started_at: Timestamp::EPOCH,
            at: Timestamp::EPOCH,
            held_back: [Vec::new(), Vec::new()],
            in_line: false,
        }
    }

    /// Attributes the following output to this attempt.
    pub(crate) fn begin_attempt(&mut self, attempt: &Attempt) {
        self.attempt = attempt.number;
        self.started_at = attempt.started_at;
    }

    pub(crate) fn print(&mut self, pieces: &[Piece]) -> Result<(), Failure> {
        if self.context.quiet {
            return Ok(());
        }
        for piece in pieces {
            match piece {
                Piece::Output(chunk) if self.options.only.is_none_or(|only| only == chunk.stream) => {
                    self.print_chunk(chunk)?;
                }
                Piece::Output(_) => {}
                Piece::Cut { bytes } => self.print_cut(*bytes)?,
            }
        }
        Ok(self.out.flush()?)
    }

    /// The attempt has ended: bytes that were held back as the start of a character are printed as they are.
    pub(crate) fn end_attempt(&mut self) -> Result<(), Failure> {
        for stream in Stream::ALL {
            let rest = std::mem::take(self.held_back_of(stream));
            if !rest.is_empty() {
                self.print_text(stream, &rest)?;
            }
        }
        self.end_line()?;
        Ok(self.out.flush()?)
    }

    /// Prints a note on standard error.
    pub(crate) fn note(&mut self, note: &str) -> Result<(), Failure> {
        if self.context.quiet || self.context.json {
            return Ok(());
        }
        self.end_line()?;
        self.out.flush()?;
        let dim = Style::new().dimmed();
        Ok(writeln!(self.context.notes(), "{dim}{}{dim:#}", printable(note))?)
    }

    fn print_chunk(&mut self, chunk: &Chunk) -> Result<(), Failure> {
        if self.mode == OutputMode::Bytes {
            return Ok(self.out.write_all(&chunk.bytes)?);
        }
        let mut bytes = std::mem::take(self.held_back_of(chunk.stream));
        bytes.extend_from_slice(&chunk.bytes);
        let whole = bytes.len() - incomplete_suffix_len(&bytes, self.mode == OutputMode::Terminal);
        *self.held_back_of(chunk.stream) = bytes.split_off(whole);
        if bytes.is_empty() {
            return Ok(());
        }
        self.at = self.started_at.saturating_add(chunk.at);
        self.print_text(chunk.stream, &bytes)
    }

    fn print_text(&mut self, stream: Stream, bytes: &[u8]) -> Result<(), Failure> {
        if self.mode == OutputMode::Json {
            let text = String::from_utf8_lossy(bytes);
            let line = OutputJson { attempt: self.attempt, stream: stream.name(), at: self.at, text: &text };
            return Ok(write_json_line(&mut self.out, &line)?);
        }
        let style = match stream {
            Stream::Out => Style::new(),
            Stream::Err => AnsiColor::Red.on_default(),
        };
        write!(self.out, "{style}{}{style:#}", escape_for_terminal(bytes))?;
        self.in_line = !bytes.ends_with(b"\n");
        Ok(())
    }

    fn print_cut(&mut self, bytes: u64) -> Result<(), Failure> {
        if self.mode == OutputMode::Json {
            let cut = CutJson { attempt: self.attempt, cut_bytes: bytes };
            return Ok(write_json_line(&mut self.out, &cut)?);
        }
        self.note(&format!("[… {} cut …]", rough_size(bytes)))
    }

    /// Ends an unfinished line, so that a note does not share it with output.
    fn end_line(&mut self) -> Result<(), Failure> {
        if std::mem::take(&mut self.in_line) {
            writeln!(self.out)?;
        }
        Ok(())
    }

    fn held_back_of(&mut self, stream: Stream) -> &mut Vec<u8> {
        match stream {
            Stream::Out => &mut self.held_back[0],
            Stream::Err => &mut self.held_back[1],
        }
    }
}

/// Output with control characters escaped. Bytes that are not valid UTF-8 are shown as `\xff`.
fn escape_for_terminal(bytes: &[u8]) -> String {
    let mut shown = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        let text = chunk.valid();
        let text =
            if text.contains("\r\n") { text.replace("\r\n", "\n").into() } else { Cow::Borrowed(text) };
        shown.push_str(&printable_lines(&text));
        shown.extend(chunk.invalid().iter().flat_map(|byte| byte.escape_ascii().map(char::from)));
    }
    shown
}

/// How many bytes at the end may be completed by the bytes that follow: part of a character or, if `lines` are shown, of
/// a line ending.
fn incomplete_suffix_len(bytes: &[u8], lines: bool) -> usize {
    const LONGEST_CHARACTER: usize = 4;
    if lines && bytes.ends_with(b"\r") {
        return 1;
    }
    for length in 1..LONGEST_CHARACTER.min(bytes.len() + 1) {
        let last = &bytes[bytes.len() - length..];
        match std::str::from_utf8(last) {
            Ok(_) => return 0,
            Err(error) if error.valid_up_to() == 0 && error.error_len().is_none() => return length,
            Err(_) => {}
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        for (bytes, shown) in [
            (&b"plain\ttext\n"[..], "plain\ttext\n"),
            (b"\x1b[31mred\x1b[0m", "\\u{1b}[31mred\\u{1b}[0m"),
            (b"dos\r\nline\r\n", "dos\nline\n"),
            (b"10%\r20%", "10%\\r20%"),
            (b"\xff\x00\xc3", "\\xff\\u{0}\\xc3"),
            ("\u{202e}ä\u{9b}".as_bytes(), "\\u{202e}ä\\u{9b}"),
        ] {
            assert_eq!(escape_for_terminal(bytes), shown);
        }
    }

    #[test]
    fn an_incomplete_character_at_the_end_is_held_back() {
        for (bytes, expected) in [
            (&b""[..], 0),
            (b"a", 0),
            ("ä".as_bytes(), 0),
            (b"a\xc3", 1),
            (b"\xe2\x82", 2),
            (b"x\xf0\x9f\x98", 3),
            (b"\xff", 0),
            (b"\x80\x80", 0),
            (b"\xc3\xff", 0),
            (b"\xf0\x9f\x98\x80", 0),
        ] {
            assert_eq!(incomplete_suffix_len(bytes, false), expected, "{bytes:?}");
        }
        assert_eq!((incomplete_suffix_len(b"a\r", true), incomplete_suffix_len(b"a\r", false)), (1, 0));
    }
}
