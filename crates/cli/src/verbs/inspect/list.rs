//! `queuectl list`

use crate::context::Context;
use crate::failure::Failure;
use crate::flags::handle::resolve_id;
use crate::flags::selection::{JobFilterArgs, hint_dead_not_failed, hint_unknown_name};
use crate::flags::whole_number::whole_number;
use crate::render::list_format;
use crate::render::list_format::{ListFormatArgs, Listed};
use crate::render::text::grouped;
use ops::jobs::list::{Listing, in_order_of};
use ops::jobs::overview;
use store::{JobFilter, StoreError};

/// List jobs
///
/// On a terminal, running jobs come first, then those that wait for a retry, then dead and pending ones, then the
/// ten that finished last; --limit and --all show more. In a pipe, with --json, and with a selection other than --queue
/// or with --after, the newest come first.
///
/// The states are pending, processing, completed, failed, dead and cancelled. You can also select scheduled jobs (pending,
/// waiting for their start time; soonest first), blocked jobs (pending, waiting for another job) and ready jobs (can run
/// now; in the order in which they will run). With several states, the newest jobs come first.
///
/// To get the next page, pass the id of the last job of this page to --after. In the order of enqueuing, pages stay
/// consistent while jobs change; for ready and scheduled jobs, the next page starts at the job's current position.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  queuectl list
  queuectl list --state failed --queue mail
  queuectl list --columns id,state,exit_code,error --sort last-failed
  queuectl list --format csv --limit 1000 > jobs.csv
  queuectl list --json --limit 1000 | jq -r '.[].id'")]
pub(crate) struct Args {
    #[command(flatten)]
    page: PageArgs,
    #[command(flatten)]
    filter: JobFilterArgs,
}

/// Which part of a long list to show, and how.
#[derive(Debug, clap::Args)]
pub(crate) struct PageArgs {
    /// Show at most this many jobs [default: 100]
    #[arg(short = 'n', long, value_name = "N", allow_negative_numbers = true,
          value_parser = whole_number::<usize>(0..=usize::MAX as i128))]
    limit: Option<usize>,
    /// Show all jobs, however many there are
    #[arg(long, conflicts_with = "limit")]
    all: bool,
    /// Start after this job: the last one of the previous page
    #[arg(long, value_name = "ID")]
    after: Option<String>,
    #[command(flatten)]
    shape: ListFormatArgs,
}

impl PageArgs {
    fn limit(&self) -> usize {
        if self.all { usize::MAX } else { self.limit.unwrap_or(DEFAULT_LIMIT) }
    }
}

const DEFAULT_LIMIT: usize = 100;

/// How many finished jobs a person sees who asks for nothing else.
const LAST_FINISHED: usize = 10;

pub(crate) fn run(args: &Args, context: &Context) -> Result<(), Failure> {
    let filter = args.filter.filter(context)?;
    let PageArgs { limit, all, after, shape } = &args.page;
    let is_for_people = context.stdout_is_terminal && shape.is_table(context);
    if is_for_people && after.is_none() && shape.sort.is_none() && overview::can_group(&filter) {
        if limit.is_none() && !all && filter.queue.is_none() {
            show_overview(context, &filter, shape)?;
        } else {
            show_groups(context, &filter, &args.page)?;
        }
    } else {
        show_page(context, &filter, &args.page, Listed::Any, nothing(&filter))?;
    }
    hint_unknown_name(context, &filter)?;
    context.note_home()
}

/// Prints the jobs that people ask about first.
fn show_overview(context: &Context, filter: &JobFilter, shape: &ListFormatArgs) -> Result<(), Failure> {
    shape.check(context)?;
    let store = context.store()?;
    let overview = overview::overview(store, filter, LAST_FINISHED)?;
    if let Some(nothing) = nothing(filter).filter(|_| overview.jobs.is_empty()) {
        context.hint(nothing)?;
    }
    let mut jobs = overview.jobs.into_iter().map(Ok);
    list_format::print(context, shape, &mut jobs, Listed::Any, &context.clock(store.now()?))?;
    let hidden: Vec<String> = overview
        .hidden
        .iter()
        .map(|(state, count)| format!("{} {}", grouped(*count), state.name()))
        .collect();
    if hidden.is_empty() {
        return Ok(());
    }
    context.hint(&format!("not shown: {}; use --state or --all", hidden.join(", ")))
}

fn show_groups(context: &Context, filter: &JobFilter, args: &PageArgs) -> Result<(), Failure> {
    args.shape.check(context)?;
    let store = context.store()?;
    let mut jobs = overview::in_groups(store, filter, args.limit())?;
    if let Some(nothing) = nothing(filter).filter(|_| jobs.is_empty()) {
        context.hint(nothing)?;
    }
    list_format::print(context, &args.shape, &mut jobs, Listed::Any, &context.clock(store.now()?))?;
    if let (true, _) = jobs.rest() {
        context.hint("there are more; use a larger --limit, --state or --all")?;
    }
    Ok(())
}

/// Prints one page of the jobs that match the filter, or a hint that there are none.
pub(crate) fn show_page(
    context: &Context,
    filter: &JobFilter,
    args: &PageArgs,
    listed: Listed,
    nothing: Option<&str>,
) -> Result<(), Failure> {
    args.shape.check(context)?;
    let jobs = match args.shape.sort {
        None => in_order(context, filter, args)?,
        Some(_) if args.after.is_some() => {
            return Err(Failure::usage("--after cannot be combined with --sort")
                .with_hint("use a larger --limit; it has no maximum"));
        }
        Some(order) => {
            let filter = in_order_of(filter, order).map_err(|error| Failure::usage(error.to_string()))?;
            Listing::sorted(context.store()?, filter, order, args.limit())?
        }
    };
    if jobs.is_empty() && args.shape.is_table(context) && !hint_dead_not_failed(context, filter)? {
        nothing.map_or(Ok(()), |nothing| context.hint(nothing))?;
    }
    print_page(context, args, jobs, listed)
}

fn print_page(
    context: &Context,
    args: &PageArgs,
    mut jobs: Listing<'_>,
    listed: Listed,
) -> Result<(), Failure> {
    args.shape.check(context)?;
    list_format::print(context, &args.shape, &mut jobs, listed, &context.clock(context.store()?.now()?))?;
    match (jobs.rest(), args.shape.sort) {
        ((true, Some(last)), None) => {
            context.hint(&format!("there are more; continue with --after {last}, or raise --limit"))
        }
        ((true, _), Some(_)) => context.hint("there are more; use a larger --limit to see them"),
        ((true, None), None) | ((false, _), _) => Ok(()),
    }
}

/// A page in the store's own order.
fn in_order<'a>(context: &'a Context, filter: &JobFilter, args: &PageArgs) -> Result<Listing<'a>, Failure> {
    let after = args.after.as_deref().map(|id| resolve_id(context, id)).transpose()?;
    match Listing::in_order(context.store()?, filter, after, args.limit()) {
        Err(gone @ StoreError::NoSuchJob(_)) => Err(Failure::from(gone)
            .with_hint("if it was removed meanwhile, use the id of the job listed before it")),
        listed => Ok(listed?),
    }
}

/// The hint for an empty list. For a queue or batch, [`hint_unknown_name`] has a better one.
fn nothing(filter: &JobFilter) -> Option<&'static str> {
    if *filter == JobFilter::default() {
        return Some("the queue is empty; try `queuectl enqueue -- echo hi`");
    }
    (filter.queue.is_none() && filter.batch.is_none()).then_some("no jobs matched")
}
