//! Prints the output of attempts: unchanged for a program, escaped for a terminal, or as JSON lines.
//!
//! Lines that begin with the job or with a time are printed whole: a line is kept until it ends.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use clap::ColorChoice;

use super::text::{printable, rough_size};
use crate::context::{Context, write_json_line};
use crate::failure::Failure;
use domain::job::Attempt;
use domain::log::Stream;
use domain::text::terminal_text::{TerminalText, incomplete_character_len};
use domain::values::clock::Clock;
use domain::values::name::JobId;
use domain::values::timestamp::Timestamp;
use ops::jobs::logs::{Chunk, Piece};
use ops::json::{CutJson, OutputJson};

/// A longer line is printed in parts.
const MAX_LINE_BYTES: usize = 64 << 10;

#[derive(Clone, Debug, Default)]
pub(crate) struct PrintOptions {
    /// Only this stream.
    pub(crate) only: Option<Stream>,
    /// Unescaped, even on a terminal.
    pub(crate) raw: bool,
    /// Each line begins with the time when it was printed.
    pub(crate) timestamps: bool,
    /// Each line begins with the job.
    pub(crate) label: Option<Label>,
}

/// The name of a job at the beginning of a line.
#[derive(Clone, Debug)]
pub(crate) struct Label {
    pub(crate) name: String,
    /// The width of the longest name.
    pub(crate) width: usize,
    /// Tells jobs apart.
    pub(crate) style: Style,
}

pub(crate) struct Printer<'c> {
    context: &'c Context,
    options: PrintOptions,
    mode: OutputMode,
    out: Box<dyn Write>,
    job: JobId,
    attempt: u32,
    started_at: Timestamp,
    streams: [StreamState; 2],
    in_line: bool,
    /// Shows the times of lines.
    clock: Clock,
}

