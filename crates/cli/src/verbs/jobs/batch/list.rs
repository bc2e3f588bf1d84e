//! `queuectl batch list` and `queuectl batch show`

use std::io::{self, Write};

use anstyle::Style;

use crate::context::Context;
use crate::failure::Failure;
use crate::render::table::{Table, counted};
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
    if batches.is_empty() && more {
        context.print(&[(); 0], |out| table(&[], clock).write(out, context.width()))?;
    } else {
        let if_empty = "no batches; `queuectl enqueue --batch NAME` creates one";
        context.print_list::<BatchJson<'_>, _>(&batches, if_empty, |batches| table(batches, clock))?;
    }
    if more {
        context.hint("there are more; use a larger --limit to see them")?;
    }
    Ok(())
}

fn table(batches: &[Batch], clock: &Clock) -> Table {
    const COUNTS: [&str; 7] = ["JOBS", "DONE", "DEAD", "CANCELLED", "FAILED", "RUNNING", "PENDING"];
    let columns = [&["NAME"][..], &COUNTS, &["CREATED", "FINISHED"]].concat();
    let mut table =
        Table::new(&columns).with_numbers(&COUNTS).with_optional_columns(&["CREATED", "CANCELLED"]);
    for batch in batches {
        table.row(vec![
            batch.name.as_str().into(),
            grouped(batch.total()).into(),
            grouped(batch.finished()).into(),
            counted(&batch.counts, StateName::Dead),
            counted(&batch.counts, StateName::Cancelled),
            counted(&batch.counts, StateName::Failed),
            counted(&batch.counts, StateName::Processing),
            counted(&batch.counts, StateName::Pending),
            clock.ago(batch.created_at).into(),
            batch.finished_at.map_or_else(|| "-".to_owned(), |at| clock.ago(at)).into(),
        ]);
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
