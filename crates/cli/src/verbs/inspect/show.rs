//! `queuectl show`

use std::io::{self, Write};

use anstyle::Style;

use crate::context::Context;
use crate::failure::Failure;
use crate::flags::handle::resolve_or_latest;
use crate::render::facts::write_fact;
use crate::render::table::{Cell, Table, chosen};
use crate::render::text::{rough, rough_size, state_style};
use domain::explain::named_jobs::FailedDependency;
use domain::job::life::State;
use domain::job::outcome::Outcome;
use domain::job::unique::UniqueFor;
use domain::job::{Attempt, Job, JobRecord};
use domain::values::clock::Clock;
use domain::values::name::JobId;
use domain::values::span::format_span;
use ops::OpError;
use ops::jobs::dependency_failure::failed_dependency;
use ops::json::RecordJson;
use store::Store;

/// Show one job and its history
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  queuectl show job1\n  queuectl show job1 --json | jq .history")]
pub(crate) struct Args {
    /// The job's number or id, or a unique part of its id [default: the latest job]
    #[arg(value_name = "JOB")]
    id: Option<String>,
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<(), Failure> {
    let id = resolve_or_latest(context, args.id.as_deref())?;
    show(context, context.store()?, &id)
}

pub(crate) fn show(context: &Context, store: &dyn Store, id: &JobId) -> Result<(), Failure> {
    let record = store.record(id)?.ok_or_else(|| OpError::NoSuchJob(id.clone()))?;
    let clock = &context.clock(store.now()?);
    let others = Others {
        failed: failed_dependency(store, &record.job)?,
        depends_on: dependencies(context, store, &record.job)?,
    };
    context.print(&RecordJson::from(&record), |out| {
        write_facts(out, &record, &others, clock, context.width())?;
        write_history(out, &record, clock, context.width())?;
        write_events(out, &record, clock, context.width())
    })
}

/// What there is to say about the jobs that it depends on.
struct Others {
    /// The one on whose account it was cancelled.
    failed: Option<FailedDependency>,
    /// Their names.
    depends_on: Vec<String>,
}

/// The jobs that it depends on: for people by their numbers, for programs by their ids.
fn dependencies(context: &Context, store: &dyn Store, job: &Job) -> Result<Vec<String>, Failure> {
    let name = |id: &JobId| {
        let has_number = context.stdout_is_terminal && !context.json && id.is_generated();
        let found = if has_number { store.find(id)? } else { None };
        Ok(found.map_or_else(|| id.to_string(), |job| job.handle()))
    };
    job.depends_on.iter().map(name).collect()
}

fn write_facts(
    out: &mut dyn Write,
    record: &JobRecord,
    others: &Others,
    clock: &Clock,
    width: usize,
) -> io::Result<()> {
    let job = &record.job;
    let (bold, style) = (Style::new().bold(), state_style(job.life.state.name()));
    let is_ending = job.life.state.lease().is_some_and(|lease| lease.cancel_requested.is_some());
    let note = match job.life.state.paused_at() {
        Some(since) => format!(" (paused since {})", clock.time(since)),
        None if is_ending => " (being cancelled)".to_owned(),
        None => String::new(),
    };
    let state = job.life.state.name().name();
    writeln!(out, "{bold}{}  {}{bold:#}  {style}{state}{style:#}{note}", job.number, job.id)?;
    for (name, value) in facts(job, others, clock).into_iter().chain(origin(record, clock)) {
        write_fact(out, name, &value, width)?;
    }
    Ok(())
}

/// The properties of a job that are set, the most important first.
fn facts(job: &Job, others: &Others, clock: &Clock) -> Vec<(&'static str, String)> {
    let (life, options) = (&job.life, &job.options);
    let mut facts = Vec::new();
    let mut say = |name, value: Option<String>| facts.extend(value.map(|value| (name, value)));
    say("name", job.name().map(str::to_owned));
    say("command", Some(job.command.clone()));
    say("queue", Some(job.queue.to_string()));
    say("priority", (job.priority != 0).then(|| job.priority.to_string()));
    say("waits for", waits_for(job, clock));
    say("error", job.latest.error.clone());
    say("exit code", job.latest.exit_code.map(|code| code.to_string()));
    say("signal", job.latest.signal.map(|signal| signal.to_string()));
    let because = others.failed.as_ref().map(|failed| format!("cancelled because {failed}"));
    say("reason", because.or_else(|| reason(&life.state)));
    say("tries", Some(format!("{} of {} used", life.tries(), u64::from(life.max_retries) + 1)));
    say("enqueued", Some(clock.moment(job.created_at)));
    say("started", job.latest.started_at.map(|at| clock.moment(at)));
    say("finished", life.state.finished_at().map(|at| clock.moment(at)));
    say("timeout", job.timeout.map(format_span));
    say("limits", (!options.limits.is_none()).then(|| options.limits.to_string()));
    say("retry on", options.retry_on.map(|codes| codes.to_string()));
    say("no retry on", options.no_retry_on.map(|codes| codes.to_string()));
    say("cwd", job.cwd.clone());
    say("env", list(options.env.keys().map(String::as_str)));
    say("stdin", (options.stdin_bytes > 0).then(|| rough_size(options.stdin_bytes)));
    say("tags", list(job.tags.iter().map(String::as_str)));
    say("depends on", list(others.depends_on.iter().map(String::as_str)));
    say("if those fail", options.run_on_dependency_failure.then(|| "run anyway".to_owned()));
    say("unique key", unique_key(job));
    say("batch", job.batch.as_ref().map(ToString::to_string));
    facts
}

/// The schedule that created the job.
fn origin(record: &JobRecord, clock: &Clock) -> Option<(&'static str, String)> {
    let schedule = record.schedule.as_ref()?;
    let at = record
        .scheduled_for
        .map_or_else(|| "manual run".to_owned(), |at| format!("for {}", clock.moment(at)));
    Some(("schedule", format!("{schedule}, {at}")))
}

fn unique_key(job: &Job) -> Option<String> {
    let key = job.unique_key.as_ref()?;
    Some(match job.options.unique_for {
        UniqueFor::Started => format!("{key} (until it has started)"),
        UniqueFor::Finished => key.clone(),
        UniqueFor::Span(span) => format!("{key} (for {} after enqueuing)", format_span(span)),
    })
}

fn waits_for(job: &Job, clock: &Clock) -> Option<String> {
    let due_at = job.life.due_at;
    match &job.life.state {
        State::Pending { blocked_by: 0 } => {
            (due_at > clock.now).then(|| format!("its start time, {}", clock.moment(due_at)))
        }
        State::Pending { blocked_by: 1 } => Some("1 other job".to_owned()),
        State::Pending { blocked_by } => Some(format!("{blocked_by} other jobs")),
        State::Failed if due_at > clock.now => Some(format!("its next retry, {}", clock.moment(due_at))),
        State::Failed => Some(format!("a free slot; its retry was due at {}", clock.moment(due_at))),
        State::Processing(_) | State::Completed { .. } | State::Dead { .. } | State::Cancelled { .. } => None,
    }
}

fn reason(state: &State) -> Option<String> {
    state.reason().map(|name| name.replace('_', " "))
}

fn list<'a>(items: impl Iterator<Item = &'a str>) -> Option<String> {
    let items: Vec<&str> = items.collect();
    (!items.is_empty()).then(|| items.join(", "))
}