/// What is kept of a stream between two pieces.
struct StreamState {
    text: TerminalText,
    /// The last bytes, for JSON, if they may be the start of an incomplete character.
    held_back: Vec<u8>,
    /// A line that has not ended.
    line: Vec<u8>,
    /// When the line began.
    line_at: Timestamp,
    /// When the latest output was written.
    at: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OutputMode {
    Bytes,
    /// Control characters are escaped; stderr is coloured.
    Terminal,
    Json,
}

impl<'c> Printer<'c> {
    pub(crate) fn new(context: &'c Context, job: &JobId, options: PrintOptions) -> Self {
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
        let streams = [(); 2].map(|()| StreamState {
            text: TerminalText::new(context.has_colors()),
            held_back: Vec::new(),
            line: Vec::new(),
            line_at: Timestamp::EPOCH,
            at: Timestamp::EPOCH,
        });
        let (job, started_at) = (job.clone(), Timestamp::EPOCH);
        let clock = context.clock(Timestamp::EPOCH);
        Self { context, options, mode, out, job, attempt: 0, started_at, streams, in_line: false, clock }
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
        if self.options.timestamps {
            self.clock.now = self.context.store()?.now()?;
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

    /// The attempt has ended: bytes that were held back are printed as they are.
    pub(crate) fn end_attempt(&mut self) -> Result<(), Failure> {
        self.end_lines()?;
        for stream in Stream::ALL {
            match self.mode {
                OutputMode::Bytes => {}
                OutputMode::Terminal => {
                    let text = self.state(stream).text.finish();
                    self.print_text(stream, &text)?;
                }
                OutputMode::Json => {
                    let rest = std::mem::take(&mut self.state(stream).held_back);
                    self.print_json(stream, &rest)?;
                }
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
        let label = self.options.label.as_ref().map_or_else(String::new, |label| format!("{}: ", label.name));
        Ok(writeln!(self.context.notes(), "{dim}{label}{}{dim:#}", printable(note))?)
    }

    fn print_chunk(&mut self, chunk: &Chunk) -> Result<(), Failure> {
        let at = self.started_at.saturating_add(chunk.at);
        self.state(chunk.stream).at = at;
        match self.mode {
            OutputMode::Json => {
                let state = self.state(chunk.stream);
                let mut bytes = std::mem::take(&mut state.held_back);
                bytes.extend_from_slice(&chunk.bytes);
                state.held_back = bytes.split_off(bytes.len() - incomplete_character_len(&bytes));
                self.print_json(chunk.stream, &bytes)
            }
            OutputMode::Bytes | OutputMode::Terminal if self.prints_whole_lines() => {
                self.add_to_line(chunk, at)
            }
            OutputMode::Bytes => Ok(self.out.write_all(&chunk.bytes)?),
            OutputMode::Terminal => {
                let text = self.state(chunk.stream).text.push(&chunk.bytes);
                self.print_text(chunk.stream, &text)
            }
        }
    }

    fn print_json(&mut self, stream: Stream, bytes: &[u8]) -> Result<(), Failure> {
        if bytes.is_empty() {
            return Ok(());
        }
        let (at, text) = (self.state(stream).at, String::from_utf8_lossy(bytes));
        let (job, attempt) = (&self.job, self.attempt);
        let line = OutputJson { job, attempt, stream: stream.name(), at, text: &text };
        Ok(write_json_line(&mut self.out, &line)?)
    }

    fn print_text(&mut self, stream: Stream, text: &str) -> Result<(), Failure> {
        if text.is_empty() {
            return Ok(());
        }
        let style = style_of(stream);
        write!(self.out, "{style}{text}{style:#}")?;
        self.in_line = !ends_line(text);
        Ok(())
    }

    fn print_cut(&mut self, bytes: u64) -> Result<(), Failure> {
        if self.mode == OutputMode::Json {
            let cut = CutJson { job: &self.job, attempt: self.attempt, cut_bytes: bytes };
            return Ok(write_json_line(&mut self.out, &cut)?);
        }
        self.end_lines()?;
        self.note(&format!("[… {} cut …]", rough_size(bytes)))
    }

    fn prints_whole_lines(&self) -> bool {
        self.options.timestamps || self.options.label.is_some()
    }

    fn add_to_line(&mut self, chunk: &Chunk, at: Timestamp) -> Result<(), Failure> {
        for part in chunk.bytes.split_inclusive(|byte| *byte == b'\n') {
            let state = self.state(chunk.stream);
            if state.line.is_empty() {
                state.line_at = at;
            }
            state.line.extend_from_slice(part);
            if part.ends_with(b"\n") || state.line.len() >= MAX_LINE_BYTES {
                self.print_line(chunk.stream)?;
            }
        }
        Ok(())
    }

    /// Prints the lines that have not ended.
    fn end_lines(&mut self) -> Result<(), Failure> {
        for stream in Stream::ALL {
            if !self.state(stream).line.is_empty() {
                self.print_line(stream)?;
            }
        }
        Ok(())
    }

    fn print_line(&mut self, stream: Stream) -> Result<(), Failure> {
        let state = self.state(stream);
        let (line, at) = (std::mem::take(&mut state.line), state.line_at);
        let line = line.strip_suffix(b"\n").unwrap_or(&line);
        let is_plain = self.mode == OutputMode::Bytes;
        let styled = |style: Style| if is_plain { Style::new() } else { style };
        if let Some(Label { name, width, style }) = &self.options.label {
            let style = styled(*style);
            write!(self.out, "{style}{name:width$} |{style:#} ")?;
        }
        if self.options.timestamps {
            let dim = styled(Style::new().dimmed());
            write!(self.out, "{dim}{}{dim:#} ", self.clock.time_of_line(at))?;
        }
        if is_plain {
            self.out.write_all(line)?;
        } else {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            let text = self.state(stream).text.show(line);
            let style = style_of(stream);
            write!(self.out, "{style}{text}{style:#}")?;
        }
        Ok(self.out.write_all(b"\n")?)
    }

    /// Ends an unfinished line, so that a note does not share it with output.
    fn end_line(&mut self) -> Result<(), Failure> {
        if std::mem::take(&mut self.in_line) {
            writeln!(self.out)?;
        }
        Ok(())
    }

    fn state(&mut self, stream: Stream) -> &mut StreamState {
        match stream {
            Stream::Out => &mut self.streams[0],
            Stream::Err => &mut self.streams[1],
        }
    }
}

fn style_of(stream: Stream) -> Style {
    match stream {
        Stream::Out => Style::new(),
        Stream::Err => AnsiColor::Red.on_default(),
    }
}

/// Whether the cursor is at the beginning of a line after this text; a reset of colours may follow the newline.
fn ends_line(text: &str) -> bool {
    text.trim_end_matches("\u{1b}[0m").ends_with('\n')
}
