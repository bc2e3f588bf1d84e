//! `queuectl hook deliveries`

use anstyle::AnsiColor;

use crate::context::Context;
use crate::failure::Failure;
use crate::render::table::{Cell, Table};
use domain::values::clock::Clock;
use ops::hook::{deliveries, parse_name};
use ops::json::DeliveriesJson;
use store::{HookDeliveries, TryResult, WaitingDelivery};

/// List the events that wait for a hook, and how the last tries ended
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  queuectl hook deliveries notify-dead
  queuectl hook deliveries notify-dead --json | jq -r '.waiting[].id'")]
pub(super) struct Args {
    /// The hook's name
    #[arg(value_name = "NAME")]
    name: String,
    /// At most this many waiting events
    #[arg(short = 'n', long, value_name = "N", default_value_t = 100)]
    limit: usize,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<(), Failure> {
    let store = context.store()?;
    let found = deliveries(store, &parse_name(&args.name)?, args.limit)?;
    let clock = &context.clock(store.now()?);
    if found == HookDeliveries::default() && !context.json {
        return context.hint("no event waits, and no worker has tried to deliver one");
    }
    context.print(&DeliveriesJson::from(&found), |out| {
        let (mut waiting, mut results) = (waiting(&found.waiting, clock), results(&found.results, clock));
        if found.waiting.is_empty() {
            return results.write(out, context.width());
        }
        waiting.write(out, context.width())?;
        results.write_section(out, context.width())
    })
}

fn waiting(waiting: &[WaitingDelivery], clock: &Clock) -> Table {
    let mut table = Table::new(&["WAITING", "SINCE", "TRIES", "NEXT TRY"]).with_numbers(&["TRIES"]);
    for delivery in waiting {
        let next = if delivery.is_sending { "now".to_owned() } else { clock.moment(delivery.due_at) };
        table.row(vec![
            delivery.name.as_str().into(),
            clock.ago(delivery.created_at).into(),
            delivery.tries.to_string().into(),
            next.into(),
        ]);
    }
    table
}

fn results(results: &[TryResult], clock: &Clock) -> Table {
    let mut table = Table::new(&["TRIED", "WHEN", "RESULT"]);
    for tried in results {
        let result = tried.error.as_ref().map_or_else(
            || Cell::styled("delivered", AnsiColor::Green.on_default()),
            |error| Cell::styled(error, AnsiColor::Red.on_default()),
        );
        table.row(vec![tried.delivery.as_str().into(), clock.ago(tried.at).into(), result]);
    }
    table
}
