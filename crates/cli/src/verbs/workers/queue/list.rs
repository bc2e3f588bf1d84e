//! `queuectl queue list`

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};

use crate::context::Context;
use crate::failure::Failure;
use crate::render::table::{Cell, Table, chosen, counted};
use crate::render::text::{grouped, printable, state_style, wrap};
use domain::job::life::StateName;
use domain::values::clock::Clock;
use ops::json::QueueJson;
use store::{Pause, Queue};

pub(super) fn run(context: &Context) -> Result<(), Failure> {
    let store = context.store()?;
    let queues = store.queues()?;
    let clock = &context.clock(store.now()?);
    if queues.is_empty() && !context.json {
        return context.hint("no queues yet; a queue is created when it is first used");
    }
    let json: Vec<QueueJson<'_>> = queues.iter().map(QueueJson::from).collect();
    context.print(&json, |out| write_queues(out, &queues, clock, context.width()))
}

/// Columns in front of notes that have lines of their own.
const NOTE_INDENT: usize = 4;

/// Notes are a column where all of them fit, else lines below their queue.
fn write_queues(out: &mut dyn Write, queues: &[Queue], clock: &Clock, width: usize) -> io::Result<()> {
    let mut shown = columns(queues, width);
    let mut with_notes = table(queues, clock, shown);
    if with_notes.fits(width) {
        return with_notes.write(out, width);
    }
    let [.., notes_column] = &mut shown;
    *notes_column = false;
    let mut lines = table(queues, clock, shown).lines(width).into_iter();
    writeln!(out, "{}", lines.next().unwrap_or_default())?;
    for (line, queue) in lines.zip(queues) {
        writeln!(out, "{line}")?;
        let (notes, style) = notes(queue, clock);
        let room = width.saturating_sub(NOTE_INDENT);
        for line in wrap(&printable(&notes), room).iter().filter(|line| !line.is_empty()) {
            writeln!(out, "{:NOTE_INDENT$}{style}{line}{style:#}", "")?;
        }
    }
    Ok(())
}

const COLUMNS: [&str; 9] =
    ["QUEUE", "RUNNING", "RATE", "PENDING", "FAILED", "COMPLETED", "DEAD", "CANCELLED", "NOTES"];

/// Which columns to show, in their order. A terminal shows only those that say something about at least one queue; a
/// program gets all of them.
fn columns(queues: &[Queue], width: usize) -> [bool; COLUMNS.len()] {
    let is_piped = width == usize::MAX;
    let has = |state| {
        is_piped || queues.iter().any(|queue| queue.counts.get(&state).is_some_and(|count| *count > 0))
    };
    let has_rate = is_piped || queues.iter().any(|queue| queue.rate.is_some());
    let (has_failed, has_cancelled) = (has(StateName::Failed), has(StateName::Cancelled));
    [true, true, has_rate, true, has_failed, true, true, has_cancelled, true]
}

fn table(queues: &[Queue], clock: &Clock, shown: [bool; COLUMNS.len()]) -> Table {
    let mut table = Table::new(&chosen(COLUMNS, shown))
        .with_numbers(&["RUNNING", "PENDING", "FAILED", "COMPLETED", "DEAD", "CANCELLED"])
        .with_optional_columns(&["CANCELLED", "COMPLETED"]);
    for queue in queues {
        let count = |state| counted(&queue.counts, state);
        let (notes, style) = notes(queue, clock);
        let row = [
            queue.name.as_str().into(),
            running(queue),
            queue.rate.map_or_else(|| "-".to_owned(), |rate| rate.to_string()).into(),
            count(StateName::Pending),
            count(StateName::Failed),
            count(StateName::Completed),
            count(StateName::Dead),
            count(StateName::Cancelled),
            Cell::styled(&notes, style),
        ];
        table.row(chosen(row, shown));
    }
    table
}

/// The reason why the queue is held back, highlighted, and its defaults for jobs.
fn notes(queue: &Queue, clock: &Clock) -> (String, Style) {
    let held_back = held_back(queue, clock);
    let style = if held_back.is_some() { AnsiColor::Yellow.on_default() } else { Style::new() };
    let limits = (!queue.limits.is_none()).then(|| queue.limits.to_string());
    let retry_on = queue.retry.retry_on.map(|codes| format!("retry on {codes}"));
    let no_retry_on = queue.retry.no_retry_on.map(|codes| format!("no retry on {codes}"));
    let notes: Vec<String> = [held_back, limits, retry_on, no_retry_on].into_iter().flatten().collect();
    (notes.join("; "), style)
}

/// The number of running jobs, and the limit.
fn running(queue: &Queue) -> Cell {
    match queue.concurrency {
        None => counted(&queue.counts, StateName::Processing),
        Some(limit) => {
            let text = format!("{}/{}", grouped(queue.running()), grouped(limit.into()));
            Cell::styled(&text, state_style(StateName::Processing))
        }
    }
}

/// The reason why its jobs do not start, if there is one.
fn held_back(queue: &Queue, clock: &Clock) -> Option<String> {
    if let Some((since, Pause { by, reason })) = &queue.paused {
        let why = reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
        return Some(format!("paused {} by {by}{why}", clock.ago(*since)));
    }
    if queue.is_full() {
        return Some("full".to_owned());
    }
    queue.next_start_at.map(|at| format!("next start in {}", clock.left(at)))
}
