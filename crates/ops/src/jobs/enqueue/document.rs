//! Tells one JSON document, perhaps pretty-printed over many lines, from JSON lines.
//!
//! An array is a document, and so is an object whose first line is not a complete JSON value. Several objects may follow
//! each other, as jq prints them. A document is read as a whole, and its jobs are stored in one transaction; so its size
//! is limited, in contrast to lines.

use std::io::{BufRead, Read};

use serde::de::IgnoredAny;

use super::lines::read_line;
use crate::OpError;
use crate::error::JsonProblem;
use domain::job::spec::JobSpec;

/// The largest document. Other writers wait for the transaction that stores it.
pub const MAX_DOCUMENT_BYTES: usize = 16 << 20;
/// Blank input of this length is not searched for the beginning of a document.
const MAX_BLANK_BYTES: usize = 1 << 20;
/// Editors on Windows begin a file with it.
pub(super) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// How an input begins.
#[derive(Debug)]
pub enum Beginning {
    /// The jobs of a document.
    Document(Vec<JobSpec>),
    /// The bytes that were read to find out; the lines begin with them.
    Lines(Vec<u8>),
}

pub fn begin(source: &mut impl BufRead) -> Result<Beginning, OpError> {
    let mut read = Vec::new();
    loop {
        let (is_blank, is_array) = match next_byte(source)? {
            None => return Ok(Beginning::Lines(read)),
            Some(byte) => (byte.is_ascii_whitespace() || BYTE_ORDER_MARK.contains(&byte), byte == b'['),
        };
        if is_array {
            read_rest(source, &mut read)?;
            return parse(&read, parse_array).map(Beginning::Document);
        }
        if !is_blank || read.len() == MAX_BLANK_BYTES {
            break;
        }
        read.extend(next_byte(source)?);
        source.consume(1);
    }
    let line = read.split(|byte| *byte == b'\n').count() as u64;
    let before = read.len();
    read_line(source, &mut read, b'\n').map_err(|error| bad_line(line, error))?;
    let first = &read[before..];
    let is_complete = !serde_json::from_slice::<IgnoredAny>(first).is_err_and(|error| error.is_eof());
    if first.first() != Some(&b'{') || is_complete {
        return Ok(Beginning::Lines(read));
    }
    read_rest(source, &mut read)?;
    parse(&read, parse_objects).map(Beginning::Document)
}

fn parse_array(text: &[u8]) -> Result<Vec<JobSpec>, serde_json::Error> {
    serde_json::from_slice(text)
}

fn parse_objects(text: &[u8]) -> Result<Vec<JobSpec>, serde_json::Error> {
    serde_json::Deserializer::from_slice(text).into_iter().collect()
}

fn next_byte(source: &mut impl BufRead) -> Result<Option<u8>, OpError> {
    Ok(source.fill_buf().map_err(cannot_read)?.first().copied())
}

fn read_rest(source: &mut impl BufRead, read: &mut Vec<u8>) -> Result<(), OpError> {
    let room = MAX_DOCUMENT_BYTES.saturating_sub(read.len());
    source.take(room as u64 + 1).read_to_end(read).map_err(cannot_read)?;
    if read.len() > MAX_DOCUMENT_BYTES {
        return Err(OpError::DocumentTooLong { limit: MAX_DOCUMENT_BYTES });
    }
    Ok(())
}

fn parse(
    text: &[u8],
    parse: impl FnOnce(&[u8]) -> Result<Vec<JobSpec>, serde_json::Error>,
) -> Result<Vec<JobSpec>, OpError> {
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    parse(text).map_err(|error| {
        let problem = JsonProblem::without_line(&error);
        bad_line(error.line() as u64, OpError::Json { is_job: error.is_data(), problem })
    })
}

fn bad_line(line: u64, source: OpError) -> OpError {
    OpError::BadLine { line, source: Box::new(source) }
}

fn cannot_read(source: std::io::Error) -> OpError {
    OpError::CannotRead { path: "the input".into(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The commands of a document, or the bytes of lines.
    fn begun(input: &str) -> Result<Result<Vec<String>, String>, String> {
        match begin(&mut input.as_bytes()) {
            Ok(Beginning::Document(jobs)) => Ok(Ok(jobs.into_iter().filter_map(|job| job.command).collect())),
            Ok(Beginning::Lines(read)) => Ok(Err(String::from_utf8(read).expect("text"))),
            Err(error) => Err(crate::error::chain(&error)),
        }
    }

    #[test]
    fn arrays_and_objects_over_several_lines_are_documents() {
        let document =
            |commands: &[&str]| Ok(Ok(commands.iter().map(|&command| command.to_owned()).collect()));
        for (input, commands) in [
            ("[]", &[][..]),
            ("[{\"command\":\"a\"},\n{\"command\":\"b\"}]\n", &["a", "b"]),
            ("\u{feff}\n [\n{\"command\":\"a\"}\n]\n\n", &["a"]),
            ("{\n  \"command\": \"a\"\n}\n", &["a"]),
            ("\u{feff}{\r\n\"command\":\"a\"}\r\n", &["a"]),
            ("{\n\"command\":\"a\"\n}\n{\n\"command\":\"b\"\n}", &["a", "b"]),
        ] {
            assert_eq!(begun(input), document(commands), "{input}");
        }
    }

    #[test]
    fn everything_else_is_lines_and_begins_with_what_was_read() {
        for (input, read) in [
            ("", ""),
            (" \n\n", " \n\n"),
            ("{\"command\":\"a\"}\n{\"command\":\"b\"}\n", "{\"command\":\"a\"}\n"),
            ("\n{\"command\":\"a\"}", "\n{\"command\":\"a\"}"),
            ("\u{feff}{\"command\":\"a\"}\nx", "\u{feff}{\"command\":\"a\"}\n"),
            ("{\"command\":}\n{\"command\":\"b\"}\n", "{\"command\":}\n"),
            ("5\n", "5\n"),
        ] {
            assert_eq!(begun(input), Ok(Err(read.to_owned())), "{input}");
        }
    }

    #[test]
    fn an_invalid_document_is_refused_with_its_line() {
        for (input, message) in [
            (
                "[\n{\"command\":1}]",
                "line 2 was refused; nothing was stored (invalid job: column 12: `command`:",
            ),
            ("{\n\"command\":\"a\",\n}", "line 3 was refused; nothing was stored (invalid JSON: column 1:"),
            ("\n{\"command\":\"a\"", "line 2 was refused; nothing was stored (invalid JSON:"),
            ("[] []", "line 1 was refused"),
        ] {
            let error = begun(input).expect_err(input);
            assert!(error.starts_with(message), "{input}: {error}");
        }
        let long = format!("[{}", " ".repeat(MAX_DOCUMENT_BYTES));
        assert!(begun(&long).expect_err("too long").contains("16777216 bytes"));
        let line = format!("{{{}", " ".repeat(super::super::lines::MAX_LINE_BYTES));
        assert!(begun(&line).expect_err("too long").starts_with("line 1 was refused"));
    }
}
