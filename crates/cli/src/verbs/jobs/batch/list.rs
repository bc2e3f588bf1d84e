//! `queuectl batch list` and `queuectl batch show`

use std::io::{self, Write};

use anstyle::Style;

use crate::context::Context;
use crate::failure::Failure;
use crate::render::table::{Cell, Table, chosen, counted};
use crate::render::text::{grouped, state_style};
use domain::job::life::StateName;
use domain::values::clock::Clock;
use ops::jobs::batch::eta_ms;
use ops::json::{BatchJson, BatchRecordJson};
use store::Batch;

pub(super) fn list(context: &Context, limit: usize) -> Result<(), Failure> {
    let store = context.store()?;
    // Ask for one more than is shown, to know whether there are more.
    let mut batches = store.batches(limit.saturating_add(1))?;
    let more = batches.len() > limit;
    batches.truncate(limit);
    let clock = &context.clock(store.now()?);
    let is_terminal = context.stdout_is_terminal;
    if batches.is_empty() && more {
        context.print(&[(); 0], |out| table(&[], clock, is_terminal).write(out, context.width()))?;
    } else {
        let if_empty = "no batches; `queuectl enqueue --batch NAME` creates one";
        context.print_list::<BatchJson<'_>, _>(&batches, if_empty, |batches| {
            table(batches, clock, is_terminal)
        })?;
    }
    if more {
        context.hint("there are more; use a larger --limit to see them")?;
    }
    Ok(())
}

/// The states with a column of their own.
const STATES: [(&str, StateName); 5] = [
    ("DEAD", StateName::Dead),
    ("CANCELLED", StateName::Cancelled),
    ("FAILED", StateName::Failed),
    ("RUNNING", StateName::Processing),
    ("PENDING", StateName::Pending),
];

/// On a terminal, states that no batch has are left out.
fn table(batches: &[Batch], clock: &Clock, is_terminal: bool) -> Table {
    let is_shown = |state| !is_terminal || batches.iter().any(|batch| batch.counts.contains_key(&state));
    let shown = STATES.map(|(_, state)| is_shown(state));
    let heads = chosen(STATES.map(|(head, _)| head), shown);
    let columns = [&["NAME", "JOBS", "DONE"], &heads[..], &["CREATED", "FINISHED"]].concat();
    let mut table = Table::new(&columns)
        .with_numbers(&[&["JOBS", "DONE"], &heads[..]].concat())
        .with_optional_columns(&["CREATED", "CANCELLED"])
        .with_whole_columns(&["NAME"]);
    for batch in batches {
        let mut row: Vec<Cell> =
            vec![batch.name.as_str().into(), grouped(batch.total()).into(), grouped(batch.finished()).into()];
        row.extend(chosen(STATES.map(|(_, state)| counted(&batch.counts, state)), shown));
        row.push(clock.ago(batch.created_at).into());
        row.push(batch.finished_at.map_or_else(|| "-".to_owned(), |at| clock.ago(at)).into());
        table.row(row);
    }
    table
}

pub(super) fn show(context: &Context, batch: &Batch) -> Result<(), Failure> {
    let store = context.store()?;
    let clock = &context.clock(store.now()?);
    let eta_ms = if context.json { eta_ms(store, batch)? } else { None };
    context.print(&BatchRecordJson { batch: batch.into(), eta_ms }, |out| write_facts(out, batch, clock))
}

fn write_facts(out: &mut dyn Write, batch: &Batch, clock: &Clock) -> io::Result<()> {
    let bold = Style::new().bold();
    writeln!(out, "{bold}{}{bold:#}", batch.name)?;
    writeln!(out, "  {:<14}{} of {}", "done", grouped(batch.finished()), grouped(batch.total()))?;
    for (state, count) in &batch.counts {
        let style = state_style(*state);
        writeln!(out, "  {style}{:<14}{style:#}{}", state.name(), grouped(*count))?;
    }
    writeln!(out, "  {:<14}{}", "created", clock.moment(batch.created_at))?;
    if let Some(at) = batch.finished_at {
        writeln!(out, "  {:<14}{}", "finished", clock.moment(at))?;
    }
    Ok(())
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
