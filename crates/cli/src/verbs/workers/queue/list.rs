//! `queuectl queue list`

use anstyle::{AnsiColor, Style};

use crate::context::Context;
use crate::failure::Failure;
use crate::render::table::{Cell, Table, counted};
use crate::render::text::{grouped, state_style};
use domain::job::life::StateName;
use domain::values::clock::Clock;
use ops::json::QueueJson;
use store::{Pause, Queue};

pub(super) fn run(context: &Context) -> Result<(), Failure> {
    let store = context.store()?;
    let queues = store.queues()?;
    let clock = &context.clock(store.now()?);
    let if_empty = "no queues yet; a queue is created when it is first used";
    context.print_list::<QueueJson<'_>, _>(&queues, if_empty, |queues| table(queues, clock))
}

fn table(queues: &[Queue], clock: &Clock) -> Table {
    let mut table = Table::new(&[
        "QUEUE",
        "RUNNING",
        "RATE",
        "PENDING",
        "FAILED",
        "COMPLETED",
        "DEAD",
        "CANCELLED",
        "NOTES",
    ])
    .with_numbers(&["RUNNING", "PENDING", "FAILED", "COMPLETED", "DEAD", "CANCELLED"])
    .with_optional_columns(&["CANCELLED", "COMPLETED"]);
    for queue in queues {
        let count = |state| counted(&queue.counts, state);
        table.row(vec![
            queue.name.as_str().into(),
            running(queue),
            queue.rate.map_or_else(|| "-".to_owned(), |rate| rate.to_string()).into(),
            count(StateName::Pending),
            count(StateName::Failed),
            count(StateName::Completed),
            count(StateName::Dead),
            count(StateName::Cancelled),
            notes(queue, clock),
        ]);
    }
    table
}

/// The reason why the queue is held back, highlighted, and its defaults for jobs. They share one column
/// because only the last column is shortened on a narrow terminal.
fn notes(queue: &Queue, clock: &Clock) -> Cell {
    let held_back = held_back(queue, clock);
    let style = if held_back.is_some() { AnsiColor::Yellow.on_default() } else { Style::new() };
    let limits = (!queue.limits.is_none()).then(|| queue.limits.to_string());
    let retry_on = queue.retry.retry_on.map(|codes| format!("retry on {codes}"));
    let no_retry_on = queue.retry.no_retry_on.map(|codes| format!("no retry on {codes}"));
    let notes: Vec<String> = [held_back, limits, retry_on, no_retry_on].into_iter().flatten().collect();
    Cell::styled(&notes.join("; "), style)
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
