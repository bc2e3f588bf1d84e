//! `queuectl dlq`

use sys::program::ExitCode;

use super::change::{ChangeArgs, Wording, change, code_of, find, find_each};
use super::retry::RETRY;
use crate::context::Context;
use crate::failure::Failure;
use crate::flags::handle::{NamedJobs, resolve_id_to_show, resolve_ids};
use crate::flags::selection::{Selection, StatelessFilterArgs, hint_unknown_name};
use crate::render::list_format::Listed;
use crate::render::table::{Table, chosen};
use crate::render::text::grouped;
use crate::verbs::inspect::list::{PageArgs, show_page};
use crate::verbs::inspect::show;
use domain::job::life::StateName;
use domain::values::clock::Clock;
use domain::values::name::QueueName;
use ops::jobs::change::{Verb, check_dead};
use ops::jobs::dlq::{CauseGroup, group_by_cause};
use store::{JobFilter, Phase};

/// List, retry and purge dead jobs (the dead-letter queue)
///
/// A job is dead when it has used up its retries. Dead jobs are kept until you retry or purge them, unless the setting
/// retain_dead limits their age.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  queuectl dlq list --group
  queuectl dlq retry --cause 4d67763a
  queuectl dlq retry --all --yes
  queuectl dlq purge job1 job2 --yes")]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: DlqVerb,
}

#[derive(Debug, clap::Subcommand)]
enum DlqVerb {
    /// List dead jobs and their errors, newest first
    #[command(after_help = "Examples:
  queuectl dlq list
  queuectl dlq list --queue mail --older-than 1d
  queuectl dlq list --group
  queuectl dlq list --cause 4d67763a")]
    List(ListArgs),
    /// Show one dead job and its history
    #[command(after_help = "Example:\n  queuectl dlq show job1")]
    Show {
        /// The job's number or id, or a unique part of its id
        #[arg(value_name = "ID")]
        id: String,
    },
    /// Run dead jobs again, with their full number of retries
    ///
    /// Running commands again cannot be undone, so a selection of more than one job asks first, or needs --yes in a script.
    /// Jobs that are named one by one are retried without a question.
    #[command(after_help = "Examples:
  queuectl dlq retry job1
  queuectl dlq retry --all --yes
  queuectl dlq retry --cause 4d67763a
  queuectl dlq retry --queue mail --command-like '*smtp*' --dry-run")]
    Retry(DeadSelectionArgs),
    /// Delete dead jobs with their history and output
    #[command(after_help = "Examples:
  queuectl dlq purge job1
  queuectl dlq purge --all --yes
  queuectl dlq purge --cause 4d67763a --yes
  queuectl dlq purge --older-than 30d --yes")]
    Purge(DeadSelectionArgs),
}

#[derive(Debug, clap::Args)]
struct ListArgs {
    /// Group them by cause: reason, exit code or signal, and message with numbers, addresses, UUIDs and paths masked
    #[arg(long, conflicts_with_all = ["cause", "limit", "all", "after", "columns", "sort", "format"])]
    group: bool,
    #[command(flatten)]
    filter: DeadFilterArgs,
    #[command(flatten)]
    page: PageArgs,
}

/// Selects dead jobs.
#[derive(Debug, Default, PartialEq, clap::Args)]
struct DeadFilterArgs {
    #[command(flatten)]
    others: StatelessFilterArgs,
}

