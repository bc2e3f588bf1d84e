//! `queuectl list`

use std::io::Write;
use std::process::ExitCode;

use super::changed::parse_ids;
use super::context::Context;
use super::failure::Failure;
use super::table::{Align, Cell, Table};
use super::text::{state_style, when};
use crate::domain::job::Job;
use crate::domain::name::QueueName;
use crate::domain::nearest::nearest;
use crate::domain::timestamp::Timestamp;
use crate::ops::json::JobJson;
use crate::store::{JobFilter, Page, Phase, Store};

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
    /// Only jobs in this state
    #[arg(long, value_name = "STATE")]
    state: Option<String>,
    /// Only jobs of this queue
    #[arg(long, value_name = "QUEUE")]
    queue: Option<String>,
    /// Only jobs with this tag
    #[arg(long, value_name = "TAG")]
    tag: Option<String>,
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
    let filter = JobFilter {
        phase: args.state.as_deref().map(parse_phase).transpose()?,
        queue: args.queue.as_deref().map(parse_queue).transpose()?,
        tag: args.tag.clone(),
    };
    let store = context.store()?;
    show_page(context, store, &filter, &args.page, nothing(&filter))?;
    if let Some(queue) = &filter.queue {
        hint_at_queue(context, store, queue)?;
    }
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
    let after = args.after.as_ref().map(|id| parse_ids(std::slice::from_ref(id))).transpose()?;
    let after = after.and_then(|ids| ids.into_iter().next());
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
    if context.quiet || jobs.is_empty() {
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

fn parse_phase(typed: &str) -> Result<Phase, Failure> {
    Phase::from_name(typed).ok_or_else(|| {
        let names = Phase::ALL.map(Phase::name);
        let hint = match nearest(typed, names) {
            Some(nearest) => format!("did you mean `{nearest}`?"),
            None => format!("the states are {}", names.join(", ")),
        };
        Failure::usage(format!("there is no state `{typed}`")).with_hint(hint)
    })
}

fn parse_queue(typed: &str) -> Result<QueueName, Failure> {
    typed.parse().map_err(|error| Failure::usage(format!("invalid queue `{typed}` ({error})")))
}

/// What to say when there is nothing to show; of a queue more is said below.
fn nothing(filter: &JobFilter) -> Option<&'static str> {
    if *filter == JobFilter::default() {
        return Some("there are no jobs; try `queuectl enqueue -- echo hi`");
    }
    filter.queue.is_none().then_some("there are no such jobs")
}

/// A queue that nobody has used yet is empty, but it may also be a slip of the fingers.
fn hint_at_queue(context: &Context, store: &dyn Store, queue: &QueueName) -> Result<(), Failure> {
    let queues = store.queues()?;
    if queues.iter().any(|known| known.name == *queue) {
        return Ok(());
    }
    match nearest(queue.as_str(), queues.iter().map(|known| known.name.as_str())) {
        Some(nearest) => context.hint(&format!("there is no queue {queue}; did you mean {nearest}?")),
        None => context.hint(&format!("there is no queue {queue}")),
    }
}
