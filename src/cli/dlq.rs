//! `queuectl dlq`

use std::io::Write;
use std::process::ExitCode;

use super::ask::confirm;
use super::changed::{change_ids, code_of, parse_ids, tell};
use super::context::Context;
use super::failure::{Exit, Failure};
use super::list::{PageArgs, show_page};
use super::progress::Bar;
use super::show;
use super::table::{Align, Table};
use super::text::{ago, grouped, jobs};
use crate::domain::life::StateName;
use crate::domain::name::JobId;
use crate::ops::change::{Changed, Verb, change_all_dead, only_dead};
use crate::ops::dlq::group_by_cause;
use crate::ops::json::CauseJson;
use crate::ops::status::status;
use crate::store::{JobFilter, Phase, Store};
use crate::sys::user;

/// The dead-letter queue: jobs that used up their retries
///
/// They are kept until somebody retries or purges them.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  queuectl dlq list --group
  queuectl dlq retry --all
  queuectl dlq purge job1 job2 --yes")]
pub(super) struct Args {
    #[command(subcommand)]
    verb: DlqVerb,
}

#[derive(Debug, clap::Subcommand)]
enum DlqVerb {
    /// Show dead jobs, the newest first
    #[command(after_help = "Examples:\n  queuectl dlq list\n  queuectl dlq list --group")]
    List {
        /// Group them by what killed them
        #[arg(long, conflicts_with_all = ["limit", "after"])]
        group: bool,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Show one dead job with its history
    #[command(after_help = "Example:\n  queuectl dlq show job1")]
    Show {
        /// The job
        #[arg(value_name = "ID")]
        id: String,
    },
    /// Run dead jobs again, with fresh retries
    #[command(after_help = "Examples:\n  queuectl dlq retry job1\n  queuectl dlq retry --all")]
    Retry(Which),
    /// Forget dead jobs
    #[command(after_help = "Examples:\n  queuectl dlq purge job1\n  queuectl dlq purge --all --yes")]
    Purge {
        #[command(flatten)]
        which: Which,
        /// Do not ask before forgetting more than one job
        #[arg(short, long)]
        yes: bool,
    },
}

#[derive(Debug, clap::Args)]
struct Which {
    /// Dead jobs
    #[arg(value_name = "ID", required_unless_present = "all")]
    ids: Vec<String>,
    /// All of them
    #[arg(long, conflicts_with = "ids")]
    all: bool,
}

pub(super) fn run(args: Args, context: &Context) -> Result<ExitCode, Failure> {
    let store = context.store()?;
    match args.verb {
        DlqVerb::List { group: true, .. } => list_groups(context, store)?,
        DlqVerb::List { group: false, page } => {
            let filter = JobFilter { phase: Some(Phase::State(StateName::Dead)), ..JobFilter::default() };
            show_page(context, store, &filter, &page, Some("there are no dead jobs"))?;
        }
        DlqVerb::Show { id } => {
            for id in parse_ids(&[id])? {
                only_dead(store, &id)?;
                show::show(context, store, &id)?;
            }
        }
        DlqVerb::Retry(which) if which.all => change_all(context, store, Verb::Retry, "retried")?,
        DlqVerb::Retry(which) => {
            return change_some(context, store, Verb::Retry, &parse_ids(&which.ids)?, "is pending again");
        }
        DlqVerb::Purge { which, yes } if which.all => {
            let dead = status(store, &context.location()?.home)?.jobs;
            confirm(context, "purge", dead.get(&StateName::Dead).copied().unwrap_or(0), yes)?;
            change_all(context, store, Verb::Remove, "purged")?;
        }
        DlqVerb::Purge { which, yes } => {
            let ids = parse_ids(&which.ids)?;
            confirm(context, "purge", ids.len() as u64, yes)?;
            return change_some(context, store, Verb::Remove, &ids, "purged");
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Changes those of these jobs that are dead, and reports the others.
fn change_some(
    context: &Context,
    store: &dyn Store,
    verb: Verb,
    ids: &[JobId],
    done: &str,
) -> Result<ExitCode, Failure> {
    let mut worst: Option<Exit> = None;
    let mut dead = Vec::new();
    for id in ids {
        match only_dead(store, id) {
            Ok(job) => dead.push(job.id),
            Err(error) => worst = worst.max(Some(tell(context, &error.into()))),
        }
    }
    let say = |changed: &Changed| format!("Job {} {done}", changed.job.id);
    let worst = worst.max(change_ids(context, store, verb, &dead, say)?);
    Ok(code_of(worst))
}

fn change_all(context: &Context, store: &dyn Store, verb: Verb, done: &'static str) -> Result<(), Failure> {
    let mut bar = Bar::new(context, done, None);
    let count = change_all_dead(store, verb, &user::name(), |more| bar.advance(more))?;
    drop(bar);
    if context.json {
        return context.print_json(&serde_json::json!({ "count": count }));
    }
    if !context.quiet {
        let mut out = context.out();
        if context.person_reads {
            writeln!(out, "{} {done}", jobs(count))?;
        } else {
            writeln!(out, "{count}")?;
        }
        out.flush()?;
    }
    Ok(())
}

fn list_groups(context: &Context, store: &dyn Store) -> Result<(), Failure> {
    let groups = group_by_cause(store)?;
    if context.json {
        return context.print_json(&groups.iter().map(CauseJson::from).collect::<Vec<_>>());
    }
    if context.quiet {
        return Ok(());
    }
    if groups.is_empty() {
        return context.hint("there are no dead jobs");
    }
    let now = store.now()?;
    let mut table = Table::new(&[
        ("JOBS", Align::Right),
        ("REASON", Align::Left),
        ("LAST", Align::Left),
        ("EXAMPLE", Align::Left),
        ("CAUSE", Align::Left),
    ]);
    for group in &groups {
        table.row(vec![
            grouped(group.count).into(),
            group.reason.replace('_', " ").into(),
            ago(group.last_at, now).into(),
            group.example.as_str().into(),
            group.cause.as_str().into(),
        ]);
    }
    let mut out = context.out();
    table.write(&mut out, context.width())?;
    Ok(out.flush()?)
}
