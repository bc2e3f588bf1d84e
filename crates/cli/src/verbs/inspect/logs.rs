//! `queuectl logs`

use std::io;
use std::time::Duration;
use sys::program::ExitCode;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::flags::handle::resolve_or_latest;
use crate::flags::whole_number::whole_number;
use crate::render::output::{PrintOptions, Printer};
use crate::render::text::{printable, rough};
use crate::slot_loan::SlotLoan;
use crate::verbs::jobs::start_hints::hint_not_starting;
use crate::verbs::manage::change::{code_of, find, report_and_continue};
use domain::job::life::StateName;
use domain::job::{Attempt, Job};
use domain::log;
use domain::log::Stream;
use domain::values::name::JobId;
use domain::values::timestamp::Timestamp;
use ops::OpError;
use ops::jobs::calling_job::CallingJob;
use ops::jobs::logs::follow::{FollowEvent, Follower, missing};
use ops::jobs::logs::{AttemptOutput, choose, has_ended};
use store::Store;

/// Show the output of a job
///
/// Shows the latest attempt that is running or has printed something: both streams, in the order in which they were
/// written. On a terminal, stderr is red and control characters are escaped. In a pipe, the bytes are unchanged.
///
/// If the output is long, only its beginning and end are kept (setting log_max_bytes); a line on stderr shows how much is
/// missing.
///
/// With --json, each line is an object {attempt, stream, at, text}; bytes that are not UTF-8 become U+FFFD. Missing output
/// is shown as {attempt, cut_bytes}.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "one per command-line flag")]
#[command(after_help = "Examples:
  queuectl logs job1
  queuectl logs job1 -f
  queuectl logs job1 --attempt 2 --stderr
  queuectl logs job1 --json | jq -r .text")]
pub(crate) struct Args {
    /// The job's number or id, or a unique part of its id [default: the latest job; with -f, the latest that runs]
    #[arg(value_name = "JOB")]
    id: Option<String>,
    /// Keep printing new output, through all further attempts, until the job has finished
    #[arg(short, long)]
    follow: bool,
    /// Show this attempt [default: the latest that is running or has printed something]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = whole_number::<u32>(1..=u32::MAX.into()))]
    attempt: Option<u32>,
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
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<ExitCode, Failure> {
    if args.raw && context.json {
        return Err(Failure::usage("--raw cannot be combined with --json"));
    }
    let id = chosen_job(args, context)?;
    let store = context.store()?;
    let inside = if args.follow { CallingJob::find(store)? } else { None };
    let loan = |inside| SlotLoan::new(context, store, inside, [id.clone()]);
    let loan = inside.map(loan).transpose()?;
    let home = context.location()?.home;
    store.prepare_logs(&home.join(log::FOLDER))?;
    let record = store.record(&id)?.ok_or_else(|| OpError::NoSuchJob(id.clone()))?;
    let chosen = choose(&record, &home, args.attempt)?;
    let mut printer = Printer::new(context, PrintOptions { only: args.only(), raw: args.raw });
    if chosen.is_none() {
        printer.note(&not_yet(&record.job))?;
    }
    if args.follow {
        let state = record.job.life.state.name();
        // Inside a job, the slot of that job is lent to the one that is waited for.
        if loan.is_none() && !state.is_finished() && state != StateName::Processing {
            hint_not_starting(context, store, &[record.job.queue.clone()].into())?;
        }
        let from = chosen.map_or(1, |attempt| attempt.number);
        let loan = loan.map(|loan| (loan, id.clone()));
        let follower = Follower::new(store, home, id, from);
        return follow(context, follower, printer, args.attempt.is_some(), loan);
    }
    if let Some(attempt) = chosen {
        let output = AttemptOutput::new(&home, &record.job, attempt);
        show(store, output, printer, &id, attempt)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Without a handle: the latest job; to follow, the latest that runs.
fn chosen_job(args: &Args, context: &Context) -> Result<JobId, Failure> {
    let store = context.store()?;
    let running = if args.follow && args.id.is_none() { store.latest_running()? } else { None };
    let id = running.map_or_else(|| resolve_or_latest(context, args.id.as_deref()), Ok)?;
    if args.id.is_none() && context.shows_progress() {
        let job = find(store, &id)?;
        context.hint(&format!("job {}: {}", job.handle(), printable(job.label())))?;
    }
    Ok(id)
}

fn not_yet(job: &Job) -> String {
    format!("job {} has not run yet (state: {})", job.handle(), job.life.state.name().name())
}

/// Shows the output that an attempt has so far.
fn show(
    store: &dyn Store,
    output: AttemptOutput,
    mut printer: Printer<'_>,
    job: &JobId,
    attempt: &Attempt,
) -> Result<(), Failure> {
    printer.begin_attempt(attempt);
    let shown = show_all(store, output, &mut printer, job, attempt.number);
    printer.end_attempt()?;
    let shown = shown?;
    if !shown.is_empty {
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

/// Shows new output until the job, or the `only_one` attempt, has ended.
fn follow(
    context: &Context,
    mut follower: Follower<'_>,
    mut printer: Printer<'_>,
    only_one: bool,
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
            match event {
                FollowEvent::Began(attempt) => printer.begin_attempt(&attempt),
                FollowEvent::Output(pieces) => printer.print(&pieces)?,
                FollowEvent::Unreadable(error) => {
                    worst = worst.max(Some(report_unreadable(context, &mut printer, error)?));
                }
                FollowEvent::Ended { attempt, job } => {
                    printer.end_attempt()?;
                    if only_one {
                        return Ok(code_of(worst));
                    }
                    if let Some(note) = describe_attempt_end(&attempt, &job, context.store()?.now()?) {
                        printer.note(&note)?;
                    }
                }
                FollowEvent::Finished(job) => {
                    printer.note(&finished(&job))?;
                    return Ok(code_of(worst));
                }
            }
        }
    }
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
