//! `queuectl status`

use std::path::Path;
use std::time::Duration;
use sys::program::ExitCode;

use anstyle::{AnsiColor, Style};

use super::metrics::hour_line;
use super::watch;
use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::render::table::{Cell, Table, counted};
use crate::render::text::{printable, wrap};
use crate::verbs::workers::worker;
use domain::job::life::StateName;
use domain::values::clock::Clock;
use domain::values::span::{SpanError, parse_span};
use ops::json::StatusReportJson;
use ops::metrics::recent::{Recent, recent};
use ops::status::{HOW_TO_START_A_WORKER, Problem, Status, status};
use ops::worker::local::describe_local_workers;
use store::{Queue, Store};

/// Show jobs, queues, workers and problems
///
/// The last line has the last hour: how many jobs finished, and how long they waited and ran (`metrics` has more).
///
/// With --watch, also shows running jobs and the throughput of the last minute, and refreshes until q or Ctrl-C. With --check, prints only the problems and
/// exits with 1 if there are any, else with 0.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  queuectl status
  queuectl status --json | jq .jobs.dead
  queuectl status --check || echo 'something is wrong'
  queuectl status --watch
  queuectl status --watch --interval 10s --json >> status.jsonl")]
pub(crate) struct Args {
    /// Refresh until q or Ctrl-C
    #[arg(short, long)]
    watch: bool,
    /// Print only the problems; exit with 1 if there are any, for monitoring
    #[arg(long, conflicts_with = "watch")]
    check: bool,
    /// Time between refreshes: 1, 500ms
    #[arg(long, value_name = "DURATION", default_value = "1s", requires = "watch", allow_negative_numbers = true,
          value_parser = parse_interval)]
    interval: Duration,
    #[command(flatten)]
    foreign_home: worker::ForeignHome,
}

/// A faster refresh would be unreadable.
const MIN_WATCH_INTERVAL: Duration = Duration::from_millis(100);

pub(crate) fn run(args: &Args, context: &Context) -> Result<ExitCode, Failure> {
    args.foreign_home.apply(context)?;
    if args.watch {
        watch::run(args.interval, context)?;
        return Ok(ExitCode::SUCCESS);
    }
    let home = context.location()?.home;
    let (store, status) = read(context, &home).map_err(|failure| {
        // The workers of this machine may know why.
        let is_unavailable = failure.exit == Exit::Unavailable;
        failure.and_hint(is_unavailable.then(|| describe_local_workers(&home)).flatten())
    })?;
    if args.check {
        return check(&status.problems, context);
    }
    let clock = &context.clock(store.now()?);
    let hour = recent(store, None)?;
    context.print(&StatusReportJson::new(&status, &hour), |out| {
        lines(&status, clock, context.width()).iter().try_for_each(|line| writeln!(out, "{line}"))?;
        let hour = hour_lines(&hour, context.width());
        if !hour.is_empty() {
            writeln!(out)?;
        }
        hour.iter().try_for_each(|line| writeln!(out, "{line}"))
    })?;
    context.note_home()?;
    Ok(ExitCode::SUCCESS)
}

fn read<'c>(context: &'c Context, home: &Path) -> Result<(&'c dyn Store, Status), Failure> {
    let store = context.store()?;
    Ok((store, status(store, home, &context.time_format())?))
}

/// Prints only the problems. The exit code says whether there are any.
fn check(problems: &[Problem], context: &Context) -> Result<ExitCode, Failure> {
    context.print(&problems, |out| {
        problem_lines(problems, context.width()).iter().try_for_each(|line| writeln!(out, "{line}"))
    })?;
    if problems.is_empty() {
        context.note("no problems")?;
        return Ok(ExitCode::SUCCESS);
    }
    Ok(Exit::Failed.into())
}

fn parse_interval(text: &str) -> Result<Duration, String> {
    let interval = parse_span(text).map_err(|error: SpanError| error.to_string())?;
    if interval < MIN_WATCH_INTERVAL {
        return Err(format!("must be at least {}ms", MIN_WATCH_INTERVAL.as_millis()));
    }
    Ok(interval)
}

pub(crate) fn lines(status: &Status, clock: &Clock, width: usize) -> Vec<String> {
    let mut lines = queue_lines(status, width);
    for section in [worker_lines(status, clock, width), problem_lines(&status.problems, width)] {
        if !section.is_empty() {
            lines.push(String::new());
            lines.extend(section);
        }
    }
    lines
}

/// Queues with their counts, and a total if there are several.
pub(crate) fn queue_lines(status: &Status, width: usize) -> Vec<String> {
    let heads = StateName::ALL.map(|state| state.name().to_uppercase());
    let row = |name: Cell, counts| {
        std::iter::once(name).chain(StateName::ALL.map(|state| counted(counts, state))).collect()
    };
    let mut table = Table::new(&[&["QUEUE".to_owned()], &heads[..]].concat()).with_numbers(&heads);
    for queue in &status.queues {
        let name = match held_back(queue) {
            Some(how) => Cell::styled(&format!("{} ({how})", queue.name), AnsiColor::Yellow.on_default()),
            None => queue.name.as_str().into(),
        };
        table.row(row(name, &queue.counts));
    }
    if has_sum(status) {
        table.row(row(Cell::styled("all queues", Style::new().bold()), &status.jobs));
    }
    table.lines(width)
}

/// Why pending jobs of a queue do not start.
fn held_back(queue: &Queue) -> Option<&'static str> {
    if queue.paused.is_some() {
        return Some("paused");
    }
    if !queue.counts.contains_key(&StateName::Pending) {
        return None;
    }
    let waits_for_rate = queue.next_start_at.map(|_| "rate");
    if queue.is_full() { Some("full") } else { waits_for_rate }
}

/// The last hour; nothing if no attempt started in it.
pub(crate) fn hour_lines(recent: &Recent, width: usize) -> Vec<String> {
    hour_line(recent).map_or_else(Vec::new, |line| wrap(&line, width))
}

/// Whether the last line is the total of those above.
pub(crate) fn has_sum(status: &Status) -> bool {
    status.queues.len() != 1
}

/// The workers, or a note that there are none, unless a problem already says so.
pub(crate) fn worker_lines(status: &Status, clock: &Clock, width: usize) -> Vec<String> {
    if !status.workers.is_empty() {
        return worker::table(&status.workers, clock).lines(width);
    }
    let is_problem = status.problems.iter().any(|problem| problem.code == Problem::NO_WORKER);
    if is_problem { Vec::new() } else { vec![format!("No worker is running; {HOW_TO_START_A_WORKER}.")] }
}

/// The problems, each marked with `!`.
pub(crate) fn problem_lines(problems: &[Problem], width: usize) -> Vec<String> {
    let yellow = AnsiColor::Yellow.on_default();
    let mut lines = Vec::new();
    for problem in problems {
        let marks = std::iter::once("!").chain(std::iter::repeat(" "));
        let wrapped = wrap(&printable(&problem.message), width.saturating_sub(2));
        lines.extend(marks.zip(wrapped).map(|(mark, line)| format!("{yellow}{mark} {line}{yellow:#}")));
    }
    lines
}
