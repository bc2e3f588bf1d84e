//! The output of several jobs, each line with its job.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;
use sys::program::ExitCode;

use anstyle::{AnsiColor, Style};
use unicode_width::UnicodeWidthStr;

use super::{Args, not_yet, note_heading, report_or_stop, show_attempts, show_event, sleep_while_read};
use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::flags::handle::resolve_id_to_show;
use crate::render::output::{Label, Printer};
use crate::slot_loan::SlotLoan;
use crate::verbs::jobs::start_hints::hint_not_starting;
use crate::verbs::manage::change::code_of;
use domain::job::life::StateName;
use domain::log;
use domain::values::name::JobId;
use ops::OpError;
use ops::jobs::batch;
use ops::jobs::calling_job::CallingJob;
use ops::jobs::change::select;
use ops::jobs::logs::follow::Follower;
use store::JobFilter;

/// At most this many jobs are followed at once: each is read again and again.
const MAX_FOLLOWED: usize = 200;
/// The longest sleep while nothing is printed.
const MAX_PAUSE: Duration = Duration::from_millis(100);
const COLORS: [AnsiColor; 6] = [
    AnsiColor::Cyan,
    AnsiColor::Yellow,
    AnsiColor::Green,
    AnsiColor::Magenta,
    AnsiColor::Blue,
    AnsiColor::BrightCyan,
];

/// A job, and the name that its lines begin with.
struct NamedJob {
    id: JobId,
    name: String,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<ExitCode, Failure> {
    if args.attempt.is_some() {
        return Err(Failure::usage("--attempt needs exactly one job").with_hint("--all shows all attempts"));
    }
    let store = context.store()?;
    let home = context.location()?.home;
    store.prepare_logs(&home.join(log::FOLDER))?;
    let mut worst = None;
    let jobs = named_jobs(args, context, &mut worst)?;
    let width = jobs.iter().map(|job| job.name.width()).max().unwrap_or(0);
    let label = |at: usize, name: &str| {
        let style = Style::new().fg_color(Some(COLORS[at % COLORS.len()].into()));
        Label { name: name.to_owned(), width, style }
    };
    if args.follow && jobs.len() > MAX_FOLLOWED {
        let hint = "wait for them with `queuectl wait` and show their output without -f";
        let problem = format!("{} jobs are too many to follow (at most {MAX_FOLLOWED})", jobs.len());
        return Err(Failure::usage(problem).with_hint(hint));
    }
    let printers = jobs.iter().enumerate();
    let printers =
        printers.map(|(at, job)| Printer::new(context, &job.id, args.printing(Some(label(at, &job.name)))));
    if args.follow {
        let printers = printers.collect();
        return follow(args, context, &home, &jobs, printers, worst);
    }
    for (job, mut printer) in jobs.iter().zip(printers) {
        let shown = show_job(args, context, &home, &job.id, &mut printer);
        worst = worst.max(shown.or_else(|failure| report_or_stop(context, failure).map(Some))?);
    }
    Ok(code_of(worst))
}

/// The jobs that were named, or those of the batch in the order of enqueuing.
fn named_jobs(args: &Args, context: &Context, worst: &mut Option<Exit>) -> Result<Vec<NamedJob>, Failure> {
    let store = context.store()?;
    if let Some(name) = &args.batch {
        batch::find(store, name)?;
        let filter = JobFilter { batch: Some(name.clone()), ..JobFilter::default() };
        let jobs = select(store, &filter)?.into_iter().rev();
        let name =
            |id: &JobId, number: u64| if id.is_generated() { number.to_string() } else { id.to_string() };
        return Ok(jobs.map(|job| NamedJob { name: name(&job.id, job.number), id: job.id }).collect());
    }
    let mut jobs: Vec<NamedJob> = Vec::new();
    for typed in &args.ids {
        let found = resolve_id_to_show(context, typed)
            .and_then(|id| Ok(store.find(&id)?.ok_or(OpError::NoSuchJob(id))?));
        match found {
            Ok(job) if jobs.iter().any(|known| known.id == job.id) => {}
            Ok(job) => jobs.push(NamedJob { name: job.handle(), id: job.id }),
            Err(failure) => *worst = (*worst).max(Some(report_or_stop(context, failure)?)),
        }
    }
    Ok(jobs)
}

fn show_job(
    args: &Args,
    context: &Context,
    home: &Path,
    id: &JobId,
    printer: &mut Printer<'_>,
) -> Result<Option<Exit>, Failure> {
    let Some(record) = context.store()?.record(id)? else {
        return Err(OpError::Removed(id.clone()).into());
    };
    let attempts = args.attempts(&record, home)?;
    if attempts.is_empty() && args.batch.is_none() {
        printer.note(&not_yet(&record.job))?;
    }
    show_attempts(args, context, home, &record, attempts, printer)
}

/// A job whose output is followed.
struct Followed<'a> {
    id: JobId,
    output: Follower<'a>,
    printer: Printer<'a>,
}

