//! `export` and `import`: a whole queue as JSON lines.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use super::spooled_writer;
use crate::OpError;
use crate::escape::write_json;
use crate::jobs::logs::log_path;
use domain::log;
use domain::values::name::JobId;
use store::transfer::{FORMAT, ImportError, ImportSummary, JobLine, Line, LogLine};
use store::{ExportScope, Store};
use sys::fs::{owner_only, sparse};

/// The longest line: a job with the output of all its attempts.
const MAX_LINE_BYTES: u64 = 1 << 30;

/// Whether to export secrets: the values of environment variables and the signing secrets of hooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Secrets {
    Include,
    Exclude,
}

/// The parameters of an export.
#[derive(Clone, Copy, Debug)]
pub struct Export<'a> {
    pub home: &'a Path,
    pub which: &'a ExportScope<'a>,
    pub secrets: Secrets,
}

/// Writes the queue and returns the number of jobs; calls `progress` after each job.
pub fn export(
    store: &dyn Store,
    request: &Export<'_>,
    out: &mut dyn Write,
    mut progress: impl FnMut(),
) -> Result<u64, OpError> {
    store.prepare_logs(&request.home.join(log::FOLDER))?;
    let mut jobs = 0;
    let mut written = Ok(());
    store.export(request.which, &mut |line| {
        let is_job = matches!(line, Line::Job(_));
        written = write_line(request.home, request.secrets, line, out);
        if is_job {
            jobs += 1;
            progress();
        }
        written.is_ok()
    })?;
    written.and_then(|()| out.flush()).map_err(|source| OpError::CannotWrite { source })?;
    Ok(jobs)
}

fn write_line(home: &Path, secrets: Secrets, line: Line, out: &mut dyn Write) -> io::Result<()> {
    match redact(line, secrets) {
        None => Ok(()),
        Some(Line::Job(job)) => {
            let (id, number, attempts) = (job.id.clone(), job.number, job.attempts);
            put(out, &Line::Job(job))?;
            (1..=attempts).try_for_each(|attempt| write_log(home, &id, number, attempt, out))
        }
        Some(line) => put(out, &line),
    }
}

/// The line without secrets if they are excluded; `None` if nothing is left of it.
fn redact(mut line: Line, secrets: Secrets) -> Option<Line> {
    if secrets == Secrets::Include {
        return Some(line);
    }
    match &mut line {
        Line::Environment(_) => return None,
        Line::Job(job) => {
            job.environment = None;
            job.options.remove("env");
        }
        Line::Schedule(schedule) => {
            schedule.environment = None;
            schedule.job.remove("env");
        }
        Line::Hook(hook) => {
            hook.environment = None;
            hook.secret = None;
        }
        Line::Queuectl { .. }
        | Line::Setting(_)
        | Line::Queue(_)
        | Line::Batch(_)
        | Line::Log(_)
        | Line::Dependency { .. }
        | Line::UniqueKey { .. }
        | Line::Event(_)
        | Line::Delivery(_) => {}
    }
    Some(line)
}

fn put(out: &mut dyn Write, line: &Line) -> io::Result<()> {
    write_json(out, line, false)?;
    out.write_all(b"\n")
}

/// Writes the log file of an attempt, if it has one, skipping its holes.
fn write_log(home: &Path, job: &str, number: u64, attempt: u32, out: &mut dyn Write) -> io::Result<()> {
    let Some(file) = owner_only::open_regular(&log_path(home, number, attempt))? else {
        return Ok(());
    };
    let mut parts = sparse::Parts::of(&file);
    while let Some((offset, content)) = parts.next_part()? {
        put(out, &Line::Log(LogLine { job: job.to_owned(), attempt, offset, content: content.to_vec() }))?;
    }
    Ok(())
}

/// The parameters of an import.
#[derive(Debug)]
pub struct Import<'a> {
    pub home: &'a Path,
    pub input: Input,
    pub if_absent: bool,
    pub by: &'a str,
}

/// Where an export is read from.
#[derive(Debug)]
pub struct Input {
    file: File,
    /// A regular file can be read again; a pipe cannot.
    is_regular: bool,
}