#[derive(Debug, clap::Args)]
struct DeadSelectionArgs {
    /// Numbers or ids of dead jobs; a unique prefix is enough for generated ids and, on a terminal, for ids that you chose
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// All dead jobs
    #[arg(long, conflicts_with = "ids")]
    all: bool,
    #[command(flatten)]
    change: ChangeArgs,
    #[command(flatten)]
    filter: DeadFilterArgs,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<ExitCode, Failure> {
    let store = context.store()?;
    match args.verb {
        DlqVerb::List(args) => list(context, &args)?,
        DlqVerb::Show { id } => {
            let id = resolve_id_to_show(context, &id)?;
            check_dead(&find(store, &id)?)?;
            show::show(context, store, &id)?;
        }
        DlqVerb::Retry(which) => return change_dead(context, which, &RETRY),
        DlqVerb::Purge(which) => return change_dead(context, which, &PURGE),
    }
    Ok(ExitCode::SUCCESS)
}

const PURGE: Wording = Wording {
    verb: Verb::Remove,
    infinitive: "purge",
    participle: "purged",
    is_final: true,
    sentence: |changed| format!("Job {} purged", changed.job.handle()),
};

fn change_dead(context: &Context, which: DeadSelectionArgs, wording: &Wording) -> Result<ExitCode, Failure> {
    let DeadSelectionArgs { ids, all, change: args, filter } = which;
    if ids.is_empty() && !all && filter == DeadFilterArgs::default() {
        return Err(Failure::usage("no jobs given").with_hint(
            "give ids, or select with --all, --cause, --queue, --tag, --batch, --older-than or --command-like",
        ));
    }
    if ids.is_empty() {
        return change(context, Selection::Matching(Box::new(filter.filter(context)?)), &args, wording)
            .map(code_of);
    }
    if filter != DeadFilterArgs::default() {
        return Err(Failure::usage("ids cannot be combined with a selection")
            .with_hint("give either ids or flags such as --queue"));
    }
    let named = resolve_ids(context, &ids)?;
    let (dead, worst) = find_each(context, &named.ids, check_dead)?;
    let ids = dead.into_iter().map(|job| job.id).collect();
    let dead = NamedJobs { ids, worst: worst.max(named.worst) };
    change(context, Selection::Named(dead), &args, wording).map(code_of)
}

impl DeadFilterArgs {
    fn filter(&self, context: &Context) -> Result<JobFilter, Failure> {
        Ok(JobFilter { phases: vec![Phase::State(StateName::Dead)], ..self.others.filter(context)? })
    }
}

fn list(context: &Context, args: &ListArgs) -> Result<(), Failure> {
    let filter = args.filter.filter(context)?;
    let is_selection = args.filter != DeadFilterArgs::default();
    let nothing = if is_selection { "no dead jobs matched" } else { "no dead jobs" };
    if args.group {
        list_groups(context, &filter, nothing)?;
    } else {
        show_page(context, &filter, &args.page, Listed::Dead, Some(nothing))?;
    }
    hint_unknown_name(context, &filter).map(|_| ())
}

fn list_groups(context: &Context, filter: &JobFilter, nothing: &str) -> Result<(), Failure> {
    let store = context.store()?;
    let (groups, clock) = (group_by_cause(store, filter)?, &context.clock(store.now()?));
    let is_terminal = context.stdout_is_terminal;
    context
        .print_list::<&CauseGroup, _>(&groups, nothing, |groups| group_table(groups, clock, is_terminal))?;
    if groups.is_empty() {
        return Ok(());
    }
    context.note("`queuectl dlq retry --cause CAUSE` retries one group")
}

/// On a terminal, columns that say the same of every group are left out.
fn group_table(groups: &[CauseGroup], clock: &Clock, is_terminal: bool) -> Table {
    let has_queues =
        !is_terminal || groups.iter().any(|group| queues(group) != QueueName::default_queue().as_str());
    let has_reasons = !is_terminal || groups.iter().any(|group| group.reason != groups[0].reason);
    let shown = [true, true, has_reasons, has_queues, true, true, true];
    let columns = ["CAUSE", "JOBS", "REASON", "QUEUES", "LAST", "EXAMPLE", "MESSAGE"];
    let columns: Vec<&str> = chosen(columns, shown);
    let mut table = Table::new(&columns)
        .with_numbers(&["JOBS", "EXAMPLE"])
        .with_optional_columns(&["QUEUES", "REASON", "LAST"])
        .with_whole_columns(&["CAUSE"]);
    for group in groups {
        table.row(chosen(
            [
                group.id.to_string().into(),
                grouped(group.count).into(),
                group.reason.replace('_', " ").into(),
                queues(group).into(),
                clock.ago(group.last_at).into(),
                group.number.to_string().into(),
                group.message.as_str().into(),
            ],
            shown,
        ));
    }
    table
}

fn queues(group: &CauseGroup) -> String {
    group.queues.iter().map(QueueName::as_str).collect::<Vec<_>>().join(",")
}
