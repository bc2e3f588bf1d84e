//! The output of an attempt as lines. Their bytes are kept as they were printed; only what is drawn is made safe.

use std::collections::VecDeque;
use std::path::Path;
use std::time::Duration;

use super::LogQuestion;
use super::diff::{DiffLine, diff};
use domain::job::{Attempt, JobRecord};
use domain::log::Stream;
use domain::text::terminal_text::TerminalText;
use domain::values::name::JobId;
use domain::values::timestamp::Timestamp;
use ops::OpError;
use ops::jobs::logs::tail::Tail;
use ops::jobs::logs::{AttemptOutput, Piece, choose, has_ended};
use store::{Notice, Store};

/// Of a longer output only the last lines are read.
const MAX_LINES: usize = 10_000;
/// The rest of a longer line is left out.
const MAX_LINE_BYTES: usize = 16 << 10;
/// How many lines of each attempt are compared.
const MAX_DIFF_LINES: usize = 2_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LogLine {
    /// `None` for a line about the output.
    pub(crate) stream: Option<Stream>,
    /// Since the attempt's start.
    pub(crate) at: Duration,
    pub(crate) bytes: Vec<u8>,
    is_open: bool,
}

impl LogLine {
    /// As text without colours, to search in and to compare.
    pub(crate) fn plain(&self) -> String {
        TerminalText::new(false).show(&self.bytes)
    }
}

/// The output of one attempt so far.
#[derive(Clone, Debug)]
pub(crate) struct LogText {
    pub(crate) job: JobId,
    /// The job as people call it.
    pub(crate) handle: String,
    pub(crate) attempt: Attempt,
    /// How many attempts there are.
    pub(crate) attempts: u32,
    pub(crate) lines: VecDeque<LogLine>,
    pub(crate) is_over: bool,
    /// The attempt compared with the one before it.
    pub(crate) diff: Option<Vec<DiffLine>>,
    pub(crate) error: Option<String>,
}

impl LogText {
    pub(crate) fn began(&self) -> Timestamp {
        self.attempt.started_at
    }
}

/// Reads the log of the job that the user looks at.
#[derive(Debug)]
pub(crate) struct LogSource {
    question: LogQuestion,
    text: LogText,
    output: AttemptOutput,
}

impl LogSource {
    /// `None` if the job has not run yet.
    pub(crate) fn open(home: &Path, record: &JobRecord, question: LogQuestion) -> Option<Self> {
        let attempt = choose(record, home, question.attempt).ok().flatten()?.clone();
        let tail = Tail { lines: MAX_LINES, only: None };
        let output = AttemptOutput::new(home, &record.job, &attempt).with_tail(Some(tail));
        let text = LogText {
            job: record.job.id.clone(),
            handle: record.job.handle(),
            attempts: record.history.last().map_or(0, |last| last.number),
            attempt,
            lines: VecDeque::new(),
            is_over: false,
            diff: None,
            error: None,
        };
        Some(Self { question, text, output })
    }

    /// Whether it is the log that the question is about.
    pub(crate) fn answers(&self, record: &JobRecord, question: LogQuestion) -> bool {
        let latest = record.history.last().map_or(0, |last| last.number);
        self.text.job == record.job.id && self.question == question && self.text.attempts == latest
    }

    pub(crate) fn is_over(&self) -> bool {
        self.text.is_over
    }

    pub(crate) fn text(&self) -> LogText {
        self.text.clone()
    }

    /// Reads what is new; whether there was anything.
    pub(crate) fn poll(&mut self, store: &dyn Store, home: &Path) -> Result<bool, OpError> {
        if self.text.is_over {
            return Ok(false);
        }
        let Some(job) = store.find(&self.text.job)? else {
            self.text.is_over = true;
            return Ok(true);
        };
        let ended = has_ended(&job, self.text.attempt.number);
        if !ended && let Some(lease) = job.life.state.lease() {
            // Without it the worker would write its output later.
            store.announce(Notice::Reader { worker: &lease.worker, job: job.number })?;
        }
        let mut is_new = false;
        loop {
            let pieces = self.output.read(store, ended)?;
            if pieces.is_empty() {
                break;
            }
            is_new = true;
            for piece in pieces {
                add(&mut self.text.lines, piece);
            }
        }
        if ended {
            self.text.is_over = true;
            self.finish(store, home)?;
            return Ok(true);
        }
        Ok(is_new)
    }

