//! The output of attempts, which is stored with the attempt or in a log file.

pub mod bookmark;
pub mod find;
pub mod follow;
mod parts;
pub mod reader;
pub mod tail;

use std::path::{Path, PathBuf};
use std::time::Duration;

use self::parts::PartReader;
use self::reader::LogReader;
use self::tail::{Tail, last_lines};
use crate::OpError;
use domain::job::{Attempt, Job, JobRecord, WorkerHome};
use domain::log;
use domain::log::{Entry, LogError, Stream, entries};
use domain::values::name::JobId;
use store::Store;
use sys::fs::liveness_lock::FOLDER;
use sys::host;

/// A piece of output, in the order of printing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    Output(Chunk),
    /// This many bytes were printed here but not kept.
    Cut {
        bytes: u64,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    pub stream: Stream,
    /// Since the attempt's start.
    pub at: Duration,
    pub bytes: Vec<u8>,
}

impl Piece {
    /// How many bytes were printed, kept or not.
    pub fn printed(&self) -> u64 {
        match self {
            Self::Output(chunk) => chunk.bytes.len() as u64,
            Self::Cut { bytes } => *bytes,
        }
    }
}

impl From<Entry<'_>> for Piece {
    fn from(entry: Entry<'_>) -> Self {
        match entry {
            Entry::Output(frame) => {
                Self::Output(Chunk { stream: frame.stream, at: frame.at, bytes: frame.bytes.to_vec() })
            }
            Entry::Cut { bytes } => Self::Cut { bytes },
        }
    }
}

/// The path of an attempt's log file, if it has one.
pub fn log_path(home: &Path, job_number: u64, attempt: u32) -> PathBuf {
    home.join(log::FOLDER).join(log::file_name(job_number, attempt))
}

/// The present or future path of this attempt's log file: in this home, or in its worker's home if several homes share a
/// store.
pub fn find_log(home: &Path, job_number: u64, attempt: &Attempt) -> PathBuf {
    let own = log_path(home, job_number, attempt.number);
    let WorkerHome { id, folder } = &attempt.home;
    let is_of = |folder: &Path| host::home_id(folder).is_some_and(|found| found == *id);
    // If the worker's home is gone, its files may have been restored or moved to this home.
    if id.is_empty() || is_of(&home.join(FOLDER)) || !is_of(folder) {
        return own;
    }
    folder.parent().map_or(own, |home| log_path(home, job_number, attempt.number))
}

/// The attempt to show: the requested one, else the latest that is running or has output, else the latest. `None` if the
/// job has not run yet.
pub fn choose<'r>(
    record: &'r JobRecord,
    home: &Path,
    wanted: Option<u32>,
) -> Result<Option<&'r Attempt>, OpError> {
    if let Some(wanted) = wanted {
        let found = record.history.iter().find(|attempt| attempt.number == wanted);
        return found.map(Some).ok_or_else(|| OpError::NoSuchAttempt {
            job: record.job.id.clone(),
            attempt: wanted,
            known: record.history.iter().map(|attempt| attempt.number).collect(),
        });
    }
    let has_output = |attempt: &&Attempt| match &attempt.ending {
        None => true,
        // The output of a lost attempt was never counted.
        Some(ending) => ending.log_bytes > 0 || find_log(home, record.job.number, attempt).exists(),
    };
    Ok(record.history.iter().rfind(has_output).or(record.history.last()))
}

/// Whether this attempt of the job has ended.
pub fn has_ended(job: &Job, attempt: u32) -> bool {
    job.life.state.lease().is_none() || job.life.attempts != attempt
}

/// Reads the output of one attempt piece by piece.
#[derive(Debug)]
pub struct AttemptOutput {
    id: JobId,
    attempt: u32,
    path: PathBuf,
    source: Source,
    /// Only the last lines of what was printed before the first read.
    tail: Option<Tail>,
}

#[derive(Debug)]
enum Source {
    /// Not found yet.
    Unknown,
    /// The unread rest of the output stored with the attempt.
    Stored(Vec<u8>),
    File(LogReader),
    /// The parts that a store of several machines keeps.
    Parts(PartReader),
}

impl AttemptOutput {
    pub fn new(home: &Path, job: &Job, attempt: &Attempt) -> Self {
        let path = find_log(home, job.number, attempt);
        Self { id: job.id.clone(), attempt: attempt.number, path, source: Source::Unknown, tail: None }
    }

    /// Leaves out everything that was printed so far but the last lines.
    #[must_use]
    pub fn with_tail(self, tail: Option<Tail>) -> Self {
        Self { tail, ..self }
    }

    /// The next pieces. Empty: the end, or nothing more for now if the attempt had not ended when the caller checked.
    pub fn read(&mut self, store: &dyn Store, has_ended: bool) -> Result<Vec<Piece>, OpError> {
        if let Source::Unknown = self.source {
            self.find(store, has_ended)?;
        }
        match &mut self.source {
            Source::Unknown => Ok(Vec::new()),
            Source::Parts(reader) => {
                let Some(tail) = self.tail.take() else {
                    return reader.read(store, &self.id, self.attempt, has_ended);
                };
                let mut lines = Vec::new();
                loop {
                    let pieces = reader.read(store, &self.id, self.attempt, has_ended)?;
                    if pieces.is_empty() {
                        return Ok(lines);
                    }
                    lines.extend(pieces);
                    lines = last_lines(lines, tail).0;
                }
            }
            Source::File(reader) => match self.tail.take() {
                Some(tail) => reader.seek_tail(tail),
                None => reader.read(),
            },
            Source::Stored(bytes) => {
                let (id, attempt) = (&self.id, self.attempt);
                let damaged = |source| OpError::DamagedOutput { job: id.clone(), attempt, source };
                let (pieces, taken) = whole_pieces(bytes).map_err(damaged)?;
                bytes.drain(..taken);
                Ok(match self.tail.take() {
                    Some(tail) => last_lines(pieces, tail).0,
                    None => pieces,
                })
            }
        }
    }

    fn find(&mut self, store: &dyn Store, has_ended: bool) -> Result<(), OpError> {
        if has_ended && let Some(stored) = store.output(&self.id, self.attempt)? {
            self.source = Source::Stored(stored);
        } else if store.spans_machines() {
            self.source = Source::Parts(PartReader::default());
        } else if let Some(reader) = LogReader::open(&self.path)? {
            self.source = Source::File(reader);
        }
        Ok(())
    }
}

/// The complete pieces and how many bytes they took. Damage is an error only if it comes first; otherwise the next call
/// reports it.
pub(crate) fn whole_pieces(bytes: &[u8]) -> Result<(Vec<Piece>, usize), LogError> {
    let mut pieces = Vec::new();
    let mut reading = entries(bytes);
    for entry in reading.by_ref() {
        match entry {
            Ok(entry) => pieces.push(entry.into()),
            Err(error) if pieces.is_empty() => return Err(error),
            Err(_) => break,
        }
    }
    Ok((pieces, reading.read()))
}
