//! `queuectl events`

use std::io::Write;
use std::time::Duration;

use anstyle::Style;
use unicode_width::UnicodeWidthStr;

use super::logs::sleep_while_read;
use crate::context::{Context, write_json_line};
use crate::failure::Failure;
use crate::flags::handle::resolve_id_to_show;
use crate::flags::whole_number::whole_number;
use crate::render::text::{printable, wrap};
use domain::values::clock::Clock;
use domain::values::name::JobId;
use domain::values::span::parse_span;
use ops::events::{after, latest};
use store::{Event, Store};

/// How many events are shown by default.
const DEFAULT_LIMIT: usize = 100;
/// How often `--follow` polls.
const EVENT_POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Show who did what, and when
///
/// Shows the latest events, oldest first: cancelled, retried, edited and removed jobs, pauses, changed settings, started
/// and stopped workers, pruning. Events are kept for as long as the setting retain_events says. With --json, each line is an object
/// {at, event, by, job, detail}.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  queuectl events
  queuectl events -f
  queuectl events --since 1h --json
  queuectl events --job job1")]
pub(crate) struct Args {
    /// Keep printing new events
    #[arg(short, long)]
    follow: bool,
    /// Only events of this latest period: 90, 1h30m, 7d
    #[arg(long, value_name = "DURATION", value_parser = parse_span)]
    since: Option<Duration>,
    /// Only events of this job
    #[arg(long, value_name = "ID")]
    job: Option<String>,
    /// Show at most this many [default: 100, or all with --since]
    #[arg(short = 'n', long, value_name = "N", allow_negative_numbers = true,
          value_parser = whole_number::<usize>(0..=usize::MAX as i128))]
    limit: Option<usize>,
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<(), Failure> {
    let store = context.store()?;
    let job = args.job.as_deref().map(|id| resolve_id_to_show(context, id)).transpose()?;
    let now = store.now()?;
    let since = args.since.map(|span| now.saturating_sub(span));
    let limit = args.limit.unwrap_or(if since.is_some() { usize::MAX } else { DEFAULT_LIMIT });
    // Read before the list: an event that is recorded in between is shown by following.
    let newest = latest(store, None, None, 1)?.last().map_or(0, |last| last.number);
    let shown = latest(store, job.as_ref(), since, limit)?;
    print(context, &shown)?;
    if args.follow {
        follow(context, store, job.as_ref(), shown.last().map_or(newest, |last| last.number))?;
    } else if shown.is_empty() && !context.json {
        context.hint("no events")?;
    }
    Ok(())
}

/// Shows new events until the reader closes the output.
fn follow(context: &Context, store: &dyn Store, job: Option<&JobId>, mut last: u64) -> Result<(), Failure> {
    loop {
        let more = after(store, job, last)?;
        print(context, &more)?;
        match more.last() {
            Some(newest) => last = newest.number,
            None if sleep_while_read(EVENT_POLL_INTERVAL)? => {}
            None => return Ok(()),
        }
    }
}

fn print(context: &Context, events: &[Event]) -> Result<(), Failure> {
    if context.quiet || events.is_empty() {
        return Ok(());
    }
    let clock = context.clock(context.store()?.now()?);
    let mut out = context.out();
    for event in events {
        if context.json {
            write_json_line(&mut out, event)?;
        } else {
            lines(event, context, &clock).iter().try_for_each(|line| writeln!(out, "{line}"))?;
        }
    }
    Ok(out.flush()?)
}

/// Most names fit into this width. Lines are printed one by one, so the widest name is not known.
const WIDTH_OF_BY: usize = 10;
const WIDTH_OF_WHAT: usize = 16;
/// The length of the longest short time.
const WIDTH_OF_TIME: usize = "2026-01-31 09:30".len();

/// Details that do not fit on the line are indented below it.
const INDENT: &str = "    ";

/// `2026-01-31T09:30:00.000Z  cancel            ada         job1  detail`; on a terminal, times are short, and details
/// that do not fit are on the following lines.
fn lines(event: &Event, context: &Context, clock: &Clock) -> Vec<String> {
    let (bold, dim) = (Style::new().bold(), Style::new().dimmed());
    let at = clock.time(event.at);
    let at = if context.stdout_is_terminal { format!("{at:WIDTH_OF_TIME$}") } else { at };
    let (by, what) = (printable(&event.by), event.event.replace('_', " "));
    let what = printable(&what);
    let job = event.job.as_ref().map(JobId::as_str);
    let detail = event.detail.as_deref().map(printable);
    let about = job.into_iter().chain(detail.as_deref()).collect::<Vec<_>>().join("  ");
    let plain = format!("{at}  {what:WIDTH_OF_WHAT$}  {by:WIDTH_OF_BY$}");
    let styled = format!("{dim}{at}{dim:#}  {bold}{what:WIDTH_OF_WHAT$}{bold:#}  {by:WIDTH_OF_BY$}");
    let width = context.width();
    if about.is_empty() || plain.width() + 2 + about.width() <= width {
        return vec![format!("{styled}  {about}").trim_end().to_owned()];
    }
    let below = wrap(&about, width.saturating_sub(INDENT.len()));
    let below = below.iter().map(|line| format!("{INDENT}{line}"));
    std::iter::once(styled.trim_end().to_owned()).chain(below).collect()
}
