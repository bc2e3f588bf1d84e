//! `queuectl list`

use std::process::ExitCode;

use crate::context::Context;
use crate::failure::Failure;
use crate::flags::selection::{FilterArgs, hint_at_unknown, resolve_id};
use crate::render::shape;
use crate::render::shape::ShapeArgs;
use ops::jobs::list::Listing;
use store::{JobFilter, StoreError};

/// Show jobs, the newest first
///
/// States are pending, processing, completed, failed, dead and cancelled. There are also scheduled (pending, its time
/// not yet come; the soonest first), blocked (pending, waits for another job) and ready (could run now; in the order in
/// which they will run). With several states the newest come first.
///
/// The id of the last job of a page is where --after goes on with the next. In the order of enqueuing that stays right
/// whatever happens to jobs meanwhile; among ready and scheduled ones it means the place that the job has now.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  queuectl list
  queuectl list --state failed --queue mail
  queuectl list --columns id,state,exit_code,error --sort -updated
  queuectl list --format csv --limit 1000 > jobs.csv
  queuectl list --json --limit 1000 | jq -r '.[].id'")]
pub(crate) struct Args {
    #[command(flatten)]
    filter: FilterArgs,
    #[command(flatten)]
    page: PageArgs,
}

/// Which part of a long list, and what of it.
#[derive(Debug, clap::Args)]
pub(crate) struct PageArgs {
    /// Show at most this many
    #[arg(long, value_name = "N", default_value_t = 100, allow_negative_numbers = true)]
    limit: usize,
    /// Go on behind this job, the last one of the page before
    #[arg(long, value_name = "ID")]
    after: Option<String>,
    #[command(flatten)]
    shape: ShapeArgs,
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<ExitCode, Failure> {
    let filter = args.filter.filter(context)?;
    show_page(context, &filter, &args.page, nothing(&filter))?;
    hint_at_unknown(context, &filter)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints one page of the jobs that the filter lets through, or says that there are none.
pub(crate) fn show_page(
    context: &Context,
    filter: &JobFilter,
    args: &PageArgs,
    nothing: Option<&str>,
) -> Result<(), Failure> {
    args.shape.check(context)?;
    let store = context.store()?;
    let mut jobs = match args.shape.sort {
        None => in_order(context, filter, args)?,
        Some(_) if args.after.is_some() => {
            return Err(Failure::usage("--after goes on with the usual order only, not with --sort")
                .with_hint("raise --limit, which has no maximum"));
        }
        Some(sort) => Listing::sorted(store, filter, sort, args.limit)?,
    };
    if let (true, true, Some(nothing)) = (jobs.is_empty(), args.shape.is_table(context), nothing) {
        context.hint(nothing)?;
    }
    shape::print(context, &args.shape, &mut jobs, store.now()?)?;
    match (jobs.rest(), args.shape.sort) {
        ((true, Some(last)), None) => context.hint(&format!("there are more; go on with --after {last}")),
        ((true, _), Some(_)) => context.hint("there are more; raise --limit to see them"),
        ((true, None), None) | ((false, _), _) => Ok(()),
    }
}

/// In the order that the store keeps them in.
fn in_order<'a>(
    context: &'a Context,
    filter: &'a JobFilter,
    args: &PageArgs,
) -> Result<Listing<'a>, Failure> {
    let after = args.after.as_deref().map(|id| resolve_id(context, id)).transpose()?;
    match Listing::in_order(context.store()?, filter, after, args.limit) {
        Err(gone @ StoreError::NoSuchJob(_)) => Err(Failure::from(gone)
            .with_hint("if it was removed since, go on behind the one that was listed before it")),
        listed => Ok(listed?),
    }
}

/// What to say when there is nothing to show; of a queue or a batch more is said elsewhere.
fn nothing(filter: &JobFilter) -> Option<&'static str> {
    if *filter == JobFilter::default() {
        return Some("there are no jobs; try `queuectl enqueue -- echo hi`");
    }
    (filter.queue.is_none() && filter.batch.is_none()).then_some("there are no such jobs")
}
