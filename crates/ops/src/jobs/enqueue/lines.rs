//! Enqueuing from lines, JSON or what a command is made of, with bounded memory.
//!
//! A file is read twice: the first time every line is checked, the second time they are stored. A stream cannot be read
//! twice; it is stored up to the first bad line. In both, jobs are stored in chunks, each of them all or nothing, and a
//! job may depend on jobs of earlier lines.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::io::{BufRead, Read};

use super::each::{Commands, Each};
use super::{Enqueuer, named};
use crate::OpError;
use domain::job::NewJob;
use domain::job::request::{JobRequest, check_depends_on};
use domain::values::name::JobId;
use store::{EnqueueError, EnqueueRefusal, EnqueueResult};

/// The longest line. The largest command, every byte of it escaped, fits.
pub const MAX_LINE_BYTES: usize = 4 << 20;
/// How many jobs are stored at once at most, and how many dependencies they may have together: other writers wait for
/// the transaction that stores them.
const CHUNK_JOBS: usize = 10_000;
const CHUNK_BYTES: usize = 16 << 20;

/// Told about every chunk.
pub trait Progress {
    /// This many more lines are checked.
    fn checked(&mut self, lines: u64);
    /// These are stored.
    fn stored(&mut self, jobs: &[EnqueueResult]);
}

/// What a reader can say about what comes next.
pub trait Source: BufRead {
    /// Whether more can be read without waiting.
    fn has_more_now(&self) -> bool;
}

/// What a line is.
#[derive(Clone, Copy, Debug)]
pub enum Form<'e> {
    /// A job as JSON.
    Json,
    /// What the gaps of a command are filled with.
    Each(&'e Each),
}

/// How many lines became jobs, and how many were jobs already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub created: u64,
    pub existing: u64,
}

/// Checks every line and stores nothing. Returns the number of jobs.
pub fn check(
    enqueuer: &mut Enqueuer<'_>,
    source: impl BufRead,
    form: Form<'_>,
    progress: &mut dyn Progress,
) -> Result<u64, OpError> {
    let mut lines = Lines::new(source, form);
    let mut seen = SeenIds::default();
    let mut total = 0;
    loop {
        let (chunk, bad) = lines.read_chunk(|_| true);
        let checked = check_chunk(enqueuer, &mut seen, &chunk);
        checked.and(bad.map_or(Ok(()), Err)).map_err(BadLine::before_storing)?;
        if chunk.is_empty() {
            return Ok(total);
        }
        total += chunk.len() as u64;
        progress.checked(chunk.len() as u64);
    }
}

/// Stores line after line. At a bad one it stops, after storing those before it.
pub fn store<S: Source>(
    enqueuer: &mut Enqueuer<'_>,
    source: S,
    form: Form<'_>,
    progress: &mut dyn Progress,
) -> Result<Tally, OpError> {
    let mut lines = Lines::new(source, form);
    let mut stored = Stored::default();
    loop {
        let (chunk, bad) = lines.read_chunk(S::has_more_now);
        if chunk.is_empty() && bad.is_none() {
            return Ok(stored.tally);
        }
        enqueuer.tick()?;
        let result = store_chunk(enqueuer, &chunk, progress, &mut stored);
        result.and(bad.map_or(Ok(()), Err)).map_err(|bad| bad.after_storing(stored.tally.created))?;
    }
}

/// What became of the lines so far.
#[derive(Default)]
struct Stored {
    tally: Tally,
    /// For ids of lines that were not stored, because another job holds their unique key: that job. Later lines may depend
    /// on them, if they named an id.
    stand_ins: HashMap<JobId, JobId>,
}

impl Stored {
    fn note(&mut self, chunk: &[Numbered], answers: &[EnqueueResult]) {
        let created = answers.iter().filter(|answer| answer.is_created()).count() as u64;
        self.tally.created += created;
        self.tally.existing += answers.len() as u64 - created;
        for (numbered, answer) in chunk.iter().zip(answers) {
            match &numbered.request.id {
                Some(id) if id != answer.id() => {
                    self.stand_ins.insert(id.clone(), answer.id().clone());
                }
                Some(id) => {
                    self.stand_ins.remove(id);
                }
                None => {}
            }
        }
    }
}

/// Tells the command of every line, and stores nothing.
pub fn rehearse(
    source: impl BufRead,
    form: Form<'_>,
    mut tell: impl FnMut(&str) -> Result<(), OpError>,
) -> Result<u64, OpError> {
    let mut lines = Lines::new(source, form);
    let mut total = 0;
    loop {
        let next =
            lines.read_request().map_err(|source| BadLine { line: lines.line, source }.before_storing())?;
        let Some(Numbered { request, .. }) = next else {
            return Ok(total);
        };
        total += 1;
        tell(request.command.as_deref().unwrap_or_default())?;
    }
}

