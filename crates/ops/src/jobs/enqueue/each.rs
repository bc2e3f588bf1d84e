//! `--each`: one job for each line of a file, each row of a CSV file, or each argument.

use std::io::BufRead;

use super::lines::{NumberedRequest, read_line};
use crate::OpError;
use domain::job::spec::{JobSpec, check_command, check_unique_key};
use domain::job::template::{KeyTemplate, Template, TemplateError};

/// How an item becomes a job.
#[derive(Clone, Debug)]
pub struct EachSpec {
    command: EachCommand,
    items: Items,
    /// The fields that all the jobs share.
    pub request: JobSpec,
    /// `None` for CSV, whose columns are not known yet.
    template: Option<ItemTemplate>,
}

/// The parts of a job that differ from item to item.
#[derive(Clone, Debug)]
struct ItemTemplate {
    command: Template,
    unique_key: Option<KeyTemplate>,
}

/// A command with placeholders.
#[derive(Clone, Debug)]
pub enum EachCommand {
    Words(Vec<String>),
    /// Interpreted by the shell; the values are quoted.
    ShellLine(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Items {
    Lines,
    /// Rows of CSV; the first one names the columns.
    Rows,
    /// Arguments, each ended by a NUL. Empty ones count.
    Arguments,
}

impl Items {
    fn separator(self) -> u8 {
        match self {
            Self::Lines | Self::Rows => b'\n',
            Self::Arguments => b'\0',
        }
    }

    /// The item without its end. An argument is taken as it is.
    fn strip(self, text: &str) -> &str {
        match self {
            Self::Lines | Self::Rows => {
                let text = text.strip_suffix('\n').unwrap_or(text);
                text.strip_suffix('\r').unwrap_or(text)
            }
            Self::Arguments => text.strip_suffix('\0').unwrap_or(text),
        }
    }
}

impl EachSpec {
    pub fn new(command: EachCommand, items: Items, request: JobSpec) -> Result<Self, EachError> {
        let for_lines = |command: Template| -> Result<Option<ItemTemplate>, EachError> {
            let unique_key = request.unique_key.as_deref().map(KeyTemplate::for_lines).transpose()?;
            Ok(Some(ItemTemplate { command, unique_key }))
        };
        let template = match (&command, items) {
            (EachCommand::Words(_), Items::Rows) => None,
            (EachCommand::ShellLine(_), Items::Rows) => return Err(EachError::LineForRows),
            (EachCommand::Words(words), Items::Lines | Items::Arguments) => {
                for_lines(Template::for_lines(words)?)?
            }
            (EachCommand::ShellLine(line), Items::Lines | Items::Arguments) => {
                for_lines(Template::for_shell_line(line)?)?
            }
        };
        Ok(Self { command, items, request, template })
    }

    fn template_for(&self, columns: &[&str]) -> Result<ItemTemplate, EachError> {
        let EachCommand::Words(words) = &self.command else {
            return Err(EachError::LineForRows);
        };
        let key = self.request.unique_key.as_deref();
        Ok(ItemTemplate {
            command: Template::for_columns(words, columns)?,
            unique_key: key.map(|key| KeyTemplate::for_columns(key, columns)).transpose()?,
        })
    }
}

#[derive(Debug, thiserror::Error)]
pub enum EachError {
    #[error("not valid UTF-8")]
    NotText,
    #[error(transparent)]
    Template(#[from] TemplateError),
    #[error("it has {found} fields, but the header has {expected}")]
    Ragged { found: usize, expected: usize },
    #[error("with --csv the command is given as words, each an argument of its own")]
    LineForRows,
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
    template: Option<ItemTemplate>,
    columns: usize,
    /// How many commands were read.
    count: u64,
}

impl<'e> EachCommands<'e> {
    pub fn new(each: &'e EachSpec) -> Self {
        Self { each, template: each.template.clone(), columns: 1, count: 0 }
    }

    /// The request for the next line that is not blank. `line` counts the lines; `buffer` holds the last row read.
    pub(crate) fn read(
        &mut self,
        source: &mut impl BufRead,
        line: &mut u64,
        buffer: &mut Vec<u8>,
    ) -> Result<Option<NumberedRequest>, OpError> {
        loop {
            let Some(number) = read_row(source, line, buffer, self.each.items)? else {
                return Ok(None);
            };
            let text = std::str::from_utf8(buffer).map_err(|_| EachError::NotText)?;
            if let Some(request) = self.request(self.each.items.strip(text))? {
                return Ok(Some(NumberedRequest { line: number, request }));
            }
        }
    }

    /// `None` for the header.
    fn request(&mut self, text: &str) -> Result<Option<JobSpec>, OpError> {
        let row = if self.each.items == Items::Rows { Some(parse_row(text)?) } else { None };
        let fields: Vec<&str> = row.as_ref().map_or_else(|| vec![text], |row| row.iter().collect());
        let Some(template) = &self.template else {
            self.template = Some(self.each.template_for(&fields)?);
            self.columns = fields.len();
            return Ok(None);
        };
        if fields.len() != self.columns {
            return Err(EachError::Ragged { found: fields.len(), expected: self.columns }.into());
        }
        self.count += 1;
        let command = template.command.fill(self.count, &fields);
        let unique_key =
            template.unique_key.as_ref().map(|key| check_unique_key(key.fill(self.count, &fields)));
        let unique_key = unique_key.transpose()?;
        let shared = self.each.request.clone();
        Ok(Some(JobSpec { command: Some(check_command(command)?), unique_key, ..shared }))
    }
}

/// Reads the next argument, or the next line that is not blank; in CSV, continues until every quote is closed. Returns the
/// number of the first line.
fn read_row(
    source: &mut impl BufRead,
    line: &mut u64,
    buffer: &mut Vec<u8>,
    items: Items,
) -> Result<Option<u64>, OpError> {
    loop {
        buffer.clear();
        *line += 1;
        if read_line(source, buffer, items.separator())? == 0 {
            return Ok(None);
        }
        if items == Items::Arguments || !buffer.trim_ascii().is_empty() {
            break;
        }
    }
    let first = *line;
    let mut is_open = items == Items::Rows && opens_quote(buffer);
    while is_open {
        let began = buffer.len();
        if read_line(source, buffer, items.separator())? == 0 {
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
