//! Enqueues a file or a stream of lines, with a progress bar on a terminal.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Chain, Cursor, Read, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{queue_of_unfinished, readable, shown};
use crate::context::Context;
use crate::failure::Failure;
use crate::flags::each::EachSource;
use crate::render::progress::{Bar, MIN_RATED, rate};
use crate::render::text::{grouped, jobs, printable};
use domain::job::spec::JobSpec;
use domain::values::name::{JobId, QueueName};
use ops::OpError;
use ops::escape::write_json;
use ops::jobs::enqueue::Enqueuer;
use ops::jobs::enqueue::document;
use ops::jobs::enqueue::document::Beginning;
use ops::jobs::enqueue::lines;
use ops::jobs::enqueue::lines::{LineFormat, Tally};
use store::{EnqueueResult, Store};

const READ_BUFFER: usize = 1 << 20;
/// The most that [`read_stream`] holds in memory.
const MAX_STREAM_BYTES: u64 = 256 << 20;

/// Checks the whole file, then stores it; returns the queues of jobs that have to run. A file that is not regular cannot
/// be read twice and is treated as a stream.
pub(crate) fn enqueue_file(
    context: &Context,
    enqueuer: &mut Enqueuer<'_>,
    path: &Path,
    form: LineFormat<'_>,
) -> Result<BTreeSet<QueueName>, Failure> {
    let is_regular = path.metadata().is_ok_and(|meta| meta.is_file());
    if !is_regular {
        return store_lines(context, enqueuer, unread(open(path)?), form, None, has_more_now);
    }
    let total = check_file(context, enqueuer, path, form)?;
    store_lines(context, enqueuer, unread(open(path)?), form, Some(total), has_more_now)
}

fn check_file(
    context: &Context,
    enqueuer: &mut Enqueuer<'_>,
    path: &Path,
    form: LineFormat<'_>,
) -> Result<u64, Failure> {
    let mut bar = Bar::new(context, "checking", None);
    Ok(lines::check(enqueuer, open(path)?, form, |lines| bar.advance(lines))?)
}

/// What became of JSON from a file or a stream.
pub(crate) enum JsonInput {
    /// The jobs of one document, not stored yet.
    Document(Vec<JobSpec>),
    /// Lines, whose jobs were stored, and the queues of those that have to run.
    Lines(BTreeSet<QueueName>),
}

/// As [`enqueue_file`], for JSON.
pub(crate) fn enqueue_json_file(
    context: &Context,
    enqueuer: &mut Enqueuer<'_>,
    path: &Path,
) -> Result<JsonInput, Failure> {
    let mut source = open(path)?;
    let first = match document::begin(&mut source)? {
        Beginning::Document(jobs) => return Ok(JsonInput::Document(jobs)),
        Beginning::Lines(first) => first,
    };
    let queues = if path.metadata().is_ok_and(|meta| meta.is_file()) {
        enqueue_file(context, enqueuer, path, LineFormat::Json)?
    } else {
        let source = Cursor::new(first).chain(source);
        store_lines(context, enqueuer, source, LineFormat::Json, None, has_more_now)?
    };
    Ok(JsonInput::Lines(queues))
}

/// As [`enqueue_json_file`], for standard input.
pub(crate) fn enqueue_json_stream(
    context: &Context,
    enqueuer: &mut Enqueuer<'_>,
) -> Result<JsonInput, Failure> {
    let mut source = buffered(io::stdin());
    match document::begin(&mut source)? {
        Beginning::Document(jobs) => Ok(JsonInput::Document(jobs)),
        Beginning::Lines(first) => {
            let source = Cursor::new(first).chain(source);
            store_lines(context, enqueuer, source, LineFormat::Json, None, has_more_now).map(JsonInput::Lines)
        }
    }
}

/// As [`enqueue_file`], for standard input.
pub(crate) fn enqueue_stream(
    context: &Context,
    enqueuer: &mut Enqueuer<'_>,
    form: LineFormat<'_>,
) -> Result<BTreeSet<QueueName>, Failure> {
    store_lines(context, enqueuer, unread(buffered(io::stdin())), form, None, has_more_now)
}