/// A request and the line it stood on.
pub(crate) struct Numbered {
    pub(crate) line: u64,
    pub(crate) request: JobRequest,
}

struct BadLine {
    line: u64,
    source: OpError,
}

impl BadLine {
    fn before_storing(self) -> OpError {
        OpError::BadLine { line: self.line, source: Box::new(self.source) }
    }

    fn after_storing(self, stored: u64) -> OpError {
        OpError::Stopped { line: self.line, stored, source: Box::new(self.source) }
    }
}

fn store_chunk(
    enqueuer: &mut Enqueuer<'_>,
    chunk: &[Numbered],
    progress: &mut dyn Progress,
    stored: &mut Stored,
) -> Result<(), BadLine> {
    let mut later: HashSet<&JobId> =
        chunk.iter().filter_map(|numbered| numbered.request.id.as_ref()).collect();
    let mut jobs = Vec::with_capacity(chunk.len());
    let mut bad = None;
    for Numbered { line, request } in chunk {
        match resolve(enqueuer, request, &mut later, &stored.stand_ins) {
            Ok(job) => jobs.push(job),
            Err(source) => {
                bad = Some(BadLine { line: *line, source });
                break;
            }
        }
    }
    let line_of = |at: usize| chunk.get(at).map_or(0, |numbered| numbered.line);
    let mut put = |jobs: &[NewJob]| -> Result<(), EnqueueError> {
        let answers = enqueuer.store().enqueue(jobs)?;
        stored.note(chunk, &answers);
        progress.stored(&answers);
        Ok(())
    };
    // What is left when a job is cut off with all behind it may hold another that needed one of those.
    let mut end = jobs.len();
    loop {
        match put(&jobs[..end]) {
            Ok(()) => return bad.map_or(Ok(()), Err),
            Err(EnqueueError::Refused { at, reason }) => {
                bad = Some(BadLine { line: line_of(at), source: OpError::Refused(reason) });
                end = at;
            }
            Err(error @ EnqueueError::Store(_)) => {
                return Err(BadLine { line: line_of(0), source: named(error, &jobs[..end]) });
            }
        }
    }
}

/// A job may depend on earlier lines only: whether a later one is in the same chunk is an accident. `later` holds the
/// ids of this line and those behind it.
fn resolve(
    enqueuer: &mut Enqueuer<'_>,
    request: &JobRequest,
    later: &mut HashSet<&JobId>,
    stand_ins: &HashMap<JobId, JobId>,
) -> Result<NewJob, OpError> {
    let mut renamed = request.clone();
    if renamed.depends_on.iter().any(|id| stand_ins.contains_key(id)) {
        let names = renamed.depends_on.iter().map(|id| stand_ins.get(id).unwrap_or(id).clone());
        renamed.depends_on = check_depends_on(names.collect())?;
    }
    let job = enqueuer.resolve(renamed)?;
    if let Some(parent) = request.depends_on.iter().find(|id| later.contains(id)) {
        return Err(OpError::Refused(EnqueueRefusal::UnknownDependency(parent.clone())));
    }
    if let Some(id) = &request.id {
        later.remove(id);
    }
    Ok(job)
}

fn check_chunk(enqueuer: &mut Enqueuer<'_>, seen: &mut SeenIds, chunk: &[Numbered]) -> Result<(), BadLine> {
    let first_line = chunk.first().map_or(0, |numbered| numbered.line);
    let taken = taken_ids(enqueuer, chunk).map_err(|source| BadLine { line: first_line, source })?;
    for Numbered { line, request } in chunk {
        let bad = |source| BadLine { line: *line, source };
        enqueuer.resolve(request.clone()).map_err(|error| bad(error.into()))?;
        if let Some(parent) = request.depends_on.iter().find(|id| !seen.contains(id) && !taken.contains(id)) {
            return Err(bad(OpError::Refused(EnqueueRefusal::UnknownDependency(parent.clone()))));
        }
        let Some(id) = &request.id else {
            continue;
        };
        let is_new = seen.insert(id) && !taken.contains(id);
        if enqueuer.refuses_taken_ids() && !is_new {
            return Err(bad(OpError::Refused(EnqueueRefusal::IdTaken(id.clone()))));
        }
    }
    Ok(())
}

