//! Enqueuing one job per line, from JSON or from arguments of a command, with bounded memory.
//!
//! A file is read twice: the first pass checks every line, the second stores the jobs. A stream cannot be read twice, so
//! it is stored up to the first bad line. Either way jobs are stored in chunks, each atomically, and a job may depend on
//! jobs of earlier lines.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::io::{BufRead, Read};

use super::document::BYTE_ORDER_MARK;
use super::each::{EachCommands, EachSpec};
use super::{Enqueuer, with_ids};
use crate::OpError;
use crate::error::JsonProblem;
use domain::job::NewJob;
use domain::job::spec::{JobSpec, check_depends_on};
use domain::values::name::{JobId, QueueName};
use store::{EnqueueError, EnqueueRefusal, EnqueueResult, RefusedJob};

/// The longest line. It fits the largest command with every byte escaped.
pub const MAX_LINE_BYTES: usize = 4 << 20;
/// The limits of a chunk: jobs plus their dependencies, and bytes. Other writers wait for the transaction that stores it.
const CHUNK_JOBS: usize = 10_000;
const CHUNK_BYTES: usize = 16 << 20;

/// The format of a line.
#[derive(Clone, Copy, Debug)]
pub enum LineFormat<'e> {
    /// A JSON job.
    Json,
    /// The values of the placeholders of a command.
    Each(&'e EachSpec),
}

/// How many lines created jobs, how many matched existing jobs, and the queues of the created ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub created: u64,
    pub existing: u64,
    pub queues: BTreeSet<QueueName>,
}

/// Checks every line and stores nothing. Calls `on_checked` with the number of lines in each checked chunk. Returns the
/// number of jobs.
pub fn check(
    enqueuer: &mut Enqueuer<'_>,
    source: impl BufRead,
    form: LineFormat<'_>,
    mut on_checked: impl FnMut(u64),
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
        on_checked(chunk.len() as u64);
    }
}

/// Stores the lines in order. Stops at the first bad line, after storing those before it. A chunk ends early where
/// `has_more_now` says that reading on would block. Calls `on_stored` with the jobs of each stored chunk.
pub fn store<R: BufRead>(
    enqueuer: &mut Enqueuer<'_>,
    source: R,
    form: LineFormat<'_>,
    has_more_now: impl Fn(&R) -> bool,
    mut on_stored: impl FnMut(&[EnqueueResult]),
) -> Result<Tally, OpError> {
    let mut lines = Lines::new(source, form);
    let mut stored = StoredLines::default();
    loop {
        let (chunk, bad) = lines.read_chunk(&has_more_now);
        if chunk.is_empty() && bad.is_none() {
            return Ok(stored.tally);
        }
        enqueuer.tick()?;
        let result = store_chunk(enqueuer, &chunk, &mut on_stored, &mut stored);
        result.and(bad.map_or(Ok(()), Err)).map_err(|bad| bad.after_storing(stored.tally.created))?;
    }
}

/// The results of the lines so far.
#[derive(Default)]
struct StoredLines {
    tally: Tally,
    /// Maps the id of a line that was not stored, because another job has its unique key, to that job. Later lines may
    /// depend on the id.
    substitutes: HashMap<JobId, JobId>,
}

impl StoredLines {
    fn note(&mut self, chunk: &[NumberedRequest], answers: &[EnqueueResult]) {
        let created = answers.iter().filter(|answer| answer.is_created()).count() as u64;
        self.tally.created += created;
        self.tally.existing += answers.len() as u64 - created;
        for (numbered, answer) in chunk.iter().zip(answers) {
            self.note_queue(numbered, answer);
            match &numbered.request.id {
                Some(id) if id != answer.id() => {
                    self.substitutes.insert(id.clone(), answer.id().clone());
                }
                Some(id) => {
                    self.substitutes.remove(id);
                }
                None => {}
            }
        }
    }

