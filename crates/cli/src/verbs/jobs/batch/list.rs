//! `queuectl batch list` and `queuectl batch show`

use std::io::Write;

use anstyle::Style;

use crate::context::Context;
use crate::failure::Failure;
use crate::render::table::{Align, Cell, Table};
use crate::render::text::{ago, grouped, moment, state_style};
use domain::job::life::StateName;
use domain::values::timestamp::Timestamp;
use ops::jobs::batch::BatchJson;
use store::Batch;

pub(super) fn list(context: &Context, limit: usize) -> Result<(), Failure> {
    let store = context.store()?;
    // Ask for one more than is shown, to know whether there are more.
    let mut batches = store.batches(limit.saturating_add(1))?;
    let more = batches.len() > limit;
    batches.truncate(limit);
    if context.json {
        context.print_json(&batches.iter().map(BatchJson::from).collect::<Vec<_>>())?;
    } else if batches.is_empty() && !more {
        return context.hint("no batches; `queuectl enqueue --batch NAME` creates one");
    } else {
        print_table(context, &batches, store.now()?)?;
    }
    if more {
        context.hint("there are more; use a larger --limit to see them")?;
    }
    Ok(())
}

fn print_table(context: &Context, batches: &[Batch], now: Timestamp) -> Result<(), Failure> {
    if context.quiet {
        return Ok(());
    }
    let mut table = Table::new(&[
        ("NAME", Align::Left),
        ("JOBS", Align::Right),
        ("DONE", Align::Right),
        ("DEAD", Align::Right),
        ("CANCELLED", Align::Right),
        ("RUNNING", Align::Right),
        ("CREATED", Align::Left),
        ("FINISHED", Align::Left),
    ])
    .with_optional_columns(&["CREATED"]);
    for batch in batches {
        table.row(vec![
            batch.name.as_str().into(),
            grouped(batch.total()).into(),
            grouped(batch.finished()).into(),
            counted(batch, StateName::Dead),
            counted(batch, StateName::Cancelled),
            counted(batch, StateName::Processing),
            ago(batch.created_at, now).into(),
            batch.finished_at.map_or_else(|| "-".to_owned(), |at| ago(at, now)).into(),
        ]);
    }
    let mut out = context.out();
    table.write(&mut out, context.width())?;
    Ok(out.flush()?)
}

/// A number in the colour of its state; zero is dimmed.
fn counted(batch: &Batch, state: StateName) -> Cell {
    let count = batch.counts.get(&state).copied().unwrap_or(0);
    let style = if count == 0 { Style::new().dimmed() } else { state_style(state) };
    Cell::styled(&grouped(count), style)
}

pub(super) fn show(context: &Context, batch: &Batch) -> Result<(), Failure> {
    if context.json {
        return context.print_json(&BatchJson::from(batch));
    }
    if context.quiet {
        return Ok(());
    }
    let now = context.store()?.now()?;
    let bold = Style::new().bold();
    let mut out = context.out();
    writeln!(out, "{bold}{}{bold:#}", batch.name)?;
    writeln!(out, "  {:<14}{} of {}", "done", grouped(batch.finished()), grouped(batch.total()))?;
    for (state, count) in &batch.counts {
        let style = state_style(*state);
        writeln!(out, "  {style}{:<14}{style:#}{}", state.name(), grouped(*count))?;
    }
    writeln!(out, "  {:<14}{}", "created", moment(batch.created_at, now))?;
    if let Some(at) = batch.finished_at {
        writeln!(out, "  {:<14}{}", "finished", moment(at, now))?;
    }
    Ok(out.flush()?)
}

/// Names the command that lists the unsuccessful jobs.
pub(super) fn hint_unsuccessful(context: &Context, batch: &Batch) -> Result<(), Failure> {
    if batch.unsuccessful() == 0 {
        return Ok(());
    }
    context.hint(&format!(
        "`queuectl list --batch {} --state dead,cancelled` shows the unsuccessful jobs",
        batch.name
    ))
}
