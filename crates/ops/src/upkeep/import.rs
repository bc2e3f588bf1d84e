//! `import`: takes in what `export` wrote.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, Write};
use std::iter::Peekable;
use std::path::{Path, PathBuf};

use super::spooled_writer;
use crate::OpError;
use crate::jobs::logs::log_path;
use domain::log;
use domain::values::name::JobId;
use store::jobs::shipment::parts_of;
use store::transfer::{Bytes, FORMAT, ImportError, ImportNumbers, ImportRules, ImportSummary, Line, LogLine};
use store::{OutputPart, Store, StoreError};
use sys::fs::{owner_only, sparse};

/// The longest line: a job with the output of all its attempts.
const MAX_LINE_BYTES: u64 = 1 << 30;

/// The parameters of an import.
#[derive(Clone, Copy, Debug)]
pub struct Import<'a> {
    pub home: &'a Path,
    pub if_absent: bool,
    pub by: &'a str,
}

/// A step in the import of one job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The job was parsed.
    Checked,
    /// The job was stored. Other processes cannot write yet, so the caller must not wait for anything.
    Stored,
}

/// Takes in what was exported, all of it or nothing. The whole input is read and checked before the store is locked: its
/// writer may be slow, and no other process could write meanwhile.
pub fn import(
    store: &dyn Store,
    request: &Import<'_>,
    input: impl BufRead,
    mut progress: impl FnMut(Step),
) -> Result<ImportSummary, OpError> {
    let Import { home, if_absent, by } = *request;
    let mut spool = Spool::new(home)?;
    spool.fill(input, || progress(Step::Checked))?;
    store.prepare_logs(&home.join(log::FOLDER))?;
    let Spool { rows, logs } = &mut spool;
    let keeps_output = store.spans_machines();
    let mut lines = lines_to_store(rows, logs, home, keeps_output)?.map(|line| {
        let line = line.map_err(ImportError::from)?;
        if let Line::Job(_) = line {
            progress(Step::Stored);
        }
        Ok(line)
    });
    let rules = ImportRules { if_absent, numbers: ImportNumbers::New };
    let imported = store.import(&mut lines, rules, by)?;
    drop(lines);
    if !keeps_output {
        write_logs(store, home, logs, &imported.skipped)
            .map_err(|source| OpError::LogsNotImported { source: Box::new(source) })?;
    }
    Ok(imported)
}

/// The lines for the store. One that keeps output itself gets the log files too, as parts.
pub(super) fn lines_to_store<'s>(
    rows: &'s mut File,
    logs: &'s mut File,
    home: &Path,
    keeps_output: bool,
) -> Result<Box<dyn Iterator<Item = Result<Line, StoreError>> + 's>, OpError> {
    let rows = reread(rows)?;
    if !keeps_output {
        return Ok(Box::new(rows));
    }
    let parts = LogParts { lines: reread(logs)?.peekable(), home: home.to_owned() };
    Ok(Box::new(rows.chain(parts.flat_map(|parts| match parts {
        Ok(parts) => parts.into_iter().map(|line| Ok(Line::Log(line))).collect(),
        Err(error) => vec![Err(error)],
    }))))
}

/// The output of one attempt after the other, in parts.
struct LogParts<I: Iterator<Item = Result<Line, StoreError>>> {
    lines: Peekable<I>,
    /// For a temporary file.
    home: PathBuf,
}

impl<I: Iterator<Item = Result<Line, StoreError>>> LogParts<I> {
    /// The parts of the attempt to which this piece of a log file belongs.
    fn of_attempt(&mut self, first: LogLine) -> Result<Vec<LogLine>, StoreError> {
        let file =
            temporary_file(&self.home, "import").map_err(|(_, source)| StoreError::unavailable(source))?;
        let (job, attempt) = (first.job.clone(), first.attempt);
        let mut next = Some(first);
        while let Some(piece) = next {
            sparse::write_part(&file, piece.offset, &piece.content.0).map_err(StoreError::unavailable)?;
            let is_more = |line: &Result<Line, StoreError>| matches!(line, Ok(Line::Log(piece)) if (&piece.job, piece.attempt) == (&job, attempt));
            next = match self.lines.next_if(is_more) {
                Some(Ok(Line::Log(piece))) => Some(piece),
                Some(_) | None => None,
            };
        }
        let parts = parts_of(file)?.into_iter();
        let line = |part: OutputPart| LogLine {
            job: job.clone(),
            attempt,
            offset: part.at,
            content: Bytes(part.content),
        };
        Ok(parts.map(line).collect())
    }
}

