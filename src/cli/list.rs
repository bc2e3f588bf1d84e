//! `queuectl list`

use std::io::Write;
use std::process::ExitCode;

use super::context::Context;
use super::failure::Failure;
use super::selection::{FilterArgs, hint_at_unknown, resolve_id};
use super::table::{Align, Cell, Table};
use super::text::{state_style, when};
use crate::domain::job::Job;
use crate::domain::timestamp::Timestamp;
use crate::ops::json::JobJson;
use crate::store::{JobFilter, Page, Store};

/// Show jobs, the newest first
///
/// States are pending, processing, completed, failed, dead and cancelled. There are also scheduled (pending, its time
/// not yet come; the soonest first), blocked (pending, waits for another job) and ready (could run now; in the order in
/// which they will run).
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  queuectl list
  queuectl list --state failed --queue mail
  queuectl list --json --limit 1000 | jq -r '.[].id'")]
pub(super) struct Args {
    #[command(flatten)]
    filter: FilterArgs,
    #[command(flatten)]
    page: PageArgs,
}

/// Which part of a long list.
#[derive(Debug, clap::Args)]
pub(super) struct PageArgs {
    /// Show at most this many
    #[arg(long, value_name = "N", default_value_t = 100, allow_negative_numbers = true)]
    limit: usize,
    /// Go on behind this job, the last one of the page before
    #[arg(long, value_name = "ID")]
    after: Option<String>,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<ExitCode, Failure> {
    let filter = args.filter.filter(context)?;
    show_page(context, context.store()?, &filter, &args.page, nothing(&filter))?;
    hint_at_unknown(context, &filter)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints one page of the jobs that the filter lets through, or says that there are none.
pub(super) fn show_page(
    context: &Context,
    store: &dyn Store,
    filter: &JobFilter,
    args: &PageArgs,
    nothing: Option<&str>,
) -> Result<(), Failure> {
    let after = args.after.as_deref().map(|id| resolve_id(context, id)).transpose()?;
    // One more than is shown tells whether there is more.
    let page = Page { limit: args.limit.saturating_add(1), after };
    let mut jobs = store.list(filter, &page)?;
    let more = jobs.len() > args.limit;
    jobs.truncate(args.limit);
    if let (true, false, Some(nothing)) = (jobs.is_empty() && !more, context.json, nothing) {
        context.hint(nothing)?;
    }
    print(context, &jobs, store.now()?)?;
    if let (true, Some(last)) = (more, jobs.last()) {
        context.hint(&format!("there are more; go on with --after {}", last.id))?;
    }
    Ok(())
}

fn print(context: &Context, jobs: &[Job], now: Timestamp) -> Result<(), Failure> {
    if context.json {
        return context.print_json(&jobs.iter().map(JobJson::from).collect::<Vec<_>>());
    }
    if context.quiet {
        return Ok(());
    }
    print_table(context, jobs, now)
}

pub(super) fn print_table(context: &Context, jobs: &[Job], now: Timestamp) -> Result<(), Failure> {
    if jobs.is_empty() {
        return Ok(());
    }
    let mut table = Table::new(&[
        ("ID", Align::Left),
        ("STATE", Align::Left),
        ("QUEUE", Align::Left),
        ("PRIO", Align::Right),
        ("TRIES", Align::Right),
        ("WHEN", Align::Left),
        ("COMMAND", Align::Left),
    ]);
    for job in jobs {
        let state = job.life.state.name();
        table.row(vec![
            job.id.as_str().into(),
            Cell::styled(state.name(), state_style(state)),
            job.queue.as_str().into(),
            job.priority.to_string().into(),
            format!("{}/{}", job.life.failures, u64::from(job.life.max_retries) + 1).into(),
            when(job, now).into(),
            job.command.as_str().into(),
        ]);
    }
    let mut out = context.out();
    table.write(&mut out, context.width())?;
    Ok(out.flush()?)
}

/// What to say when there is nothing to show; of a queue more is said below.
fn nothing(filter: &JobFilter) -> Option<&'static str> {
    if *filter == JobFilter::default() {
        return Some("there are no jobs; try `queuectl enqueue -- echo hi`");
    }
    filter.queue.is_none().then_some("there are no such jobs")
}
