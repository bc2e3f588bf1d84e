//! A whole queue as JSON lines: `export` and `import`.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::OpError;
use crate::escape::write_json;
use crate::jobs::logs::log_path;
use domain::log;
use domain::values::name::JobId;
use store::transfer::{FORMAT, ImportError, ImportSummary, JobLine, Line, LogLine};
use store::{ExportScope, Store};
use sys::fs::{owner_only, sparse};

/// The most that one line holds of a log file.
const PART_BYTES: usize = 256 << 10;
/// The longest line: a job with all that its attempts printed.
const MAX_LINE_BYTES: u64 = 1 << 30;

/// Whether secrets are told: the values of variables, and what hooks sign with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variables {
    With,
    Without,
}

/// What is exported.
#[derive(Clone, Copy, Debug)]
pub struct Export<'a> {
    pub home: &'a Path,
    pub which: &'a ExportScope<'a>,
    pub variables: Variables,
}

/// Writes what is in the queue; `progress` hears of each job. Gives how many jobs there were.
pub fn export(
    store: &dyn Store,
    wanted: &Export<'_>,
    out: &mut dyn Write,
    mut progress: impl FnMut(),
) -> Result<u64, OpError> {
    store.finish_restore(&wanted.home.join(log::FOLDER))?;
    let mut jobs = 0;
    let mut written = Ok(());
    store.export(wanted.which, &mut |line| {
        let is_job = matches!(line, Line::Job(_));
        written = write_line(wanted.home, wanted.variables, line, out);
        if is_job {
            jobs += 1;
            progress();
        }
        written.is_ok()
    })?;
    written.and_then(|()| out.flush()).map_err(|source| OpError::CannotWrite { source })?;
    Ok(jobs)
}

fn write_line(home: &Path, variables: Variables, line: Line, out: &mut dyn Write) -> io::Result<()> {
    match without(line, variables) {
        None => Ok(()),
        Some(Line::Job(job)) => {
            let (id, number, attempts) = (job.id.clone(), job.number, job.attempts);
            put(out, &Line::Job(job))?;
            (1..=attempts).try_for_each(|attempt| write_log(home, &id, number, attempt, out))
        }
        Some(line) => put(out, &line),
    }
}

/// The line without what may be secret, if that is what is wanted.
fn without(mut line: Line, variables: Variables) -> Option<Line> {
    if variables == Variables::With {
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

/// The log file of an attempt, if it has one. Holes are left out.
fn write_log(home: &Path, job: &str, number: u64, attempt: u32, out: &mut dyn Write) -> io::Result<()> {
    let Some(file) = owner_only::open_regular(&log_path(home, number, attempt))? else {
        return Ok(());
    };
    let mut part = |offset, content: &[u8]| {
        let content = content.to_vec();
        put(out, &Line::Log(LogLine { job: job.to_owned(), attempt, offset, content }))
    };
    let mut buffer = vec![0; PART_BYTES];
    let mut at = 0;
    while let Some(data) = sparse::next_data(&file, at)? {
        let length = file.read_at(&mut buffer, data)?;
        if length == 0 {
            break;
        }
        part(data, &buffer[..length])?;
        at = data + length as u64;
    }
    part(file.metadata()?.len().max(at), &[])
}

/// What is to be taken in.
#[derive(Clone, Copy, Debug)]
pub struct Import<'a> {
    pub home: &'a Path,
    pub file: &'a Path,
    pub if_absent: bool,
    pub by: &'a str,
}

/// What became of one more job of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It can be read.
    Checked,
    Stored,
}

/// Takes in what was exported to a file, all of it or nothing. Every line is read before the first is stored.
pub fn import(
    store: &dyn Store,
    wanted: &Import<'_>,
    mut progress: impl FnMut(Step),
) -> Result<ImportSummary, OpError> {
    let Import { home, file, if_absent, by } = *wanted;
    let open = || {
        let opened = File::open(file).map(BufReader::new);
        opened.map_err(|source| OpError::CannotRead { path: file.to_owned(), source })
    };
    let mut count = |line: &Result<Line, ImportError>, step| {
        if matches!(line, Ok(Line::Job(_))) {
            progress(step);
        }
    };
    for line in Lines::new(open()?) {
        count(&line, Step::Checked);
        line?;
    }
    store.finish_restore(&home.join(log::FOLDER))?;
    let there = ids_there(store, Lines::new(open()?), if_absent)?;
    let mut lines = Lines::new(open()?).inspect(|line| count(line, Step::Stored));
    let imported = store.import(&mut lines, if_absent, by)?;
    write_logs(store, home, Lines::new(open()?), &there)?;
    Ok(imported)
}

