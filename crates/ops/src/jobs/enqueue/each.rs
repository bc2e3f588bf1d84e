//! One job for each line of a file, or for each row of a CSV file.

use std::io::BufRead;

use super::lines::{Numbered, read_line};
use crate::OpError;
use domain::job::request::{JobRequest, check_command};
use domain::job::template::{Template, TemplateError};

/// What becomes of a line.
#[derive(Clone, Debug)]
pub struct Each {
    /// The words of the command, with gaps.
    pub words: Vec<String>,
    /// Whether lines are rows of CSV, the first of which names the columns.
    pub is_csv: bool,
    /// What all of the jobs have in common.
    pub request: JobRequest,
}

#[derive(Debug, thiserror::Error)]
pub enum EachError {
    #[error("it is not UTF-8")]
    NotText,
    #[error(transparent)]
    Template(#[from] TemplateError),
    #[error("it has {found} fields where the head has {expected}")]
    Ragged { found: usize, expected: usize },
    #[error("a quote is not closed")]
    OpenQuote,
    #[error("it is no CSV")]
    Csv(#[from] csv::Error),
}

/// The commands of a file, one after the other.
#[derive(Debug)]
pub struct Commands<'e> {
    each: &'e Each,
    /// In CSV it is known when the head was read.
    template: Option<Template>,
    columns: usize,
}

impl<'e> Commands<'e> {
    pub fn new(each: &'e Each) -> Self {
        let template = (!each.is_csv).then(|| Template::for_lines(&each.words));
        Self { each, template, columns: 1 }
    }

    /// The job of the next line that is not blank. `line` counts the lines; `buffer` holds what was read last.
    pub(crate) fn read(
        &mut self,
        source: &mut impl BufRead,
        line: &mut u64,
        buffer: &mut Vec<u8>,
    ) -> Result<Option<Numbered>, OpError> {
        loop {
            let Some(number) = read_row(source, line, buffer, self.each.is_csv)? else {
                return Ok(None);
            };
            let text = std::str::from_utf8(buffer).map_err(|_| EachError::NotText)?;
            let text = text.strip_suffix('\n').unwrap_or(text);
            let text = text.strip_suffix('\r').unwrap_or(text);
            if let Some(command) = self.command(text)? {
                let request =
                    JobRequest { command: Some(check_command(command)?), ..self.each.request.clone() };
                return Ok(Some(Numbered { line: number, request }));
            }
        }
    }

    /// `None` for the head.
    fn command(&mut self, text: &str) -> Result<Option<String>, EachError> {
        if !self.each.is_csv {
            return Ok(self.template.as_ref().map(|template| template.fill(&[text])));
        }
        let row = parse_row(text)?;
        let fields: Vec<&str> = row.iter().collect();
        let Some(template) = &self.template else {
            self.template = Some(Template::for_columns(&self.each.words, &fields)?);
            self.columns = fields.len();
            return Ok(None);
        };
        if fields.len() != self.columns {
            return Err(EachError::Ragged { found: fields.len(), expected: self.columns });
        }
        Ok(Some(template.fill(&fields)))
    }
}

/// Reads a line that is not blank or, where a quote is still open at its end, as many as it takes to close it. Gives the
/// number of the first.
fn read_row(
    source: &mut impl BufRead,
    line: &mut u64,
    buffer: &mut Vec<u8>,
    is_csv: bool,
) -> Result<Option<u64>, OpError> {
    loop {
        buffer.clear();
        *line += 1;
        if read_line(source, buffer)? == 0 {
            return Ok(None);
        }
        if !buffer.trim_ascii().is_empty() {
            break;
        }
    }
    let first = *line;
    let mut is_open = is_csv && opens_quote(buffer);
    while is_open {
        let began = buffer.len();
        if read_line(source, buffer)? == 0 {
            return Err(EachError::OpenQuote.into());
        }
        *line += 1;
        is_open ^= opens_quote(&buffer[began..]);
    }
    Ok(Some(first))
}

/// Whether more than what was open before is open behind this: quotes come in pairs, also where two stand for one.
fn opens_quote(bytes: &[u8]) -> bool {
    bytes.iter().fold(false, |is_open, byte| is_open ^ (*byte == b'"'))
}

fn parse_row(text: &str) -> Result<csv::StringRecord, EachError> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(text.as_bytes());
    let mut row = csv::StringRecord::new();
    reader.read_record(&mut row)?;
    Ok(row)
}
