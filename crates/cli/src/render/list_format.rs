//! Prints a list of jobs: the columns, their order and the format.

use std::io::{self, Write};

use serde::Serialize;

use super::table::{Cell, Table, chosen};
use super::text::{printable, rough, state_style, state_text, when};
use crate::context::{Context, write_json_line};
use crate::failure::{Exit, Failure};
use domain::job::json::{FIELDS, JobField};
use domain::job::life::{State, StateName};
use domain::job::{Job, LatestAttempt};
use domain::values::clock::Clock;
use domain::values::name::QueueName;
use ops::escape::write_json_array;
use ops::jobs::columns::{Fields, parse_column};
use ops::jobs::list::parse_order;
use store::{Order, StoreError};

#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct ListFormatArgs {
    /// Print these fields, named as in JSON: id,state,exit_code
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = parse_column)]
    columns: Vec<&'static JobField>,
    /// List in this order: newest, oldest, claim (ready jobs as workers take them), soonest (scheduled jobs),
    /// longest-running, or last-failed (jobs with a failed attempt)
    #[arg(long, value_name = "ORDER", allow_hyphen_values = true, value_parser = parse_order)]
    pub(crate) sort: Option<Order>,
    /// Print in this format: table, json (an array), jsonl, csv (with a header) or ids [default: table]
    #[arg(long, value_name = "FORMAT", value_enum)]
    format: Option<Format>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Table,
    Json,
    Jsonl,
    Csv,
    Ids,
}

impl ListFormatArgs {
    /// Refuses flags that would be ignored.
    pub(crate) fn check(&self, context: &Context) -> Result<(), Failure> {
        if context.json && self.format.is_some_and(|format| format != Format::Json) {
            return Err(Failure::usage("--json cannot be combined with another --format"));
        }
        if self.format == Some(Format::Ids) && !self.columns.is_empty() {
            return Err(Failure::usage("--format ids cannot be combined with --columns"));
        }
        Ok(())
    }

    fn format(&self, context: &Context) -> Format {
        if context.json { Format::Json } else { self.format.unwrap_or(Format::Table) }
    }

    /// Whether the format is for people, who need a message if the list is empty.
    pub(crate) fn is_table(&self, context: &Context) -> bool {
        self.format(context) == Format::Table
    }

    fn columns_or_all(&self) -> Vec<&'static JobField> {
        if self.columns.is_empty() { FIELDS.iter().collect() } else { self.columns.clone() }
    }
}

/// Which jobs a list has; the default columns depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listed {
    Any,
    Dead,
}

/// Jobs are printed while they are read; this many rows of a table are aligned together.
const ROWS_PER_PART: usize = 1_000;

type Jobs<'a> = &'a mut dyn Iterator<Item = Result<Job, StoreError>>;

pub(crate) fn print(
    context: &Context,
    shape: &ListFormatArgs,
    jobs: Jobs<'_>,
    listed: Listed,
    clock: &Clock,
) -> Result<(), Failure> {
    if context.quiet {
        return Ok(());
    }
    let columns = shape.columns_or_all();
    match shape.format(context) {
        Format::Table if shape.columns.is_empty() => print_overview(context, jobs, listed, clock),
        Format::Table => write_table(context, table_of(&columns), jobs, |job| row_of(job, &columns, clock)),
        Format::Json => print_array(context, jobs.map(|job| Ok(Fields::of(&job?, &columns)))),
        Format::Jsonl => print_lines(jobs, &columns),
        Format::Csv => print_csv(context, jobs, &columns),
        Format::Ids => print_ids(context, jobs),
    }
}

fn print_array<T: Serialize>(
    context: &Context,
    elements: impl Iterator<Item = Result<T, Failure>>,
) -> Result<(), Failure> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    write_json_array(&mut out, elements, context.stdout_is_terminal)?;
    out.write_all(b"\n")?;
    Ok(out.flush()?)
}

/// Prints the default columns.
pub(crate) fn print_table(context: &Context, jobs: &[Job], clock: &Clock) -> Result<(), Failure> {
    print_overview(context, &mut jobs.iter().cloned().map(Ok), Listed::Any, clock)
}

