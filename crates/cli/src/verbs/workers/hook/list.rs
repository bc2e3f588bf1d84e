//! `queuectl hook list`

use anstyle::{AnsiColor, Style};

use super::show::{target, when};
use crate::context::Context;
use crate::failure::Failure;
use crate::render::table::{Cell, Table};
use crate::render::text::grouped;
use domain::hook::Target;
use store::Hook;

/// List all hooks with their events, targets and pending deliveries
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  queuectl hook list\n  queuectl hook list --json | jq '.[].pending'")]
pub(super) struct Args {}

pub(super) fn run(_: &Args, context: &Context) -> Result<(), Failure> {
    let hooks = context.store()?.hooks()?;
    let if_empty = "no hooks; `queuectl hook add --help` shows how to add one";
    context.print_list::<&Hook, _>(&hooks, if_empty, table)
}

fn table(hooks: &[Hook]) -> Table {
    let mut table = Table::new(&["HOOK", "ON", "PENDING", "SECRET", "TARGET"]).with_numbers(&["PENDING"]);
    for hook in hooks {
        let red = AnsiColor::Red.on_default();
        let style = if hook.failing_since.is_some() { red } else { Style::new() };
        table.row(vec![
            Cell::styled(hook.name.as_str(), style),
            when(hook).into(),
            grouped(hook.pending).into(),
            if matches!(hook.target, Target::Url { secret: Some(_), .. }) { "yes" } else { "" }.into(),
            target(hook).into(),
        ]);
    }
    table
}