/// Which of the ids that a chunk names belong to stored jobs.
fn taken_ids(enqueuer: &Enqueuer<'_>, chunk: &[Numbered]) -> Result<HashSet<JobId>, OpError> {
    let requests = chunk.iter().map(|numbered| &numbered.request);
    let named: Vec<JobId> =
        requests.flat_map(|request| request.id.iter().chain(&request.depends_on)).cloned().collect();
    if named.is_empty() {
        return Ok(HashSet::new());
    }
    Ok(enqueuer.store().existing_ids(&named)?.into_iter().collect())
}

/// The ids of a file's earlier lines, kept as 128 bits each: a million of them must fit into memory.
#[derive(Default)]
struct SeenIds {
    hashers: (RandomState, RandomState),
    hashes: HashSet<u128>,
}

impl SeenIds {
    fn hash(&self, id: &JobId) -> u128 {
        (u128::from(self.hashers.0.hash_one(id)) << 64) | u128::from(self.hashers.1.hash_one(id))
    }

    fn insert(&mut self, id: &JobId) -> bool {
        let hash = self.hash(id);
        self.hashes.insert(hash)
    }

    fn contains(&self, id: &JobId) -> bool {
        self.hashes.contains(&self.hash(id))
    }
}

struct Lines<'e, R> {
    source: R,
    /// `None` for JSON.
    commands: Option<Commands<'e>>,
    line: u64,
    buffer: Vec<u8>,
}

impl<'e, R: BufRead> Lines<'e, R> {
    fn new(source: R, form: Form<'e>) -> Self {
        let commands = match form {
            Form::Json => None,
            Form::Each(each) => Some(Commands::new(each)),
        };
        Self { source, commands, line: 0, buffer: Vec::new() }
    }

    /// The next requests: as many as make a chunk, or as there are while `go_on` says so. A bad line ends them.
    fn read_chunk(&mut self, go_on: impl Fn(&R) -> bool) -> (Vec<Numbered>, Option<BadLine>) {
        let mut chunk = Vec::new();
        let (mut bytes, mut weight) = (0, 0);
        while weight < CHUNK_JOBS && bytes < CHUNK_BYTES {
            if !chunk.is_empty() && !go_on(&self.source) {
                break;
            }
            match self.read_request() {
                Ok(Some(numbered)) => {
                    weight += 1 + numbered.request.depends_on.len();
                    chunk.push(numbered);
                }
                Ok(None) => break,
                Err(source) => {
                    return (chunk, Some(BadLine { line: self.line, source }));
                }
            }
            bytes += self.buffer.len();
        }
        (chunk, None)
    }

    /// The request on the next line that is not blank.
    fn read_request(&mut self) -> Result<Option<Numbered>, OpError> {
        if let Some(commands) = &mut self.commands {
            return commands.read(&mut self.source, &mut self.line, &mut self.buffer);
        }
        loop {
            self.buffer.clear();
            self.line += 1;
            if read_line(&mut self.source, &mut self.buffer)? == 0 {
                return Ok(None);
            }
            if !self.buffer.trim_ascii().is_empty() {
                let request = serde_json::from_slice(&self.buffer)?;
                return Ok(Some(Numbered { line: self.line, request }));
            }
        }
    }
}

/// Puts the next line behind what is in the buffer, and says how long it is; 0 at the end.
pub(crate) fn read_line(source: &mut impl BufRead, buffer: &mut Vec<u8>) -> Result<usize, OpError> {
    let room = MAX_LINE_BYTES.saturating_sub(buffer.len());
    let read = source
        .take(room as u64 + 1)
        .read_until(b'\n', buffer)
        .map_err(|source| OpError::CannotRead { path: "the lines".into(), source })?;
    if read > room {
        return Err(OpError::LineTooLong { limit: MAX_LINE_BYTES });
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(request: &str) -> Numbered {
        Numbered { line: 1, request: serde_json::from_str(request).expect("a request") }
    }

    fn existing(id: &str) -> EnqueueResult {
        EnqueueResult::Existing(id.parse().expect("an id"))
    }

    #[test]
    fn only_a_line_with_an_id_has_a_stand_in_until_a_job_has_the_id() {
        let mut stored = Stored::default();
        let lines = [line(r#"{"command":"a"}"#), line(r#"{"id":"b","command":"b"}"#)];
        stored.note(&lines, &[existing("holder"), existing("holder")]);
        let names: Vec<&str> = stored.stand_ins.keys().map(JobId::as_str).collect();
        assert_eq!(names, ["b"]);
        stored.note(&lines[1..], &[existing("b")]);
        assert!(stored.stand_ins.is_empty());
        assert_eq!(stored.tally, Tally { created: 0, existing: 3 });
    }
}