/// The default columns of a few jobs.
pub(crate) fn lines(context: &Context, jobs: &[Job], clock: &Clock) -> Vec<String> {
    if jobs.is_empty() {
        return Vec::new();
    }
    let columns = Overview::of(jobs, Listed::Any, context.stdout_is_terminal);
    let mut table = columns.table();
    for job in jobs {
        table.row(columns.row(job, clock, context));
    }
    table.lines(context.width())
}

fn print_overview(context: &Context, jobs: Jobs<'_>, listed: Listed, clock: &Clock) -> Result<(), Failure> {
    let first: Vec<Job> = jobs.take(ROWS_PER_PART).collect::<Result<_, _>>()?;
    let columns = Overview::of(&first, listed, context.stdout_is_terminal);
    let jobs = &mut first.into_iter().map(Ok).chain(jobs);
    write_table(context, columns.table(), jobs, |job| columns.row(job, clock, context))
}

/// The default columns.
struct Overview {
    is_terminal: bool,
    listed: Listed,
    /// Which of [`COLUMNS`] are shown.
    shown: [bool; COLUMNS.len()],
    has_long_ids: bool,
}

/// A longer id takes the room of two columns. The number names the job as well, so such ids are left out first.
const MAX_SHORT_ID: usize = 12;

const COLUMNS: [&str; 11] =
    ["#", "ID", "STATE", "QUEUE", "PRIO", "TRIES", "EXIT", "TOOK", "WHEN", "COMMAND", "ERROR"];

impl Overview {
    /// Decides by the first jobs: on a terminal, columns that say the same of every job are left out.
    fn of(jobs: &[Job], listed: Listed, is_terminal: bool) -> Self {
        let differs = |of: fn(&Job) -> bool| !is_terminal || jobs.iter().any(of);
        // A generated id says no more than the number.
        let ids = differs(|job| !job.id.is_generated());
        let queues = differs(|job| job.queue != QueueName::default_queue());
        let is_dead = listed == Listed::Dead;
        let is_long = !(is_terminal && is_dead);
        let priorities = is_long && differs(|job| job.priority != 0);
        let shown = [true, ids, is_long, queues, priorities, is_long, true, is_long, true, true, is_dead];
        let has_long_ids =
            jobs.iter().any(|job| !job.id.is_generated() && job.id.as_str().len() > MAX_SHORT_ID);
        Self { is_terminal, listed, shown, has_long_ids }
    }

    fn table(&self) -> Table {
        let optional: &[&str] = match (self.listed, self.has_long_ids) {
            (Listed::Any, true) => &["ID", "PRIO", "TRIES", "QUEUE", "TOOK", "EXIT"],
            (Listed::Any, false) => &["PRIO", "TRIES", "ID", "QUEUE", "TOOK", "EXIT"],
            (Listed::Dead, _) => &["ID", "QUEUE"],
        };
        Table::new(&chosen(COLUMNS, self.shown))
            .with_numbers(&["#", "PRIO", "TRIES", "EXIT", "TOOK"])
            .with_optional_columns(optional)
            .with_whole_columns(&["ID", "ERROR"])
    }

    fn row(&self, job: &Job, clock: &Clock, context: &Context) -> Vec<Cell> {
        let state = job.life.state.name();
        let cells = [
            job.number.to_string().into(),
            // On a terminal, the number of a generated id takes less room.
            Cell::command(if self.is_terminal && job.id.is_generated() { "" } else { job.id.as_str() }),
            Cell::styled(state_text(&job.life.state), state_style(state)),
            job.queue.as_str().into(),
            job.priority.to_string().into(),
            format!("{}/{}", job.life.tries(), u64::from(job.life.max_retries) + 1).into(),
            exit(job).into(),
            took(job).or_else(|| self.took_before_retry(job, context)).unwrap_or_default().into(),
            when(job, clock).into(),
            Cell::command(job.label()),
            if self.is_terminal { message(job) } else { job.latest.error.as_deref().unwrap_or_default() }
                .into(),
        ];
        chosen(cells, self.shown)
    }

    /// How long the last attempt of a job took that waits for its retry. Only its history knows that.
    fn took_before_retry(&self, job: &Job, context: &Context) -> Option<String> {
        if !self.is_terminal || job.life.state != State::Failed {
            return None;
        }
        let record = context.store().ok()?.record(&job.id).ok()??;
        let last = record.history.iter().rev().find_map(|attempt| attempt.ending.as_ref())?;
        Some(rough(last.duration))
    }
}