/// Narrower terminals show more of the errors instead of the workers.
const WIDTH_FOR_WORKERS: usize = 100;

fn write_history(out: &mut dyn Write, record: &JobRecord, clock: &Clock, width: usize) -> io::Result<()> {
    let shown = [true, true, true, true, width >= WIDTH_FOR_WORKERS, true];
    let columns = ["ATTEMPT", "OUTCOME", "STARTED", "TOOK", "WORKER", "ERROR"];
    let mut table = Table::new(&chosen(columns, shown))
        .with_numbers(&["ATTEMPT", "TOOK"])
        .with_optional_columns(&["WORKER", "TOOK"]);
    for attempt in &record.history {
        table.row(chosen(history_row(attempt, clock), shown));
    }
    table.write_section(out, width)
}

fn history_row(attempt: &Attempt, clock: &Clock) -> [Cell; 6] {
    let started = clock.time(attempt.started_at);
    let worker: Cell = attempt.worker.as_str().into();
    let number: Cell = attempt.number.to_string().into();
    match &attempt.ending {
        None => {
            let running = Cell::styled("running", anstyle::AnsiColor::Cyan.on_default());
            let took = clock.elapsed(attempt.started_at);
            [number, running, started.into(), took.into(), worker, "".into()]
        }
        Some(ending) => {
            let outcome = Cell::styled(ending.outcome.name(), outcome_style(ending.outcome));
            let error = ending.error.as_deref().unwrap_or_default();
            [number, outcome, started.into(), rough(ending.duration).into(), worker, error.into()]
        }
    }
}

fn outcome_style(outcome: Outcome) -> Style {
    match outcome {
        Outcome::Success => anstyle::AnsiColor::Green.on_default(),
        Outcome::Failure { .. } | Outcome::Signal { .. } | Outcome::Timeout | Outcome::SpawnError => {
            anstyle::AnsiColor::Red.on_default()
        }
        Outcome::Lost => anstyle::AnsiColor::Yellow.on_default(),
        Outcome::Cancelled | Outcome::Released => Style::new().dimmed(),
    }
}

fn write_events(out: &mut dyn Write, record: &JobRecord, clock: &Clock, width: usize) -> io::Result<()> {
    let mut table = Table::new(&["EVENT", "BY", "AT"]);
    for event in &record.events {
        table.row(vec![
            event.event.replace('_', " ").into(),
            event.by.as_str().into(),
            clock.moment(event.at).into(),
        ]);
    }
    table.write_section(out, width)
}
