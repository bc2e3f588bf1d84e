//! `queuectl logs`

mod several;

use std::io;
use std::path::Path;
use std::time::Duration;
use sys::program::ExitCode;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::flags::handle::resolve_or_latest;
use crate::flags::whole_number::whole_number;
use crate::render::output::{Label, PrintOptions, Printer};
use crate::render::text::{printable, rough};
use crate::slot_loan::SlotLoan;
use crate::verbs::jobs::start_hints::hint_not_starting;
use crate::verbs::manage::change::{code_of, find, report_and_continue};
use domain::job::life::StateName;
use domain::job::{Attempt, Job, JobRecord};
use domain::log;
use domain::log::Stream;
use domain::values::name::{BatchName, JobId};
use domain::values::timestamp::Timestamp;
use ops::OpError;
use ops::jobs::calling_job::CallingJob;
use ops::jobs::logs::follow::{FollowEvent, Follower, missing};
use ops::jobs::logs::tail::Tail;
use ops::jobs::logs::{AttemptOutput, choose, has_ended};
use store::{JobFilter, Page, Store};

/// Show the output of jobs
///
/// Shows the latest attempt that is running or has printed something: both streams, in the order in which they were
/// written. On a terminal, stderr is red, colours of the job are kept (not with NO_COLOR or --color never), and other
/// control characters are escaped. In a pipe, the bytes are unchanged.
///
/// With several jobs or --batch, each line begins with the job.
///
/// If the output is long, only its beginning and end are kept (setting log_max_bytes); a line on stderr shows how much is
/// missing.
///
/// With --json, each line is an object {job, attempt, stream, at, text}; bytes that are not UTF-8 become U+FFFD. Missing
/// output is shown as {job, attempt, cut_bytes}.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "one per command-line flag")]
#[command(after_help = "Examples:
  queuectl logs job1
  queuectl logs job1 -f -n 20
  queuectl logs job1 --attempt 2 --stderr
  queuectl logs job1 --all --timestamps
  queuectl logs --batch nightly -f
  queuectl logs job1 --json | jq -r .text")]
pub(crate) struct Args {
    /// Numbers or ids of jobs, or unique parts of ids [default: the latest job; with -f, the latest that runs]
    #[arg(value_name = "JOB")]
    ids: Vec<String>,
    /// All jobs in this batch
    #[arg(long, value_name = "NAME", conflicts_with = "ids")]
    batch: Option<BatchName>,
    /// Keep printing new output; ends when the jobs have finished, after all their attempts
    #[arg(short, long)]
    follow: bool,
    /// Show only the last N lines of what was printed so far
    #[arg(short = 'n', long, value_name = "N", allow_negative_numbers = true,
          value_parser = whole_number::<usize>(0..=usize::MAX as i128))]
    tail: Option<usize>,
    /// Begin each line with the time when it was printed
    #[arg(long)]
    timestamps: bool,
    /// Show this attempt [default: the latest that is running or has printed something]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = whole_number::<u32>(1..=u32::MAX.into()))]
    attempt: Option<u32>,
    /// Show all attempts
    #[arg(long, conflicts_with = "attempt")]
    all: bool,
    /// Show only stdout
    #[arg(long, conflicts_with = "stderr")]
    stdout: bool,
    /// Show only stderr
    #[arg(long)]
    stderr: bool,
    /// Do not escape control characters on a terminal
    #[arg(long)]
    raw: bool,
}

impl Args {
    fn only(&self) -> Option<Stream> {
        match (self.stdout, self.stderr) {
            (true, _) => Some(Stream::Out),
            (false, true) => Some(Stream::Err),
            (false, false) => None,
        }
    }

    fn tail(&self) -> Option<Tail> {
        self.tail.map(|lines| Tail { lines, only: self.only() })
    }

    fn printing(&self, label: Option<Label>) -> PrintOptions {
        PrintOptions { only: self.only(), raw: self.raw, timestamps: self.timestamps, label }
    }