    /// The attempt is over: its record may have changed, and it can be compared.
    fn finish(&mut self, store: &dyn Store, home: &Path) -> Result<(), OpError> {
        let Some(record) = store.record(&self.text.job)? else {
            return Ok(());
        };
        let number = self.text.attempt.number;
        if let Some(attempt) = record.history.iter().find(|attempt| attempt.number == number) {
            self.text.attempt = attempt.clone();
        }
        if self.question.is_diff {
            let before = record.history.iter().rev().find(|attempt| attempt.number < number);
            let before = before.map(|attempt| lines_of(store, home, &record, attempt)).transpose()?;
            self.text.diff = before.map(|before| diff(&before, &texts(&self.text.lines)));
        }
        Ok(())
    }
}

/// All lines of an attempt that has ended.
fn lines_of(
    store: &dyn Store,
    home: &Path,
    record: &JobRecord,
    attempt: &Attempt,
) -> Result<Vec<String>, OpError> {
    let tail = Tail { lines: MAX_DIFF_LINES, only: None };
    let mut output = AttemptOutput::new(home, &record.job, attempt).with_tail(Some(tail));
    let mut lines = VecDeque::new();
    loop {
        let pieces = output.read(store, true)?;
        if pieces.is_empty() {
            return Ok(texts(&lines));
        }
        for piece in pieces {
            add(&mut lines, piece);
        }
    }
}

fn texts(lines: &VecDeque<LogLine>) -> Vec<String> {
    let skipped = lines.len().saturating_sub(MAX_DIFF_LINES);
    lines.iter().skip(skipped).map(LogLine::plain).collect()
}

/// Adds a piece. A line that its stream has not ended yet is continued.
fn add(lines: &mut VecDeque<LogLine>, piece: Piece) {
    let chunk = match piece {
        Piece::Output(chunk) => chunk,
        Piece::Cut { bytes } => {
            let bytes = format!("[{bytes} bytes were not kept here]").into_bytes();
            lines.push_back(LogLine { stream: None, at: Duration::ZERO, bytes, is_open: false });
            return;
        }
    };
    for part in chunk.bytes.split_inclusive(|byte| *byte == b'\n') {
        let (text, is_whole) = match part.strip_suffix(b"\n") {
            Some(text) => (text.strip_suffix(b"\r").unwrap_or(text), true),
            None => (part, false),
        };
        let continues = |line: &&mut LogLine| line.is_open && line.stream == Some(chunk.stream);
        if let Some(line) = lines.iter_mut().rev().take(2).find(continues) {
            let room = MAX_LINE_BYTES.saturating_sub(line.bytes.len());
            line.bytes.extend(&text[..text.len().min(room)]);
            line.is_open = !is_whole;
            continue;
        }
        let bytes = text[..text.len().min(MAX_LINE_BYTES)].to_vec();
        lines.push_back(LogLine { stream: Some(chunk.stream), at: chunk.at, bytes, is_open: !is_whole });
        if lines.len() > MAX_LINES {
            lines.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ops::jobs::logs::Chunk;

    fn printed(pieces: &[(Stream, &str)]) -> Vec<String> {
        let mut lines = VecDeque::new();
        for (stream, text) in pieces {
            let chunk = Chunk { stream: *stream, at: Duration::ZERO, bytes: text.as_bytes().to_vec() };
            add(&mut lines, Piece::Output(chunk));
        }
        lines.iter().map(LogLine::plain).collect()
    }

    #[test]
    fn a_line_is_continued_by_its_own_stream() {
        use Stream::{Err, Out};
        assert_eq!(printed(&[(Out, "on"), (Err, "oh\n"), (Out, "e\r\ntwo\n")]), ["one", "oh", "two"]);
        assert_eq!(printed(&[(Out, "a\n\nb")]), ["a", "", "b"]);
    }

    #[test]
    fn lines_and_their_number_are_bounded() {
        let long = "x".repeat(3 * MAX_LINE_BYTES);
        assert_eq!(printed(&[(Stream::Out, &long)])[0].len(), MAX_LINE_BYTES);
        assert_eq!(printed(&[(Stream::Out, &"y\n".repeat(MAX_LINES + 5))]).len(), MAX_LINES);
    }
}
