//! `queuectl dlq`

use sys::program::ExitCode;

use super::change::{ChangeArgs, Wording, change, code_of, find, find_each};
use super::retry::RETRY;
use crate::context::Context;
use crate::failure::Failure;
use crate::flags::handle::{NamedJobs, resolve_id_to_show, resolve_ids};
use crate::flags::selection::{Selection, StatelessFilterArgs};
use crate::render::table::Table;
use crate::render::text::grouped;
use crate::verbs::inspect::list::{PageArgs, show_page};
use crate::verbs::inspect::show;
use domain::job::life::StateName;
use domain::values::clock::Clock;
use ops::jobs::change::{Verb, check_dead};
use ops::jobs::dlq::{CauseGroup, group_by_cause};
use store::{JobFilter, Phase, Store};

/// List, retry and purge dead jobs (the dead-letter queue)
///
/// A job is dead when it has used up its retries. Dead jobs are kept until you retry or purge them, unless the setting
/// retain_dead limits their age.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  queuectl dlq list --group
  queuectl dlq retry --all --yes
  queuectl dlq purge job1 job2 --yes")]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: DlqVerb,
}

#[derive(Debug, clap::Subcommand)]
enum DlqVerb {
    /// List dead jobs, newest first
    #[command(after_help = "Examples:\n  queuectl dlq list\n  queuectl dlq list --group")]
    List {
        /// Group them by their error
        #[arg(long, conflicts_with_all = ["limit", "all", "after", "columns", "sort", "format"])]
        group: bool,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Show one dead job and its history
    #[command(after_help = "Example:\n  queuectl dlq show job1")]
    Show {
        /// The job's id, or a unique prefix of it
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
  queuectl dlq retry --queue mail --command-like '*smtp*' --dry-run")]
    Retry(DeadSelectionArgs),
    /// Delete dead jobs with their history and output
    #[command(after_help = "Examples:
  queuectl dlq purge job1
  queuectl dlq purge --all --yes
  queuectl dlq purge --older-than 30d --yes")]
    Purge(DeadSelectionArgs),
}

#[derive(Debug, clap::Args)]
struct DeadSelectionArgs {
    /// Ids of dead jobs; a unique prefix is enough for generated ids and, on a terminal, for ids that you chose
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// All dead jobs
    #[arg(long, conflicts_with = "ids")]
    all: bool,
    #[command(flatten)]
    change: ChangeArgs,
    #[command(flatten)]
    filter: StatelessFilterArgs,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<ExitCode, Failure> {
    let store = context.store()?;
    match args.verb {
        DlqVerb::List { group: true, .. } => list_groups(context, store)?,
        DlqVerb::List { group: false, page } => {
            let filter = JobFilter::in_phase(Phase::State(StateName::Dead));
            show_page(context, &filter, &page, Some("no dead jobs"))?;
        }
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
    if ids.is_empty() && !all && filter.is_empty() {
        return Err(Failure::usage("no jobs given").with_hint(
            "give ids, or select with --all, --queue, --tag, --batch, --older-than or --command-like",
        ));
    }
    if ids.is_empty() {
        let dead = vec![Phase::State(StateName::Dead)];
        let filter = JobFilter { phases: dead, ..filter.filter(context)? };
        return change(context, Selection::Matching(filter), &args, wording).map(code_of);
    }
    if !filter.is_empty() {
        return Err(Failure::usage("ids cannot be combined with a selection")
            .with_hint("give either ids or flags such as --queue"));
    }
    let named = resolve_ids(context, &ids)?;
    let (dead, worst) = find_each(context, &named.ids, check_dead)?;
    let ids = dead.into_iter().map(|job| job.id).collect();
    let dead = NamedJobs { ids, worst: worst.max(named.worst) };
    change(context, Selection::Named(dead), &args, wording).map(code_of)
}

fn list_groups(context: &Context, store: &dyn Store) -> Result<(), Failure> {
    let (groups, clock) = (group_by_cause(store)?, &context.clock(store.now()?));
    context.print_list::<&CauseGroup, _>(&groups, "no dead jobs", |groups| group_table(groups, clock))
}

fn group_table(groups: &[CauseGroup], clock: &Clock) -> Table {
    let mut table = Table::new(&["JOBS", "REASON", "LAST", "EXAMPLE", "CAUSE"]).with_numbers(&["JOBS"]);
    for group in groups {
        table.row(vec![
            grouped(group.count).into(),
            group.reason.replace('_', " ").into(),
            clock.ago(group.last_at).into(),
            group.example.as_str().into(),
            group.cause.as_str().into(),
        ]);
    }
    table
}