impl<I: Iterator<Item = Result<Line, StoreError>>> Iterator for LogParts<I> {
    type Item = Result<Vec<LogLine>, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.lines.next()? {
                Ok(Line::Log(first)) => return Some(self.of_attempt(first)),
                Ok(_) => {}
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

fn temporary_file(home: &Path, verb: &str) -> Result<File, (PathBuf, io::Error)> {
    let path = home.join(format!("{verb}-{}.spool", std::process::id()));
    spooled_writer::unnamed_file(&path).map_err(|source| (path, source))
}

/// The checked lines of an export, in unnamed files, which are part of the home as the store is.
pub(super) struct Spool {
    /// The lines that the store takes in.
    pub(super) rows: File,
    /// The parts of log files, which follow after the commit.
    pub(super) logs: File,
}

impl Spool {
    pub(super) fn new(home: &Path) -> Result<Self, OpError> {
        let make =
            || temporary_file(home, "import").map_err(|(path, source)| OpError::CannotMake { path, source });
        Ok(Self { rows: make()?, logs: make()? })
    }

    /// Reads and checks the whole input, and calls `seen` after each job.
    fn fill(&mut self, mut input: impl BufRead, mut seen: impl FnMut()) -> Result<(), OpError> {
        let (mut rows, mut logs) = (BufWriter::new(&self.rows), BufWriter::new(&self.logs));
        let mut text = Vec::new();
        for number in 1.. {
            let unreadable = |source| unreadable(number, source);
            let Some(line) = read_line(&mut input, &mut text, number).map_err(unreadable)? else {
                break;
            };
            let to = if let Line::Log(_) = line { &mut logs } else { &mut rows };
            to.write_all(&text).map_err(StoreError::unavailable)?;
            if let Line::Job(_) = line {
                seen();
            }
        }
        rows.flush().and_then(|()| logs.flush()).map_err(StoreError::unavailable)?;
        Ok(())
    }
}

fn unreadable(line: u64, source: Box<dyn std::error::Error + Send + Sync>) -> ImportError {
    match source.downcast_ref::<serde_json::Error>() {
        Some(error) if error.is_syntax() || error.is_eof() => ImportError::NotJson { line },
        Some(_) | None => ImportError::Unreadable { line, source },
    }
}

/// Reads and checks the line with this number; `None` at the end.
fn read_line(
    input: &mut impl BufRead,
    text: &mut Vec<u8>,
    number: u64,
) -> Result<Option<Line>, Box<dyn std::error::Error + Send + Sync>> {
    text.clear();
    input.take(MAX_LINE_BYTES).read_until(b'\n', text)?;
    if text.is_empty() {
        // Even an export without jobs has a header line.
        return if number == 1 { Err("the file is empty".into()) } else { Ok(None) };
    }
    let line: Line = serde_json::from_slice(text)?;
    match (&line, number) {
        (Line::Queuectl { format }, 1) if *format > FORMAT => {
            Err("the file was exported by a newer queuectl".into())
        }
        (Line::Queuectl { .. }, 1) => Ok(Some(line)),
        (_, 1) => Err("not an export: the first line must contain `\"kind\":\"queuectl\"`".into()),
        (Line::Queuectl { .. }, _) => Err("a second export starts here".into()),
        (Line::Log(part), _) => {
            // Nothing else checks it before the commit.
            part.job.parse::<JobId>()?;
            Ok(Some(line))
        }
        (_, _) => Ok(Some(line)),
    }
}

/// The lines of a spool file.
fn reread(file: &mut File) -> Result<impl Iterator<Item = Result<Line, StoreError>> + '_, StoreError> {
    file.rewind().map_err(StoreError::unavailable)?;
    let parse = |text: io::Result<Vec<u8>>| Ok(serde_json::from_slice(&text?)?);
    Ok(BufReader::new(file).split(b'\n').map(move |text| parse(text).map_err(StoreError::unavailable)))
}

/// Writes the log files of the imported jobs.
pub(super) fn write_logs(
    store: &dyn Store,
    home: &Path,
    spool: &mut File,
    skipped: &HashSet<String>,
) -> Result<(), OpError> {
    let mut open: Option<(String, u32, File)> = None;
    for line in reread(spool)? {
        let Line::Log(part) = line? else {
            continue;
        };
        let is_open = |(job, attempt, _): &(String, u32, File)| (job, *attempt) == (&part.job, part.attempt);
        if !open.as_ref().is_some_and(is_open) {
            let file = if skipped.contains(&part.job) { None } else { new_log(store, home, &part)? };
            open = file.map(|file| (part.job.clone(), part.attempt, file));
        }
        if let Some((_, _, file)) = &open {
            sparse::write_part(file, part.offset, &part.content.0)
                .map_err(|source| OpError::CannotWrite { source })?;
        }
    }
    Ok(())
}

/// `None` if the job has no such attempt.
fn new_log(store: &dyn Store, home: &Path, part: &LogLine) -> Result<Option<File>, OpError> {
    let id: JobId = part.job.parse().map_err(|source| OpError::BadName {
        what: "id",
        typed: part.job.clone(),
        source,
    })?;
    let Some(job) = store.find(&id)?.filter(|job| part.attempt <= job.life.attempts) else {
        return Ok(None);
    };
    let path = log_path(home, job.number, part.attempt);
    let made = owner_only::add_folder(&home.join(log::FOLDER)).and_then(|()| owner_only::replace_file(&path));
    made.map(Some).map_err(|source| OpError::CannotMake { path, source })
}