/// As [`enqueue_file`], for the items of `--each`.
pub(crate) fn enqueue_each(
    context: &Context,
    enqueuer: &mut Enqueuer<'_>,
    source: &EachSource,
    form: LineFormat<'_>,
) -> Result<BTreeSet<QueueName>, Failure> {
    match source {
        EachSource::File(path) => enqueue_file(context, enqueuer, path, form),
        EachSource::Stream => enqueue_stream(context, enqueuer, form),
        EachSource::Memory(items) => {
            let total = lines::check(enqueuer, items.as_slice(), form, |_| {})?;
            store_lines(context, enqueuer, items.as_slice(), form, Some(total), |_| true)
        }
    }
}

/// The items with a stream read to its end, so that they can be checked before any job is stored.
pub(crate) fn read_stream(source: EachSource) -> Result<EachSource, Failure> {
    let items = match source {
        EachSource::Stream => read_whole(buffered(io::stdin()), Path::new("standard input"))?,
        EachSource::File(path) if !path.metadata().is_ok_and(|meta| meta.is_file()) => {
            read_whole(open(&path)?, &path)?
        }
        EachSource::File(_) | EachSource::Memory(_) => return Ok(source),
    };
    Ok(EachSource::Memory(items))
}

fn read_whole(source: impl Read, path: &Path) -> Result<Vec<u8>, Failure> {
    let mut items = Vec::new();
    let read = source.take(MAX_STREAM_BYTES + 1).read_to_end(&mut items);
    read.map_err(|source| OpError::CannotRead { path: path.to_owned(), source })?;
    if items.len() as u64 > MAX_STREAM_BYTES {
        return Err(Failure::usage("the lines are longer than 256 MiB together")
            .with_hint("write them to a file: `--each FILE COMMAND {}`"));
    }
    Ok(items)
}

/// Checks the items of `--each`, then stores them without printing anything; returns the jobs that were created.
pub(crate) fn store_each(
    context: &Context,
    enqueuer: &mut Enqueuer<'_>,
    source: &EachSource,
    form: LineFormat<'_>,
) -> Result<Vec<JobId>, Failure> {
    let mut ids = Vec::new();
    match source {
        EachSource::File(path) => {
            check_file(context, enqueuer, path, form)?;
            store_silently(context, enqueuer, open(path)?, form, &mut ids)?;
        }
        EachSource::Stream => store_silently(context, enqueuer, buffered(io::stdin()), form, &mut ids)?,
        EachSource::Memory(items) => {
            lines::check(enqueuer, items.as_slice(), form, |_| {})?;
            store_silently(context, enqueuer, items.as_slice(), form, &mut ids)?;
        }
    }
    Ok(ids)
}

fn store_silently(
    context: &Context,
    enqueuer: &mut Enqueuer<'_>,
    source: impl BufRead,
    form: LineFormat<'_>,
    ids: &mut Vec<JobId>,
) -> Result<(), Failure> {
    let mut bar = Bar::new(context, "enqueuing", None);
    lines::store(
        enqueuer,
        source,
        form,
        |_| true,
        |answers: &[EnqueueResult]| {
            bar.advance(answers.len() as u64);
            ids.extend(answers.iter().filter(|answer| answer.is_created()).map(|answer| answer.id().clone()));
        },
    )?;
    Ok(())
}

/// At most this many commands are shown by `--dry-run`.
const MAX_PREVIEW_COMMANDS: usize = 10;

/// Shows what would be enqueued, and stores nothing.
pub(crate) fn preview(context: &Context, source: &EachSource, form: LineFormat<'_>) -> Result<(), Failure> {
    let mut commands = Vec::new();
    let collect = |command: &str| {
        if context.json || commands.len() < MAX_PREVIEW_COMMANDS {
            commands.push(command.to_owned());
        }
    };
    let count = match source {
        EachSource::File(path) => lines::dry_run(open(path)?, form, collect)?,
        EachSource::Stream => lines::dry_run(buffered(io::stdin()), form, collect)?,
        EachSource::Memory(items) => lines::dry_run(items.as_slice(), form, collect)?,
    };
    context.print(&serde_json::json!({ "count": count, "commands": commands }), |out| {
        writeln!(out, "Would enqueue {}{}", jobs(count), if count > 0 { ":" } else { "" })?;
        for command in &commands {
            writeln!(out, "  {}", printable(command))?;
        }
        match count - commands.len() as u64 {
            0 => Ok(()),
            more => writeln!(out, "  and {} more", grouped(more)),
        }
    })
}

fn open(path: &Path) -> Result<BufReader<File>, Failure> {
    let cannot_read = |source| OpError::CannotRead { path: path.to_owned(), source };
    let file = File::open(path).map_err(cannot_read)?;
    if file.metadata().is_ok_and(|meta| meta.is_dir()) {
        return Err(cannot_read(io::ErrorKind::IsADirectory.into()).into());
    }
    Ok(buffered(file))
}

