//! `queuectl events`

mod entry;
mod job_events;

use std::collections::HashMap;
use std::io::Write;
use std::time::Duration;

use super::logs::sleep_while_read;
use crate::context::{Context, write_json_line};
use crate::failure::Failure;
use crate::flags::handle::resolve_id_to_show;
use crate::flags::whole_number::whole_number;
use crate::render::table::truncate;
use domain::values::name::JobId;
use domain::values::span::parse_span;
use entry::{Columns, Entry};
use job_events::JobEvents;
use ops::events::{after, latest};
use store::Store;

/// How many events are shown by default.
const DEFAULT_LIMIT: usize = 100;
/// How often `--follow` polls.
const EVENT_POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Show who did what, and when
///
/// Shows the latest events, oldest first: cancelled, retried, edited and removed jobs, pauses, changed settings, started
/// and stopped workers, pruning. Events are kept for as long as the setting retain_events says. With --json, each line is an object
/// {number, at, event, by, kind, job, detail}.
///
/// With --jobs, also shows jobs that were enqueued (those that still exist), and attempts that started and ended in this
/// home, from worker.log. The end of an attempt has the new state of its job; in JSON these have attempt and state, and no
/// number.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  queuectl events
  queuectl events -f --jobs
  queuectl events --since 1h --json
  queuectl events --job job1")]
pub(crate) struct Args {
    /// Keep printing new events
    #[arg(short, long)]
    follow: bool,
    /// Also show what happens to jobs by itself: enqueued, started, ended
    #[arg(long)]
    jobs: bool,
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
    let home = context.location()?.home;
    let jobs = args.jobs.then(|| JobEvents::open(context, store, &home, job.as_ref())).transpose()?;
    let recorded = latest(store, job.as_ref(), since, limit)?;
    let last = recorded.last().map_or(newest, |last| last.number);
    let mut entries: Vec<Entry> = recorded.into_iter().map(Entry::from).collect();
    if let Some(jobs) = &jobs {
        entries.extend(jobs.latest(since, limit)?);
        entries.sort_by_key(|entry| entry.event.at);
        entries.drain(..entries.len().saturating_sub(limit));
    }
    let mut printer =
        EventPrinter { context, columns: Columns::new(), has_heading: false, handles: HashMap::new() };
    printer.print(&mut entries)?;
    if args.follow {
        follow(store, job.as_ref(), jobs, printer, last)?;
    } else if entries.is_empty() && !context.json {
        context.hint("no events")?;
    }
    Ok(())
}

/// Shows new events until the reader closes the output.
fn follow(
    store: &dyn Store,
    job: Option<&JobId>,
    mut jobs: Option<JobEvents<'_>>,
    mut printer: EventPrinter<'_>,
    mut last: u64,
) -> Result<(), Failure> {
    loop {
        let recorded = after(store, job, last)?;
        last = recorded.last().map_or(last, |newest| newest.number);
        let mut entries: Vec<Entry> = recorded.into_iter().map(Entry::from).collect();
        if let Some(jobs) = &mut jobs {
            entries.extend(jobs.poll()?);
            entries.sort_by_key(|entry| entry.event.at);
        }
        printer.print(&mut entries)?;
        if entries.is_empty() && !sleep_while_read(EVENT_POLL_INTERVAL)? {
            return Ok(());
        }
    }
}

struct EventPrinter<'a> {
    context: &'a Context,
    columns: Columns,
    has_heading: bool,
    /// The handles of jobs, by which people know them.
    handles: HashMap<JobId, String>,
}

impl EventPrinter<'_> {
    fn print(&mut self, entries: &mut [Entry]) -> Result<(), Failure> {
        let context = self.context;
        if context.quiet || entries.is_empty() {
            return Ok(());
        }
        let mut out = context.out();
        if context.json {
            entries.iter().try_for_each(|entry| write_json_line(&mut out, entry))?;
            return Ok(out.flush()?);
        }
        let clock = context.clock(context.store()?.now()?);
        if context.stdout_is_terminal {
            for entry in entries.iter_mut() {
                self.use_handle(entry)?;
                entry.localize_retry(&clock);
            }
        }
        self.columns.grow(entries, &clock);
        if context.stdout_is_terminal && !std::mem::replace(&mut self.has_heading, true) {
            writeln!(out, "{}", truncate(&self.columns.heading(), context.width()))?;
        }
        for entry in entries {
            self.columns
                .lines(entry, &clock, context.width())
                .iter()
                .try_for_each(|line| writeln!(out, "{line}"))?;
        }
        Ok(out.flush()?)
    }

    fn use_handle(&mut self, entry: &mut Entry) -> Result<(), Failure> {
        let Some(id) = entry.event.job.clone().filter(JobId::is_generated) else {
            return Ok(());
        };
        if !self.handles.contains_key(&id) {
            // A removed job keeps its id.
            let job = self.context.store()?.find(&id)?;
            self.handles.insert(id.clone(), job.map_or_else(|| id.to_string(), |job| job.handle()));
        }
        entry.name_job(&self.handles[&id]);
        Ok(())
    }
}