    /// The attempts to show without following, oldest first.
    fn attempts<'r>(&self, record: &'r JobRecord, home: &Path) -> Result<&'r [Attempt], OpError> {
        if self.all {
            return Ok(&record.history);
        }
        let chosen = choose(record, home, self.attempt)?;
        Ok(chosen.map_or(&[], std::slice::from_ref))
    }

    /// Notes before an attempt is shown: which one it is, where that is not obvious.
    fn heading(&self, record: &JobRecord, attempt: &Attempt, now: Timestamp) -> Option<String> {
        if self.all {
            return Some(describe_attempt(attempt, now));
        }
        let latest = record.history.last().filter(|latest| latest.number > attempt.number)?;
        let is_asked_for = self.attempt.is_some();
        let (latest, number) = (latest.number, attempt.number);
        (!is_asked_for).then(|| format!("attempt {latest} printed nothing; this is attempt {number}"))
    }
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<ExitCode, Failure> {
    if args.raw && context.json {
        return Err(Failure::usage("--raw cannot be combined with --json"));
    }
    if args.batch.is_some() || args.ids.len() > 1 {
        return several::run(args, context);
    }
    let id = chosen_job(args, context)?;
    let store = context.store()?;
    let inside = if args.follow { CallingJob::find(store)? } else { None };
    let loan = |inside| SlotLoan::new(context, store, inside, [id.clone()]);
    let loan = inside.map(loan).transpose()?;
    let home = context.location()?.home;
    store.prepare_logs(&home.join(log::FOLDER))?;
    let record = store.record(&id)?.ok_or_else(|| OpError::NoSuchJob(id.clone()))?;
    let chosen = args.attempts(&record, &home)?;
    let mut printer = Printer::new(context, &id, args.printing(None));
    if chosen.is_empty() {
        printer.note(&not_yet(&record.job))?;
    }
    if args.follow {
        let state = record.job.life.state.name();
        // Inside a job, the slot of that job is lent to the one that is waited for.
        if loan.is_none() && !state.is_finished() && state != StateName::Processing {
            hint_not_starting(context, store, &[record.job.queue.clone()].into())?;
        }
        let from = chosen.first().map_or(1, |attempt| attempt.number);
        if let (Some(first), false) = (chosen.first(), args.all) {
            note_heading(args, &mut printer, &record, first, store.now()?)?;
        }
        let loan = loan.map(|loan| (loan, id.clone()));
        let follower = Follower::new(store, home, id, from).with_tail(args.tail());
        return follow(context, follower, printer, args, loan);
    }
    Ok(code_of(show_attempts(args, context, &home, &record, chosen, &mut printer)?))
}

/// Shows these attempts. An attempt whose output cannot be shown is reported, and the next one follows.
fn show_attempts(
    args: &Args,
    context: &Context,
    home: &Path,
    record: &JobRecord,
    attempts: &[Attempt],
    printer: &mut Printer<'_>,
) -> Result<Option<Exit>, Failure> {
    let store = context.store()?;
    let mut worst = None;
    for attempt in attempts {
        note_heading(args, printer, record, attempt, store.now()?)?;
        let output = AttemptOutput::new(home, &record.job, attempt).with_tail(args.tail());
        if let Err(failure) = show(store, output, printer, &record.job.id, attempt, args) {
            worst = worst.max(Some(report_or_stop(context, failure)?));
        }
    }
    Ok(worst)
}

/// A failure that concerns one job or attempt is reported; any other ends the command.
fn report_or_stop(context: &Context, failure: Failure) -> Result<Exit, Failure> {
    if matches!(failure.exit, Exit::NotFound | Exit::Conflict | Exit::Corrupt) {
        return Ok(report_and_continue(context, &failure));
    }
    Err(failure)
}

fn note_heading(
    args: &Args,
    printer: &mut Printer<'_>,
    record: &JobRecord,
    attempt: &Attempt,
    now: Timestamp,
) -> Result<(), Failure> {
    args.heading(record, attempt, now).map_or(Ok(()), |heading| printer.note(&heading))
}

/// Without a handle: the latest job; to follow, the latest that runs.
fn chosen_job(args: &Args, context: &Context) -> Result<JobId, Failure> {
    let store = context.store()?;
    let typed = args.ids.first().map(String::as_str);
    let id = match typed {
        None if args.follow => latest_to_follow(context)?,
        Some(_) | None => resolve_or_latest(context, typed)?,
    };
    if typed.is_none() && context.shows_progress() {
        let job = find(store, &id)?;
        context.hint(&format!("job {}: {}", job.handle(), printable(job.label())))?;
    }
    Ok(id)
}

/// The latest job that runs, else the latest one. Inside a job, that job is left out: it cannot wait for itself.
fn latest_to_follow(context: &Context) -> Result<JobId, Failure> {
    let store = context.store()?;
    let Some(inside) = CallingJob::find(store)? else {
        return store.latest_running(None)?.map_or_else(|| resolve_or_latest(context, None), Ok);
    };
    let own = &inside.job.id;
    if let Some(id) = store.latest_running(Some(own))? {
        return Ok(id);
    }
    let latest = store.list(&JobFilter::default(), &Page { limit: 2, after: None })?;
    let other = latest.into_iter().map(|job| job.id).find(|id| id != own);
    other.ok_or_else(|| Failure::new(Exit::NotFound, "there is no other job to follow"))
}

/// `attempt 2: exit code 1: no such file, took 3s`
fn describe_attempt(attempt: &Attempt, now: Timestamp) -> String {
    let number = attempt.number;
    let Some(ending) = &attempt.ending else {
        return format!("attempt {number}: running for {}", rough(now.since(attempt.started_at)));
    };
    let how = ending.error.clone().unwrap_or_else(|| ending.outcome.to_string());
    format!("attempt {number}: {how}, took {}", rough(ending.duration))
}

fn not_yet(job: &Job) -> String {
    let (job, state) = (job.handle(), job.life.state.name());
    match state {
        StateName::Cancelled => format!("job {job} never ran: it was cancelled"),
        StateName::Pending
        | StateName::Processing
        | StateName::Completed
        | StateName::Failed
        | StateName::Dead => format!("job {job} has not run yet (it is {})", state.name()),
    }
}

