//! `queuectl queue list`

use std::io::Write;
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};

use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::table::{Align, Cell, Table};
use crate::cli::text::{ago, grouped, rough, state_style};
use crate::domain::life::StateName;
use crate::domain::timestamp::Timestamp;
use crate::ops::json::QueueJson;
use crate::store::{Pause, Queue};

/// Show the queues: their jobs, their limits, and what holds them back
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  queuectl queue list\n  queuectl queue list --json | jq '.[] | select(.paused)'"
)]
pub(super) struct Args {}

pub(super) fn run(_: &Args, context: &Context) -> Result<ExitCode, Failure> {
    let store = context.store()?;
    let queues = store.queues()?;
    if context.json {
        context.print_json(&queues.iter().map(QueueJson::from).collect::<Vec<_>>())?;
    } else if queues.is_empty() {
        context.hint("there are no queues; one is made when it is first named")?;
    } else if !context.quiet {
        let mut out = context.out();
        table(&queues, store.now()?).write(&mut out, context.width())?;
        out.flush()?;
    }
    Ok(ExitCode::SUCCESS)
}

fn table(queues: &[Queue], now: Timestamp) -> Table {
    let mut columns = vec![
        ("QUEUE", Align::Left),
        ("RUNNING", Align::Right),
        ("RATE", Align::Left),
        ("PENDING", Align::Right),
        ("FAILED", Align::Right),
        ("COMPLETED", Align::Right),
        ("DEAD", Align::Right),
        ("CANCELLED", Align::Right),
        ("HELD BACK", Align::Left),
    ];
    // Few queues have any, and the table is wide.
    let rules: Vec<String> = queues.iter().map(for_its_jobs).collect();
    let has_rules = rules.iter().any(|rules| !rules.is_empty());
    columns.extend(has_rules.then_some(("FOR ITS JOBS", Align::Left)));
    let mut table = Table::new(&columns);
    for (queue, rules) in queues.iter().zip(rules) {
        let count = |state| counted(queue, state);
        let mut row = vec![
            queue.name.as_str().into(),
            running(queue),
            queue.rate.map_or_else(|| "-".to_owned(), |rate| rate.to_string()).into(),
            count(StateName::Pending),
            count(StateName::Failed),
            count(StateName::Completed),
            count(StateName::Dead),
            count(StateName::Cancelled),
            Cell::styled(&held_back(queue, now), AnsiColor::Yellow.on_default()),
        ];
        row.extend(has_rules.then(|| rules.as_str().into()));
        table.row(row);
    }
    table
}

/// What it says about jobs that say nothing themselves.
fn for_its_jobs(queue: &Queue) -> String {
    let limits = (!queue.limits.is_none()).then(|| queue.limits.to_string());
    let retry_on = queue.retry.retry_on.map(|codes| format!("retry on {codes}"));
    let no_retry_on = queue.retry.no_retry_on.map(|codes| format!("no retry on {codes}"));
    [limits, retry_on, no_retry_on].into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// A number in the colour of its state; nothing to see is dim.
fn counted(queue: &Queue, state: StateName) -> Cell {
    let count = queue.counts.get(&state).copied().unwrap_or(0);
    let style = if count == 0 { Style::new().dimmed() } else { state_style(state) };
    Cell::styled(&grouped(count), style)
}

/// How many run, and of how many.
fn running(queue: &Queue) -> Cell {
    match queue.concurrency {
        None => counted(queue, StateName::Processing),
        Some(limit) => {
            let text = format!("{}/{}", grouped(queue.running()), grouped(limit.into()));
            Cell::styled(&text, state_style(StateName::Processing))
        }
    }
}

/// What keeps its jobs from starting, if anything does.
fn held_back(queue: &Queue, now: Timestamp) -> String {
    if let Some((since, Pause { by, reason })) = &queue.paused {
        let why = reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
        return format!("paused {} by {by}{why}", ago(*since, now));
    }
    if queue.is_full() {
        return "full".to_owned();
    }
    let wait = queue.next_start_at.map(|at| format!("next start in {}", rough(at.since(now))));
    wait.unwrap_or_default()
}