/// An input, after the bytes that were read from it already.
type Source<R> = Chain<Cursor<Vec<u8>>, BufReader<R>>;

fn unread<R: Read>(source: BufReader<R>) -> Source<R> {
    Cursor::new(Vec::new()).chain(source)
}

fn store_lines<R: BufRead>(
    context: &Context,
    enqueuer: &mut Enqueuer<'_>,
    source: R,
    form: LineFormat<'_>,
    total: Option<u64>,
    has_more_now: impl Fn(&R) -> bool,
) -> Result<BTreeSet<QueueName>, Failure> {
    let began = Instant::now();
    let mut storing = StoreProgress {
        context,
        store: enqueuer.store(),
        bar: Bar::new(context, "enqueuing", total),
        json_started: false,
        existing: None,
        failure: None,
    };
    let stored = lines::store(enqueuer, source, form, has_more_now, |jobs| storing.stored(jobs));
    let last_existing = storing.existing.clone();
    storing.finish()?;
    let Tally { created, existing, mut queues } = stored?;
    if context.stdout_is_terminal && !context.quiet && !context.json {
        let mut out = context.out();
        let rate = describe_rate(created + existing, began.elapsed());
        writeln!(out, "{} enqueued{}{rate}", jobs(created), describe_existing(existing))?;
        out.flush()?;
    }
    if let (true, Some(id)) = (queues.is_empty(), last_existing) {
        queues.extend(queue_of_unfinished(enqueuer.store(), &id));
    }
    Ok(queues)
}

fn describe_rate(done: u64, elapsed: Duration) -> String {
    if elapsed < MIN_RATED { String::new() } else { format!(" ({}/s)", grouped(rate(done, elapsed))) }
}

fn describe_existing(existing: u64) -> String {
    match existing {
        0 => String::new(),
        1 => ", 1 job already existed".to_owned(),
        _ => format!(", {} already existed", jobs(existing)),
    }
}

fn buffered<R: Read>(input: R) -> BufReader<R> {
    BufReader::with_capacity(READ_BUFFER, input)
}

/// Whether more input is available without blocking.
fn has_more_now<R: Read + AsFd>(source: &Source<R>) -> bool {
    let (first, reader) = source.get_ref();
    if first.position() < first.get_ref().len() as u64 || reader.buffer().contains(&b'\n') {
        return true;
    }
    let mut descriptor = [PollFd::new(reader.get_ref(), PollFlags::IN)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut descriptor, Some(&at_once)).is_ok_and(|ready| ready > 0)
}

/// Prints ids chunk by chunk: an id is printed as soon as its job is stored.
struct StoreProgress<'a> {
    context: &'a Context,
    store: &'a dyn Store,
    bar: Bar,
    json_started: bool,
    /// The last of the jobs that existed already.
    existing: Option<JobId>,
    /// The first failure to print; the jobs are stored nevertheless.
    failure: Option<Failure>,
}

impl StoreProgress<'_> {
    fn stored(&mut self, answers: &[EnqueueResult]) {
        self.bar.advance(answers.len() as u64);
        let existing = answers.iter().rfind(|answer| !answer.is_created());
        self.existing = existing.map(|answer| answer.id().clone()).or(self.existing.take());
        if let Err(failure) = self.print(answers) {
            self.failure.get_or_insert(failure);
        }
    }

    fn print(&mut self, answers: &[EnqueueResult]) -> Result<(), Failure> {
        if self.context.quiet {
            return Ok(());
        }
        let mut out = io::BufWriter::new(io::stdout().lock());
        if self.context.json {
            for answer in answers {
                out.write_all(if self.json_started { b"," } else { b"[" })?;
                self.json_started = true;
                let job = readable(self.store, answer.id())?;
                write_json(&mut out, &shown(job.as_ref(), answer), false)?;
            }
        } else if !self.context.stdout_is_terminal {
            for answer in answers {
                writeln!(out, "{}", answer.id())?;
            }
        }
        Ok(out.flush()?)
    }

    fn finish(self) -> Result<(), Failure> {
        drop(self.bar);
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        if self.context.json && !self.context.quiet {
            let mut out = io::stdout();
            out.write_all(if self.json_started { b"]\n" } else { b"[]\n" })?;
        }
        Ok(())
    }
}