/// Shows the output that an attempt has so far.
fn show(
    store: &dyn Store,
    output: AttemptOutput,
    printer: &mut Printer<'_>,
    job: &JobId,
    attempt: &Attempt,
    args: &Args,
) -> Result<(), Failure> {
    printer.begin_attempt(attempt);
    let shown = show_all(store, output, printer, job, attempt.number);
    printer.end_attempt()?;
    let shown = shown?;
    if !shown.is_empty || args.tail == Some(0) {
        return Ok(());
    }
    let number = attempt.number;
    match missing(job, attempt) {
        Some(error) => Err(error.into()),
        None if shown.is_over => printer.note(&format!("attempt {number} printed nothing")),
        None => printer.note(&format!("attempt {number} has printed nothing yet")),
    }
}

struct OutputSummary {
    is_empty: bool,
    is_over: bool,
}

fn show_all(
    store: &dyn Store,
    mut output: AttemptOutput,
    printer: &mut Printer<'_>,
    id: &JobId,
    attempt: u32,
) -> Result<OutputSummary, Failure> {
    let mut is_empty = true;
    loop {
        let is_over = has_ended(&find(store, id)?, attempt);
        let pieces = output.read(store, is_over)?;
        if pieces.is_empty() {
            return Ok(OutputSummary { is_empty, is_over });
        }
        is_empty = false;
        printer.print(&pieces)?;
    }
}

/// Shows new output until the job, or the requested attempt, has ended.
fn follow(
    context: &Context,
    mut follower: Follower<'_>,
    mut printer: Printer<'_>,
    args: &Args,
    mut loan: Option<(SlotLoan<'_>, JobId)>,
) -> Result<ExitCode, Failure> {
    let mut worst = None;
    loop {
        let news = follower.poll()?;
        if let (Some((loan, id)), true) = (&mut loan, news.is_empty()) {
            loan.check(|| Ok(vec![id.clone()]))?;
        }
        if news.is_empty() && !sleep_while_read(follower.poll_delay())? {
            return Ok(code_of(worst));
        }
        for event in news {
            if show_event(context, &mut printer, args, event, &mut worst)? {
                return Ok(code_of(worst));
            }
        }
    }
}

/// Shows one event; returns whether it is the last.
fn show_event(
    context: &Context,
    printer: &mut Printer<'_>,
    args: &Args,
    event: FollowEvent,
    worst: &mut Option<Exit>,
) -> Result<bool, Failure> {
    match event {
        FollowEvent::Began(attempt) => {
            if args.all {
                printer.note(&describe_attempt(&attempt, context.store()?.now()?))?;
            }
            printer.begin_attempt(&attempt);
        }
        FollowEvent::Output(pieces) => printer.print(&pieces)?,
        FollowEvent::Unreadable(error) => {
            *worst = (*worst).max(Some(report_unreadable(context, printer, error)?));
        }
        FollowEvent::Ended { attempt, job } => {
            printer.end_attempt()?;
            if args.attempt.is_some() {
                return Ok(true);
            }
            if let Some(note) = describe_attempt_end(&attempt, &job, context.store()?.now()?) {
                printer.note(&note)?;
            }
        }
        FollowEvent::Finished(job) => {
            printer.note(&finished(&job))?;
            return Ok(true);
        }
    }
    Ok(false)
}

fn report_unreadable(context: &Context, printer: &mut Printer<'_>, error: OpError) -> Result<Exit, Failure> {
    printer.end_attempt()?;
    Ok(report_and_continue(context, &error.into()))
}

/// How an attempt ended, and when the next one starts. `None` if the job ended with it.
pub(crate) fn describe_attempt_end(attempt: &Attempt, job: &Job, now: Timestamp) -> Option<String> {
    let ending = attempt.ending.as_ref()?;
    let how = ending.error.clone().unwrap_or_else(|| ending.outcome.to_string());
    let is_latest = job.life.attempts == attempt.number;
    let state = &job.life.state;
    let next = if !is_latest || state.lease().is_some() {
        String::new()
    } else if state.name().is_finished() {
        return None;
    } else if job.life.due_at > now {
        format!("; the next one starts in {}", rough(job.life.due_at.since(now)))
    } else {
        "; the next one is due".to_owned()
    };
    Some(format!("attempt {} ended: {how}{next}", attempt.number))
}

fn finished(job: &Job) -> String {
    let state = job.life.state.name().name();
    match &job.latest.error {
        Some(error) => format!("job {} is {state}: {error}", job.handle()),
        None => format!("job {} is {state}", job.handle()),
    }
}

/// Sleeps for `pause`. Returns `false` if the reader has closed the output: then there is no reason to continue.
pub(crate) fn sleep_while_read(pause: Duration) -> Result<bool, Failure> {
    let stdout = io::stdout();
    let mut descriptor = [PollFd::new(&stdout, PollFlags::empty())];
    let pause = Timespec::try_from(pause).map_err(io::Error::other)?;
    match poll(&mut descriptor, Some(&pause)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(descriptor[0].revents().is_empty()),
        Err(error) => Err(io::Error::from(error).into()),
    }
}
