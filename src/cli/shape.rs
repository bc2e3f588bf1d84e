//! How a list of jobs is printed: which columns, in which order, in which format.

use std::io::{self, Write};

use super::context::Context;
use super::failure::{Exit, Failure};
use super::table::{Align, Cell, Table};
use super::text::{printable, state_style, when};
use crate::domain::job::Job;
use crate::domain::timestamp::Timestamp;
use crate::ops::columns::{COLUMNS, Fields, parse_column};
use crate::ops::escape::write_json;
use crate::ops::json::JobJson;
use crate::ops::list::Sort;

/// How jobs are printed.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "Output")]
pub(super) struct ShapeArgs {
    /// These fields of the jobs, by their names in JSON: id,state,exit_code
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = parse_column)]
    columns: Vec<&'static str>,
    /// Sort by created, updated, priority, run_at, started, finished, attempts, failures, queue, state, id or command;
    /// with - before it from high to low
    #[arg(long, value_name = "FIELD", allow_hyphen_values = true)]
    pub(super) sort: Option<Sort>,
    /// Print a table, a JSON array, JSON lines, CSV with a head, or ids only [default: table]
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

impl ShapeArgs {
    /// Refuses what would be ignored.
    pub(super) fn check(&self, context: &Context) -> Result<(), Failure> {
        if context.json && self.format.is_some_and(|format| format != Format::Json) {
            return Err(Failure::usage("--json and another --format exclude each other"));
        }
        if self.format == Some(Format::Ids) && !self.columns.is_empty() {
            return Err(Failure::usage("--format ids has no columns"));
        }
        Ok(())
    }

    fn format(&self, context: &Context) -> Format {
        if context.json { Format::Json } else { self.format.unwrap_or(Format::Table) }
    }

    /// Whether a person gets to read it, so that an empty list wants a word.
    pub(super) fn is_table(&self, context: &Context) -> bool {
        self.format(context) == Format::Table
    }

    fn columns_or_all(&self) -> &[&'static str] {
        if self.columns.is_empty() { &COLUMNS } else { &self.columns }
    }
}

pub(super) fn print(
    context: &Context,
    shape: &ShapeArgs,
    jobs: &[Job],
    now: Timestamp,
) -> Result<(), Failure> {
    if context.quiet {
        return Ok(());
    }
    match shape.format(context) {
        Format::Table if shape.columns.is_empty() => print_table(context, jobs, now),
        Format::Table => print_columns(context, jobs, &shape.columns),
        Format::Json if shape.columns.is_empty() => {
            context.print_json(&jobs.iter().map(JobJson::from).collect::<Vec<_>>())
        }
        Format::Json => {
            let fields: Vec<Fields> = jobs.iter().map(|job| Fields::of(job, &shape.columns)).collect();
            context.print_json(&fields)
        }
        Format::Jsonl => print_lines(jobs, shape.columns_or_all()),
        Format::Csv => print_csv(context, jobs, shape.columns_or_all()),
        Format::Ids => print_ids(context, jobs),
    }
}

/// What one wants to know at a glance.
pub(super) fn print_table(context: &Context, jobs: &[Job], now: Timestamp) -> Result<(), Failure> {
    let mut table = Table::new(&[
        ("ID", Align::Left),
        ("STATE", Align::Left),
        ("QUEUE", Align::Left),
        ("PRIO", Align::Right),
        ("TRIES", Align::Right),
        ("WHEN", Align::Left),
        ("COMMAND", Align::Left),
    ])
    .can_do_without(&["PRIO", "TRIES", "QUEUE"]);
    for job in jobs {
        let state = job.life.state.name();
        table.row(vec![
            job.id.as_str().into(),
            Cell::styled(state.name(), state_style(state)),
            job.queue.as_str().into(),
            job.priority.to_string().into(),
            format!("{}/{}", job.life.tries(), u64::from(job.life.max_retries) + 1).into(),
            when(job, now).into(),
            job.command.as_str().into(),
        ]);
    }
    write_table(context, &table, jobs)
}

fn print_columns(context: &Context, jobs: &[Job], columns: &[&'static str]) -> Result<(), Failure> {
    let heads: Vec<String> = columns.iter().map(|name| name.to_uppercase().replace('_', " ")).collect();
    let heads: Vec<(&str, Align)> =
        heads.iter().zip(columns).map(|(head, name)| (head.as_str(), align(name))).collect();
    let mut table = Table::new(&heads);
    for job in jobs {
        let style = state_style(job.life.state.name());
        let fields = Fields::of(job, columns);
        let cells = fields.texts().map(|(name, text)| match (name, text.as_str()) {
            ("state", state) => Cell::styled(state, style),
            (_, "") => "-".into(),
            (_, text) => text.into(),
        });
        table.row(cells.collect());
    }
    write_table(context, &table, jobs)
}

fn align(column: &str) -> Align {
    let is_number =
        ["priority", "attempts", "max_retries", "failures", "timeout_ms", "exit_code"].contains(&column);
    if is_number { Align::Right } else { Align::Left }
}

fn write_table(context: &Context, table: &Table, jobs: &[Job]) -> Result<(), Failure> {
    if jobs.is_empty() {
        return Ok(());
    }
    let mut out = context.out();
    table.write(&mut out, context.width())?;
    Ok(out.flush()?)
}

fn print_lines(jobs: &[Job], columns: &[&'static str]) -> Result<(), Failure> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    for job in jobs {
        write_json(&mut out, &Fields::of(job, columns), false)?;
        out.write_all(b"\n")?;
    }
    Ok(out.flush()?)
}

/// The head is there also when there are no jobs. What a program gets is as it is; a terminal is not steered by it.
fn print_csv(context: &Context, jobs: &[Job], columns: &[&'static str]) -> Result<(), Failure> {
    let failed =
        |error: csv::Error| Failure::new(Exit::Failed, format!("failed to write the output ({error})"));
    let mut out = csv::Writer::from_writer(io::stdout().lock());
    out.write_record(columns).map_err(failed)?;
    for job in jobs {
        let fields = Fields::of(job, columns);
        let texts = fields.texts().map(|(_, text)| text);
        let shown = texts.map(|text| if context.person_reads { printable(&text).into_owned() } else { text });
        out.write_record(shown).map_err(failed)?;
    }
    Ok(out.flush()?)
}

fn print_ids(context: &Context, jobs: &[Job]) -> Result<(), Failure> {
    let mut out = context.out();
    for job in jobs {
        writeln!(out, "{}", job.id)?;
    }
    Ok(out.flush()?)
}