/// Shows new output until all of the jobs have finished.
fn follow<'a>(
    args: &Args,
    context: &'a Context,
    home: &Path,
    jobs: &[NamedJob],
    printers: Vec<Printer<'a>>,
    mut worst: Option<Exit>,
) -> Result<ExitCode, Failure> {
    let store = context.store()?;
    let ids = || jobs.iter().map(|job| job.id.clone());
    let loan = |inside| SlotLoan::new(context, store, inside, ids());
    let mut loan = CallingJob::find(store)?.map(loan).transpose()?;
    let (mut followed, mut waiting) = (Vec::new(), BTreeSet::new());
    for (job, mut printer) in jobs.iter().zip(printers) {
        let Some(record) = store.record(&job.id)? else {
            continue;
        };
        let state = record.job.life.state.name();
        if !state.is_finished() && state != StateName::Processing {
            waiting.insert(record.job.queue.clone());
        }
        let first = args.attempts(&record, home)?.first();
        if let (Some(first), false) = (first, args.all) {
            note_heading(args, &mut printer, &record, first, store.now()?)?;
        }
        let from = first.map_or(1, |attempt| attempt.number);
        let output = Follower::new(store, home.to_owned(), job.id.clone(), from).with_tail(args.tail());
        followed.push(Followed { id: job.id.clone(), output, printer });
    }
    if loan.is_none() && !waiting.is_empty() {
        hint_not_starting(context, store, &waiting)?;
    }
    while !followed.is_empty() {
        let mut pause = MAX_PAUSE;
        let mut is_quiet = true;
        let mut unfinished = Vec::with_capacity(followed.len());
        for mut job in followed {
            let (is_over, had_news) = match poll(context, args, &mut job, &mut worst) {
                Ok(result) => result,
                Err(failure) => {
                    worst = worst.max(Some(report_or_stop(context, failure)?));
                    (true, true)
                }
            };
            is_quiet &= !had_news;
            pause = pause.min(job.output.poll_delay());
            if !is_over {
                unfinished.push(job);
            }
        }
        followed = unfinished;
        if let (Some(loan), true) = (&mut loan, is_quiet) {
            loan.check(|| Ok(followed.iter().map(|job| job.id.clone()).collect()))?;
        }
        if is_quiet && !followed.is_empty() && !sleep_while_read(pause)? {
            break;
        }
    }
    Ok(code_of(worst))
}

/// Shows what is new; returns whether the job is finished, and whether there was anything new.
fn poll(
    context: &Context,
    args: &Args,
    job: &mut Followed<'_>,
    worst: &mut Option<Exit>,
) -> Result<(bool, bool), Failure> {
    let news = job.output.poll()?;
    let had_news = !news.is_empty();
    for event in news {
        if show_event(context, &mut job.printer, args, event, worst)? {
            return Ok((true, true));
        }
    }
    Ok((false, had_news))
}
