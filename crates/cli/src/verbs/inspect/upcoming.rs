//! `queuectl upcoming`

use std::borrow::Cow;

use crate::context::Context;
use crate::failure::Failure;
use crate::flags::whole_number::whole_number;
use crate::render::table::{Cell, Table};
use domain::values::clock::Clock;
use ops::upcoming::{Coming, upcoming};

/// Show what happens next: retries, delayed jobs and schedules
///
/// The soonest comes first. Of each schedule, only its next run is listed. Jobs that could run now or that wait for
/// another job are not listed; `queuectl list --state ready,blocked` shows them.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  queuectl upcoming
  queuectl upcoming -n 5
  queuectl upcoming --json | jq '.[0].at'")]
pub(crate) struct Args {
    /// Show at most this many
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20, allow_negative_numbers = true,
          value_parser = whole_number::<usize>(0..=usize::MAX as i128))]
    limit: usize,
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<(), Failure> {
    let store = context.store()?;
    let (coming, more) = upcoming(store, args.limit)?;
    let clock = &context.clock(store.now()?);
    if coming.is_empty() && more {
        context.print(&[(); 0], |out| table(&[], clock).write(out, context.width()))?;
    } else {
        let if_empty = "nothing is planned: no retries, delayed jobs or schedules";
        context.print_list::<&Coming, _>(&coming, if_empty, |coming| table(coming, clock))?;
    }
    if more {
        context.hint("there are more; use a larger --limit to see them")?;
    }
    Ok(())
}

fn table(coming: &[Coming], clock: &Clock) -> Table {
    let mut table = Table::new(&["WHEN", "IN", "WHAT", "#", "JOB"])
        .with_numbers(&["IN", "#"])
        .with_whole_columns(&["WHEN", "WHAT"]);
    for one in coming {
        table.row(vec![
            clock.time(one.at).into(),
            if one.at > clock.now { clock.left(one.at) } else { "due".to_owned() }.into(),
            one.kind.name().into(),
            one.number.map_or_else(|| "-".to_owned(), |number| number.to_string()).into(),
            Cell::command(&label(one)),
        ]);
    }
    table
}

/// The name of a job, else its command; of a schedule, `NAME: command`.
fn label(coming: &Coming) -> Cow<'_, str> {
    match (&coming.schedule, &coming.name) {
        (Some(schedule), _) => format!("{schedule}: {}", coming.command).into(),
        (None, Some(name)) => name.into(),
        (None, None) => (&coming.command).into(),
    }
}