impl Input {
    pub fn open(path: &Path) -> Result<Self, OpError> {
        let cannot_read = |source| OpError::CannotRead { path: path.to_owned(), source };
        Self::new(File::open(path).map_err(cannot_read)?).map_err(cannot_read)
    }

    pub fn standard() -> Result<Self, OpError> {
        let opened = io::stdin().as_fd().try_clone_to_owned().and_then(|stdin| Self::new(stdin.into()));
        opened.map_err(|source| OpError::CannotRead { path: "standard input".into(), source })
    }

    fn new(mut file: File) -> io::Result<Self> {
        // Bytes that were read before this program began are not part of the export and could not be read again either.
        let is_regular = file.metadata()?.is_file() && file.stream_position()? == 0;
        Ok(Self { file, is_regular })
    }
}

/// A step in the import of one job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The job was parsed.
    Checked,
    Stored,
}

/// Takes in what was exported, all of it or nothing. The whole input is read and checked before the store is locked: its
/// writer may be slow, and no other process could write meanwhile.
pub fn import(
    store: &dyn Store,
    request: &Import<'_>,
    mut progress: impl FnMut(Step),
) -> Result<ImportSummary, OpError> {
    let Import { home, input, if_absent, by } = request;
    let mut count = |line: &Line, step| {
        if matches!(line, Line::Job(_)) {
            progress(step);
        }
    };
    let spool = SpooledImport::fill(home, input, |line| count(line, Step::Checked))?;
    store.prepare_logs(&home.join(log::FOLDER))?;
    let existing = existing_ids(store, spool.store_lines()?, *if_absent)?;
    let mut lines = spool.store_lines()?.inspect(|line| {
        if let Ok(line) = line {
            count(line, Step::Stored);
        }
    });
    let imported = store.import(&mut lines, *if_absent, by)?;
    write_logs(store, home, spool.log_lines(input)?, &existing)?;
    Ok(imported)
}

/// The lines of an export that have been checked, in unnamed files, which the kernel deletes when this process ends.
struct SpooledImport {
    path: PathBuf,
    /// The lines that the store takes in.
    for_store: File,
    /// Those with parts of log files; `None` where the input itself can be read again.
    logs: Option<File>,
}

impl SpooledImport {
    /// Reads and checks the whole input, and calls `seen` with each line.
    fn fill(home: &Path, input: &Input, mut seen: impl FnMut(&Line)) -> Result<Self, OpError> {
        let path = home.join(format!("import-{}.spool", std::process::id()));
        let cannot_make = |source| OpError::CannotMake { path: path.clone(), source };
        let make = || spooled_writer::unnamed_file(&path).map_err(cannot_make);
        let mut for_store = BufWriter::new(make()?);
        let mut logs = if input.is_regular { None } else { Some(BufWriter::new(make()?)) };
        let mut lines = Lines::new(BufReader::new(&input.file));
        while let Some(line) = lines.next() {
            let line = line?;
            seen(&line);
            let written = match (&line, &mut logs) {
                (Line::Log(_), None) => Ok(()),
                (Line::Log(_), Some(logs)) => logs.write_all(&lines.text),
                // Both files are exports, so both have the first line.
                (Line::Queuectl { .. }, Some(logs)) => {
                    logs.write_all(&lines.text).and_then(|()| for_store.write_all(&lines.text))
                }
                _ => for_store.write_all(&lines.text),
            };
            written.map_err(cannot_make)?;
        }
        let written =
            |buffer: BufWriter<File>| buffer.into_inner().map_err(|error| cannot_make(error.into_error()));
        Ok(Self { for_store: written(for_store)?, logs: logs.map(written).transpose()?, path: path.clone() })
    }

    fn store_lines(&self) -> Result<Lines<BufReader<&File>>, OpError> {
        self.reread(&self.for_store)
    }

    fn log_lines<'a>(&'a self, input: &'a Input) -> Result<Lines<BufReader<&'a File>>, OpError> {
        self.reread(self.logs.as_ref().unwrap_or(&input.file))
    }

