//! `enqueue --each`: one job for each line of a file or each row of a CSV file.

use std::io::BufRead;

use super::lines::{NumberedRequest, read_line};
use crate::OpError;
use domain::job::spec::{JobSpec, check_command};
use domain::job::template::{Template, TemplateError};

/// How a line becomes a job.
#[derive(Clone, Debug)]
pub struct EachSpec {
    /// The words of the command, with placeholders.
    pub words: Vec<String>,
    /// Whether the file is CSV whose first row names the columns.
    pub is_csv: bool,
    /// The fields that all the jobs share.
    pub request: JobSpec,
}

#[derive(Debug, thiserror::Error)]
pub enum EachError {
    #[error("not valid UTF-8")]
    NotText,
    #[error(transparent)]
    Template(#[from] TemplateError),
    #[error("it has {found} fields, but the header has {expected}")]
    Ragged { found: usize, expected: usize },
    #[error("a quote is not closed")]
    OpenQuote,
    #[error("not valid CSV")]
    Csv(#[from] csv::Error),
}

/// Reads the commands of a file one by one.
#[derive(Debug)]
pub struct EachCommands<'e> {
    each: &'e EachSpec,
    /// For CSV, `None` until the header has been read.
    template: Option<Template>,
    columns: usize,
}

impl<'e> EachCommands<'e> {
    pub fn new(each: &'e EachSpec) -> Self {
        let template = (!each.is_csv).then(|| Template::for_lines(&each.words));
        Self { each, template, columns: 1 }
    }

    /// The request for the next line that is not blank. `line` counts the lines; `buffer` holds the last row read.
    pub(crate) fn read(
        &mut self,
        source: &mut impl BufRead,
        line: &mut u64,
        buffer: &mut Vec<u8>,
    ) -> Result<Option<NumberedRequest>, OpError> {
        loop {
            let Some(number) = read_row(source, line, buffer, self.each.is_csv)? else {
                return Ok(None);
            };
            let text = std::str::from_utf8(buffer).map_err(|_| EachError::NotText)?;
            let text = text.strip_suffix('\n').unwrap_or(text);
            let text = text.strip_suffix('\r').unwrap_or(text);
            if let Some(command) = self.command(text)? {
                let request = JobSpec { command: Some(check_command(command)?), ..self.each.request.clone() };
                return Ok(Some(NumberedRequest { line: number, request }));
            }
        }
    }

    /// `None` for the header.
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

/// Reads the next line that is not blank; in CSV, continues until every quote is closed. Returns the number of the first
/// line.
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

/// Whether these bytes toggle the quoted state. An escaped quote is two quotes and therefore toggles it twice.
fn opens_quote(bytes: &[u8]) -> bool {
    bytes.iter().fold(false, |is_open, byte| is_open ^ (*byte == b'"'))
}

fn parse_row(text: &str) -> Result<csv::StringRecord, EachError> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(text.as_bytes());
    let mut row = csv::StringRecord::new();
    reader.read_record(&mut row)?;
    Ok(row)
}
