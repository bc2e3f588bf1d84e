//! `queuectl status`

use std::io::Write;
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};

use super::context::Context;
use super::failure::Failure;
use super::table::{Align, Cell, Table};
use super::text::{grouped, printable, state_style};
use super::worker;
use crate::domain::life::StateName;
use crate::domain::timestamp::Timestamp;
use crate::ops::json::StatusJson;
use crate::ops::status::{HOW_TO_START_A_WORKER, Problem, Status, status};
use crate::store::Worker;

/// Show how things stand: jobs by state and queue, workers, and what is wrong
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  queuectl status\n  queuectl status --json | jq .jobs.dead")]
pub(super) struct Args {}

pub(super) fn run(_: &Args, context: &Context) -> Result<ExitCode, Failure> {
    let home = context.location()?.home;
    let store = context.store()?;
    let status = status(store, &home)?;
    if context.json {
        context.print_json(&StatusJson::from(&status))?;
    } else if !context.quiet {
        let mut out = context.out();
        write(&mut out, &status, store.now()?, context.width())?;
        out.flush()?;
    }
    Ok(ExitCode::SUCCESS)
}

fn write(out: &mut impl Write, status: &Status, now: Timestamp, width: usize) -> Result<(), Failure> {
    write_queues(out, status, width)?;
    writeln!(out)?;
    let said_below = status.problems.iter().any(|problem| matches!(problem, Problem::NoWorker { .. }));
    if !said_below {
        write_workers(out, &status.workers, now, width)?;
    }
    let yellow = AnsiColor::Yellow.on_default();
    for problem in &status.problems {
        writeln!(out, "{yellow}!{yellow:#} {}", printable(&problem.to_string()))?;
    }
    Ok(())
}

/// Queues with their counts, and the sum where there are several.
fn write_queues(out: &mut impl Write, status: &Status, width: usize) -> Result<(), Failure> {
    let mut columns = vec![("QUEUE", Align::Left)];
    columns.extend(StateName::ALL.map(|state| (heading(state), Align::Right)));
    let mut table = Table::new(&columns);
    for queue in &status.queues {
        let name = if queue.paused.is_some() {
            Cell::styled(&format!("{} (paused)", queue.name), AnsiColor::Yellow.on_default())
        } else {
            queue.name.as_str().into()
        };
        let count = |state| queue.counts.get(&state).copied().unwrap_or(0);
        table.row(
            std::iter::once(name).chain(StateName::ALL.map(|state| counted(state, count(state)))).collect(),
        );
    }
    if status.queues.len() != 1 {
        let count = |state| status.jobs.get(&state).copied().unwrap_or(0);
        let all = Cell::styled("all queues", Style::new().bold());
        table.row(
            std::iter::once(all).chain(StateName::ALL.map(|state| counted(state, count(state)))).collect(),
        );
    }
    Ok(table.write(out, width)?)
}

fn heading(state: StateName) -> &'static str {
    match state {
        StateName::Pending => "PENDING",
        StateName::Processing => "PROCESSING",
        StateName::Completed => "COMPLETED",
        StateName::Failed => "FAILED",
        StateName::Dead => "DEAD",
        StateName::Cancelled => "CANCELLED",
    }
}

/// A number in the colour of its state; nothing to see is dim.
fn counted(state: StateName, count: u64) -> Cell {
    let style = if count == 0 { Style::new().dimmed() } else { state_style(state) };
    Cell::styled(&grouped(count), style)
}

fn write_workers(
    out: &mut impl Write,
    workers: &[Worker],
    now: Timestamp,
    width: usize,
) -> Result<(), Failure> {
    if workers.is_empty() {
        writeln!(out, "No worker is running; {HOW_TO_START_A_WORKER}.")?;
        return Ok(());
    }
    Ok(worker::table(workers, now).write(out, width)?)
}