    fn reread<'a>(&self, mut file: &'a File) -> Result<Lines<BufReader<&'a File>>, OpError> {
        file.rewind().map_err(|source| OpError::CannotRead { path: self.path.clone(), source })?;
        Ok(Lines::new(BufReader::new(file)))
    }
}

/// The jobs of the file that already exist in the store; their logs are not overwritten.
fn existing_ids(
    store: &dyn Store,
    lines: Lines<impl BufRead>,
    if_absent: bool,
) -> Result<Vec<JobId>, OpError> {
    let mut existing = Vec::new();
    if !if_absent {
        return Ok(existing);
    }
    for line in lines {
        if let Line::Job(job) = line? {
            let JobLine { id, .. } = *job;
            let id: JobId = id.parse().map_err(|source| OpError::BadId { id, source })?;
            existing.extend(store.existing_ids(&[id])?);
        }
    }
    existing.sort();
    Ok(existing)
}

/// Writes the log files of the imported jobs.
fn write_logs(
    store: &dyn Store,
    home: &Path,
    lines: Lines<impl BufRead>,
    existing: &[JobId],
) -> Result<(), OpError> {
    let mut open: Option<(String, u32, File)> = None;
    for line in lines {
        let Line::Log(part) = line? else {
            continue;
        };
        let file = match open.take() {
            Some((job, attempt, file)) if job == part.job && attempt == part.attempt => file,
            _ => match new_log(store, home, &part, existing)? {
                Some(file) => file,
                None => continue,
            },
        };
        sparse::write_part(&file, part.offset, &part.content)
            .map_err(|source| OpError::CannotWrite { source })?;
        open = Some((part.job, part.attempt, file));
    }
    Ok(())
}

/// `None` if the log belongs to a job that was not imported.
fn new_log(
    store: &dyn Store,
    home: &Path,
    part: &LogLine,
    existing: &[JobId],
) -> Result<Option<File>, OpError> {
    let id: JobId = part.job.parse().map_err(|source| OpError::BadId { id: part.job.clone(), source })?;
    let job = store.find(&id)?.filter(|_| existing.binary_search(&id).is_err());
    let Some(job) = job.filter(|job| part.attempt <= job.life.attempts) else {
        return Ok(None);
    };
    let folder = home.join(log::FOLDER);
    let path = log_path(home, job.number, part.attempt);
    let made = owner_only::add_folder(&folder).and_then(|()| owner_only::replace_file(&path));
    made.map(Some).map_err(|source| OpError::CannotMake { path, source })
}

/// Parses the lines of an export.
struct Lines<R> {
    source: R,
    /// The last line that was read, as it was read.
    text: Vec<u8>,
    number: u64,
    is_over: bool,
}

impl<R: BufRead> Lines<R> {
    fn new(source: R) -> Self {
        Self { source, text: Vec::new(), number: 0, is_over: false }
    }

    fn read(&mut self) -> Result<Option<Line>, Box<dyn std::error::Error + Send + Sync>> {
        self.text.clear();
        let length = self.source.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut self.text)?;
        if length == 0 {
            // Even an export without jobs has a header line.
            return if self.number == 0 { Err("the file is empty".into()) } else { Ok(None) };
        }
        self.number += 1;
        let line: Line = serde_json::from_slice(&self.text)?;
        match (&line, self.number) {
            (Line::Queuectl { format }, 1) if *format > FORMAT => {
                Err("the file was exported by a newer queuectl".into())
            }
            (Line::Queuectl { .. }, 1) => Ok(Some(line)),
            (_, 1) => Err("not an export: the first line must contain `\"kind\":\"queuectl\"`".into()),
            (Line::Queuectl { .. }, _) => Err("a second export starts here".into()),
            _ => Ok(Some(line)),
        }
    }
}

impl<R: BufRead> Iterator for Lines<R> {
    type Item = Result<Line, ImportError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let read = self.read();
        self.is_over = read.is_err();
        read.map_err(|source| ImportError::Unreadable { line: self.number.max(1), source }).transpose()
    }
}