    fn note_queue(&mut self, numbered: &NumberedRequest, answer: &EnqueueResult) {
        let queue = numbered.request.queue.as_ref();
        let is_known = |queue: &QueueName| self.tally.queues.contains(queue);
        if answer.is_created() && !queue.is_some_and(is_known) {
            self.tally.queues.insert(queue.cloned().unwrap_or_else(QueueName::default_queue));
        }
    }
}

/// Calls `show` with the command of every line; stores nothing.
pub fn dry_run(
    source: impl BufRead,
    form: LineFormat<'_>,
    mut show: impl FnMut(&str),
) -> Result<u64, OpError> {
    let mut lines = Lines::new(source, form);
    let mut total = 0;
    loop {
        let next =
            lines.read_request().map_err(|source| BadLine { line: lines.line, source }.before_storing())?;
        let Some(NumberedRequest { request, .. }) = next else {
            return Ok(total);
        };
        total += 1;
        show(request.command.as_deref().unwrap_or_default());
    }
}

/// A request and its line number.
pub(crate) struct NumberedRequest {
    pub(crate) line: u64,
    pub(crate) request: JobSpec,
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
    chunk: &[NumberedRequest],
    on_stored: &mut dyn FnMut(&[EnqueueResult]),
    stored: &mut StoredLines,
) -> Result<(), BadLine> {
    let mut later: HashSet<&JobId> =
        chunk.iter().filter_map(|numbered| numbered.request.id.as_ref()).collect();
    let mut jobs = Vec::with_capacity(chunk.len());
    let mut bad = None;
    for NumberedRequest { line, request } in chunk {
        match resolve(enqueuer, request, &mut later, &stored.substitutes) {
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
        on_stored(&answers);
        Ok(())
    };
    // After a refused job and all later ones are cut off, another remaining job may have depended on one of them, so try
    // again until the rest is accepted.
    let mut end = jobs.len();
    loop {
        match put(&jobs[..end]) {
            Ok(()) => return bad.map_or(Ok(()), Err),
            Err(EnqueueError::Refused(RefusedJob { at, reason })) => {
                bad = Some(BadLine { line: line_of(at), source: OpError::Refused(reason) });
                end = at;
            }
            Err(error @ EnqueueError::Store(_)) => {
                return Err(BadLine { line: line_of(0), source: with_ids(error, &jobs[..end]) });
            }
        }
    }
}

/// A job may depend on earlier lines only, because it is arbitrary whether a later line is in the same chunk. `later`
/// holds the ids of this line and the following ones.
fn resolve(
    enqueuer: &mut Enqueuer<'_>,
    request: &JobSpec,
    later: &mut HashSet<&JobId>,
    substitutes: &HashMap<JobId, JobId>,
) -> Result<NewJob, OpError> {
    let mut renamed = request.clone();
    if renamed.depends_on.iter().any(|id| substitutes.contains_key(id)) {
        let names = renamed.depends_on.iter().map(|id| substitutes.get(id).unwrap_or(id).clone());
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

fn check_chunk(
    enqueuer: &mut Enqueuer<'_>,
    seen: &mut SeenIds,
    chunk: &[NumberedRequest],
) -> Result<(), BadLine> {
    let first_line = chunk.first().map_or(0, |numbered| numbered.line);
    let taken = taken_ids(enqueuer, chunk).map_err(|source| BadLine { line: first_line, source })?;
    for NumberedRequest { line, request } in chunk {
        let bad = |source| BadLine { line: *line, source };
        enqueuer.resolve(request.clone()).map_err(bad)?;
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

/// The ids mentioned in a chunk that belong to stored jobs.
fn taken_ids(enqueuer: &Enqueuer<'_>, chunk: &[NumberedRequest]) -> Result<HashSet<JobId>, OpError> {
    let requests = chunk.iter().map(|numbered| &numbered.request);
    let named: Vec<JobId> =
        requests.flat_map(|request| request.id.iter().chain(&request.depends_on)).cloned().collect();
    if named.is_empty() {
        return Ok(HashSet::new());
    }
    Ok(enqueuer.store().existing_ids(&named)?.into_iter().collect())
}

/// The ids of a file's earlier lines, as 128-bit hashes, so that a million of them fit in memory.
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
    commands: Option<EachCommands<'e>>,
    line: u64,
    buffer: Vec<u8>,
}

impl<'e, R: BufRead> Lines<'e, R> {
    fn new(source: R, form: LineFormat<'e>) -> Self {
        let commands = match form {
            LineFormat::Json => None,
            LineFormat::Each(each) => Some(EachCommands::new(each)),
        };
        Self { source, commands, line: 0, buffer: Vec::new() }
    }

    /// Reads the next requests until the chunk is full, `has_more` returns false, or a line is bad.
    fn read_chunk(&mut self, has_more: impl Fn(&R) -> bool) -> (Vec<NumberedRequest>, Option<BadLine>) {
        let mut chunk = Vec::new();
        let (mut bytes, mut weight) = (0, 0);
        while weight < CHUNK_JOBS && bytes < CHUNK_BYTES {
            if !chunk.is_empty() && !has_more(&self.source) {
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
    fn read_request(&mut self) -> Result<Option<NumberedRequest>, OpError> {
        if let Some(commands) = &mut self.commands {
            return commands.read(&mut self.source, &mut self.line, &mut self.buffer);
        }
        loop {
            self.buffer.clear();
            self.line += 1;
            if read_line(&mut self.source, &mut self.buffer, b'\n')? == 0 {
                return Ok(None);
            }
            let has_mark = self.line == 1 && self.buffer.starts_with(BYTE_ORDER_MARK);
            let text = if has_mark { &self.buffer[BYTE_ORDER_MARK.len()..] } else { &self.buffer[..] };
            if !text.trim_ascii().is_empty() {
                let request =
                    serde_json::from_slice(text.trim_ascii_end()).map_err(|error| bad_json(&error))?;
                return Ok(Some(NumberedRequest { line: self.line, request }));
            }
        }
    }
}

/// The error for a line that is not a job in JSON. The caller names the line.
fn bad_json(error: &serde_json::Error) -> OpError {
    let problem = JsonProblem::without_line(error);
    // An error within a field is an error of its data, also if the JSON ends there.
    if error.is_eof() || error.to_string().contains("EOF while parsing") {
        return OpError::IncompleteLine(problem);
    }
    OpError::Json { is_job: error.is_data(), problem }
}

/// Appends the next line, which ends with `end`, to the buffer and returns its length; 0 at the end of the file.
pub(crate) fn read_line(source: &mut impl BufRead, buffer: &mut Vec<u8>, end: u8) -> Result<usize, OpError> {
    let room = MAX_LINE_BYTES.saturating_sub(buffer.len());
    let read = source
        .take(room as u64 + 1)
        .read_until(end, buffer)
        .map_err(|source| OpError::CannotRead { path: "the lines".into(), source })?;
    if read > room {
        return Err(OpError::LineTooLong { limit: MAX_LINE_BYTES });
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(request: &str) -> NumberedRequest {
        NumberedRequest { line: 1, request: serde_json::from_str(request).expect("a request") }
    }

    fn existing(id: &str) -> EnqueueResult {
        EnqueueResult::Existing(id.parse().expect("an id"))
    }

    #[test]
    fn only_a_line_with_an_id_has_a_substitute_until_a_job_has_that_id() {
        let mut stored = StoredLines::default();
        let lines = [line(r#"{"command":"a"}"#), line(r#"{"id":"b","command":"b"}"#)];
        stored.note(&lines, &[existing("holder"), existing("holder")]);
        let names: Vec<&str> = stored.substitutes.keys().map(JobId::as_str).collect();
        assert_eq!(names, ["b"]);
        stored.note(&lines[1..], &[existing("b")]);
        assert!(stored.substitutes.is_empty());
        assert_eq!(stored.tally, Tally { created: 0, existing: 3, queues: BTreeSet::new() });
    }
}