/// Copies a stream into a file of its own, because it is to be read more than once.
pub fn spool(home: &Path, stream: &mut dyn Read) -> Result<Spool, OpError> {
    let path = home.join(format!("import-{}.jsonl", std::process::id()));
    let spool = Spool { path: path.clone() };
    let copied = owner_only::replace_file(&path).and_then(|mut file| io::copy(stream, &mut file));
    copied.map_err(|source| OpError::CannotMake { path, source })?;
    Ok(spool)
}

/// A file that goes when it is dropped.
#[derive(Debug)]
pub struct Spool {
    path: PathBuf,
}

impl Spool {
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// The jobs of the file that are in the store already: their logs are left alone.
fn ids_there(store: &dyn Store, lines: Lines<impl BufRead>, if_absent: bool) -> Result<Vec<JobId>, OpError> {
    let mut there = Vec::new();
    if !if_absent {
        return Ok(there);
    }
    for line in lines {
        if let Line::Job(job) = line? {
            let JobLine { id, .. } = *job;
            let id: JobId = id.parse().map_err(|source| OpError::BadId { id, source })?;
            there.extend(store.existing_ids(&[id])?);
        }
    }
    there.sort();
    Ok(there)
}

/// Writes the log files of jobs that were taken in.
fn write_logs(
    store: &dyn Store,
    home: &Path,
    lines: Lines<impl BufRead>,
    there: &[JobId],
) -> Result<(), OpError> {
    let mut open: Option<(String, u32, File)> = None;
    for line in lines {
        let Line::Log(part) = line? else {
            continue;
        };
        let file = match open.take() {
            Some((job, attempt, file)) if job == part.job && attempt == part.attempt => file,
            _ => match new_log(store, home, &part, there)? {
                Some(file) => file,
                None => continue,
            },
        };
        let put = if part.content.is_empty() {
            file.set_len(part.offset)
        } else {
            file.write_all_at(&part.content, part.offset)
        };
        put.map_err(|source| OpError::CannotWrite { source })?;
        open = Some((part.job, part.attempt, file));
    }
    Ok(())
}

/// `None`: it belongs to a job that was not taken in.
fn new_log(store: &dyn Store, home: &Path, part: &LogLine, there: &[JobId]) -> Result<Option<File>, OpError> {
    let id: JobId = part.job.parse().map_err(|source| OpError::BadId { id: part.job.clone(), source })?;
    let job = store.find(&id)?.filter(|_| there.binary_search(&id).is_err());
    let Some(job) = job.filter(|job| part.attempt <= job.life.attempts) else {
        return Ok(None);
    };
    let folder = home.join(log::FOLDER);
    let path = log_path(home, job.number, part.attempt);
    let made = owner_only::add_folder(&folder).and_then(|()| owner_only::replace_file(&path));
    made.map(Some).map_err(|source| OpError::CannotMake { path, source })
}

/// The lines of an export.
struct Lines<R> {
    source: R,
    number: u64,
    is_over: bool,
}

impl<R: BufRead> Lines<R> {
    fn new(source: R) -> Self {
        Self { source, number: 0, is_over: false }
    }

    fn read(&mut self) -> Result<Option<Line>, Box<dyn std::error::Error + Send + Sync>> {
        let mut text = Vec::new();
        let length = self.source.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut text)?;
        if length == 0 {
            // An export has a first line, also where nothing follows.
            return if self.number == 0 { Err("it is empty".into()) } else { Ok(None) };
        }
        self.number += 1;
        let line: Line = serde_json::from_slice(&text)?;
        match (&line, self.number) {
            (Line::Queuectl { format }, 1) if *format > FORMAT => {
                Err("it was exported by a newer queuectl".into())
            }
            (Line::Queuectl { .. }, 1) => Ok(Some(line)),
            (_, 1) => Err("the first line of an export says `\"kind\":\"queuectl\"`".into()),
            (Line::Queuectl { .. }, _) => Err("another export begins here".into()),
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
