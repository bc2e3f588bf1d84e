//! Lines of output with their numbers.

use maud::{Markup, html};

use super::number::bytes;
use super::sgr::{self, Look};
use super::time;
use domain::log::Stream;
use domain::values::timestamp::Timestamp;

/// A line, or a place where output was not kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LogRow {
    Line(LogLine),
    Cut { bytes: u64 },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LogLine {
    /// Counted from 1, in the order in which lines began.
    pub(crate) number: u64,
    /// The same among the lines of its stream.
    pub(crate) row: u64,
    pub(crate) at: Timestamp,
    pub(crate) stream: Stream,
    pub(crate) bytes: Vec<u8>,
    /// The look with which it begins.
    pub(crate) look: Look,
    /// Whether it has the text that the reader looks for.
    pub(crate) is_hit: bool,
}

impl LogLine {
    /// Adds what a command printed after it. A carriage return begins the line again, as on a terminal.
    pub(crate) fn overwrite(&mut self, mut part: &[u8], max: usize) {
        if self.bytes.last() == Some(&b'\r') && !part.is_empty() {
            self.bytes.clear();
        }
        if !part.contains(&b'\r') {
            return self.extend(part, max);
        }
        let text_end = part.iter().rposition(|byte| *byte != b'\r').map_or(0, |at| at + 1);
        if let Some(at) = part[..text_end].iter().rposition(|byte| *byte == b'\r') {
            self.bytes.clear();
            part = &part[at + 1..];
        }
        self.extend(part, max);
    }

    fn extend(&mut self, part: &[u8], max: usize) {
        let room = max.saturating_sub(self.bytes.len()).min(part.len());
        self.bytes.extend_from_slice(&part[..room]);
    }
}

/// Rows as items of a list; `url` is the page with the beginning of its query, which links to lines extend.
pub(crate) fn items(now: Timestamp, rows: &[LogRow], url: &str) -> Markup {
    html! {
        @for row in rows {
            @match row {
                LogRow::Line(line) => {
                    li .err[line.stream == Stream::Err] .hit[line.is_hit] id={ "L" (line.number) } {
                        a .n href={ (url) "line=" (line.number) "#L" (line.number) } aria-label={ "Line " (line.number) } { (line.number) }
                        span .t { (time::of_line(now, line.at)) }
                        @let mut look = line.look;
                        code { (sgr::line(&line.bytes, &mut look)) }
                        @if line.stream == Stream::Err { span .hidden { " (stderr)" } }
                    }
                },
                LogRow::Cut { bytes: cut } => li .gap { (bytes(*cut)) " were not kept here" },
            }
        }
    }
}