/// The error without the exit code or signal, which has its own column; all of it if it says nothing else.
fn message(job: &Job) -> &str {
    let error = job.latest.error.as_deref().unwrap_or_default();
    let how = [format!("exit code {}: ", exit(job)), format!("killed by {}: ", exit(job))];
    how.iter().find_map(|how| error.strip_prefix(how.as_str())).unwrap_or(error)
}

/// The exit code or the signal of the latest attempt that ended.
fn exit(job: &Job) -> String {
    let LatestAttempt { exit_code, signal, .. } = &job.latest;
    exit_code.map(|code| code.to_string()).or(signal.map(|signal| signal.to_string())).unwrap_or_default()
}

/// How long the last attempt took. A cancelled job may have ended long after it.
fn took(job: &Job) -> Option<String> {
    let ended = job.life.state.finished_at().filter(|_| job.life.state.name() != StateName::Cancelled);
    let times = job.latest.started_at.zip(ended);
    times.map(|(started, finished)| rough(finished.since(started)))
}

fn table_of(columns: &[&'static JobField]) -> Table {
    let heads: Vec<String> = columns.iter().map(|(name, _)| name.to_uppercase().replace('_', " ")).collect();
    let numbers = ["NUMBER", "PRIORITY", "ATTEMPTS", "MAX RETRIES", "FAILURES", "TIMEOUT MS", "EXIT CODE"];
    Table::new(&heads).with_numbers(&numbers).with_whole_columns(&["ID"])
}

fn row_of(job: &Job, columns: &[&'static JobField], clock: &Clock) -> Vec<Cell> {
    let style = state_style(job.life.state.name());
    let fields = Fields::of(job, columns);
    let cells = fields.texts().map(|(name, text)| match (name, text.as_str()) {
        ("state", state) => Cell::styled(state, style),
        ("id" | "command", text) => Cell::command(text),
        (_, "") => "-".into(),
        (name, text) if is_time(name) => text.parse().map_or(text.into(), |at| clock.time(at).into()),
        (_, text) => text.into(),
    });
    cells.collect()
}

/// Whether a field is a time.
fn is_time(name: &str) -> bool {
    name.ends_with("_at") || name == "lease_until"
}

fn write_table(
    context: &Context,
    mut table: Table,
    jobs: Jobs<'_>,
    row: impl Fn(&Job) -> Vec<Cell>,
) -> Result<(), Failure> {
    let mut out = context.out();
    let mut jobs = jobs.peekable();
    while jobs.peek().is_some() {
        for job in jobs.by_ref().take(ROWS_PER_PART) {
            table.row(row(&job?));
        }
        table.write(&mut out, context.width())?;
    }
    Ok(out.flush()?)
}

fn print_lines(jobs: Jobs<'_>, columns: &[&'static JobField]) -> Result<(), Failure> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    for job in jobs {
        write_json_line(&mut out, &Fields::of(&job?, columns))?;
    }
    Ok(out.flush()?)
}

/// Prints the header even if there are no jobs. Control characters are escaped on a terminal only.
fn print_csv(context: &Context, jobs: Jobs<'_>, columns: &[&'static JobField]) -> Result<(), Failure> {
    let failed =
        |error: csv::Error| Failure::new(Exit::Failed, format!("failed to write the output ({error})"));
    let mut out = csv::Writer::from_writer(io::stdout().lock());
    out.write_record(columns.iter().map(|(name, _)| name)).map_err(failed)?;
    for job in jobs {
        let fields = Fields::of(&job?, columns);
        let texts = fields.texts().map(|(_, text)| text);
        let shown =
            texts.map(|text| if context.stdout_is_terminal { printable(&text).into_owned() } else { text });
        out.write_record(shown).map_err(failed)?;
    }
    Ok(out.flush()?)
}

fn print_ids(context: &Context, jobs: Jobs<'_>) -> Result<(), Failure> {
    let mut out = context.out();
    for job in jobs {
        writeln!(out, "{}", job?.id)?;
    }
    Ok(out.flush()?)
}
