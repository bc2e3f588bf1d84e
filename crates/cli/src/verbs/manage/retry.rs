//! `queuectl retry`

use sys::program::ExitCode;

use super::change::{ChangeArgs, Wording, change, code_of, report_and_continue};
use super::edit;
use crate::context::Context;
use crate::failure::{Failure, unless_cut_off};
use crate::flags::edit::EditFlags;
use crate::flags::handle::{NamedJobs, latest_to_change, resolve_ids};
use crate::flags::selection::{Selection, SelectionArgs};
use crate::render::text::{grouped, jobs, printable};
use crate::verbs::jobs::autostart::autostart_if_ready;
use domain::job::Job;
use domain::job::life::StateName;
use domain::values::name::JobId;
use ops::jobs::change::Verb;
use ops::jobs::dependency_failure::cancelled_dependents;
use store::AfterEdit;

/// How many jobs around a retried job are examined: to retry its dependents, and to name some of them.
const MAX_DEPENDENTS_RETRIED: usize = 100_000;
const MAX_DEPENDENTS_NAMED: usize = 1_000;
/// How many retried jobs are examined for cancelled dependents.
const MAX_ROOTS_EXAMINED: usize = 20;
/// How many dependents are named.
const MAX_NAMES: usize = 10;

/// Run jobs again, with their full number of retries
///
/// Retries failed jobs (now instead of after their backoff), dead, cancelled and completed jobs. Their history is kept. A
/// pending or running job cannot be retried (exit code 4). A selection without --state excludes completed jobs.
///
/// Jobs that were cancelled because a job that they depend on failed stay cancelled, unless --with-dependents retries them, too.
///
/// Here --queue and --tag select jobs; --set-queue and --set-tags change them.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  queuectl retry job1
  queuectl retry job1 job2
  queuectl retry build --with-dependents
  queuectl retry --state dead --queue mail --dry-run
  queuectl retry --state failed --older-than 1h --yes
  queuectl retry job1 --edit --timeout 10m
  queuectl retry job1 --edit --set-queue slow")]
pub(crate) struct Args {
    #[command(flatten)]
    change: ChangeArgs,
    /// Change the jobs first: with the flags below, or in an editor
    #[arg(long)]
    edit: bool,
    /// Also retry dependents: the jobs that were cancelled because these failed, in their order
    #[arg(long, conflicts_with = "edit")]
    with_dependents: bool,
    #[command(flatten)]
    selection: SelectionArgs,
    #[command(flatten)]
    flags: EditFlags,
}

pub(crate) const RETRY: Wording = Wording {
    verb: Verb::Retry,
    infinitive: "retry",
    participle: "retried",
    is_final: false,
    sentence: |changed| format!("Job {} is pending again", changed.job.handle()),
};

/// A dependent whose dependency fails again before its turn comes stays cancelled.
const RETRY_IN_ORDER: Wording = Wording { verb: Verb::RetryInOrder, ..RETRY };

pub(crate) fn run(args: &Args, context: &Context) -> Result<ExitCode, Failure> {
    if args.edit {
        return edit_and_retry(context, args);
    }
    if !args.flags.is_empty() {
        return Err(Failure::usage("flags that change a job need --edit"));
    }
    let latest = || Ok(Selection::Named(latest_to_change(context)?.into()));
    let mut which = args.selection.resolve_or(context, latest)?;
    let wording = if args.with_dependents { &RETRY_IN_ORDER } else { &RETRY };
    if args.with_dependents {
        which = add_dependents(context, which)?;
    }
    let roots = match &which {
        Selection::Named(named) if !args.with_dependents && !args.change.dry_run => named.ids.clone(),
        Selection::Named(_) | Selection::Matching(_) => Vec::new(),
    };
    let worst = change(context, which, &args.change, wording)?;
    unless_cut_off(hint_cancelled_dependents(context, &roots))?;
    Ok(code_of(worst))
}

/// Adds the jobs that were cancelled on account of these, after them. If there are such jobs, one that was retried before is
/// left out, and if it has completed since, too.
fn add_dependents(context: &Context, which: Selection) -> Result<Selection, Failure> {
    let Selection::Named(NamedJobs { ids: roots, worst }) = which else {
        return Err(Failure::usage("--with-dependents needs the ids of jobs, not a selection"));
    };
    let store = context.store()?;
    let found = cancelled_dependents(store, &roots, MAX_DEPENDENTS_RETRIED)?;
    let mut ids = Vec::with_capacity(roots.len() + found.ids.len());
    for id in roots {
        if found.ids.is_empty() || !store.find(&id)?.is_some_and(|job| was_retried(&job)) {
            ids.push(id);
        }
    }
    ids.extend(found.ids);
    if !found.held_back.is_empty() {
        let named = describe_names(&found.held_back);
        context.hint(&format!("not retried, because another job that they depend on failed: {named}"))?;
    }
    if found.is_cut {
        context.hint("there are more dependent jobs; repeat the command to retry them")?;
    }
    Ok(Selection::Named(NamedJobs { ids, worst }))
}

fn was_retried(job: &Job) -> bool {
    let state = job.life.state.name();
    state == StateName::Completed || !Verb::Retry.applies_to(state)
}

/// Says which jobs stay cancelled although the job on whose account they were cancelled runs again.
fn hint_cancelled_dependents(context: &Context, roots: &[JobId]) -> Result<(), Failure> {
    let store = context.store()?;
    for root in roots.iter().take(MAX_ROOTS_EXAMINED) {
        let found = cancelled_dependents(store, std::slice::from_ref(root), MAX_DEPENDENTS_NAMED)?;
        let ids: Vec<JobId> = found.ids.into_iter().chain(found.held_back).collect();
        if let (false, Some(job)) = (ids.is_empty(), store.find(root)?) {
            let (root, count, named) = (job.handle(), jobs(ids.len() as u64), describe_names(&ids));
            let or_more = if found.is_cut { " or more" } else { "" };
            let (depend, stay, them) = if ids.len() == 1 && !found.is_cut {
                ("depends", "stays", "it")
            } else {
                ("depend", "stay", "them")
            };
            context.hint(&printable(&format!(
                "{count}{or_more} that {depend} on {root} {stay} cancelled ({named}); \
                 `queuectl retry --with-dependents {root}` retries {them}"
            )))?;
        }
    }
    Ok(())
}

/// `a, b and 3 more`
fn describe_names(ids: &[JobId]) -> String {
    let names = ids.iter().take(MAX_NAMES).map(JobId::as_str).collect::<Vec<_>>().join(", ");
    match ids.len().saturating_sub(MAX_NAMES) {
        0 => names,
        more => format!("{names} and {} more", grouped(more as u64)),
    }
}

fn edit_and_retry(context: &Context, args: &Args) -> Result<ExitCode, Failure> {
    let NamedJobs { ids, mut worst } = if args.selection.is_empty() {
        latest_to_change(context)?.into()
    } else {
        let typed = args.selection.only_ids().ok_or_else(|| {
            Failure::usage("--edit needs the ids of jobs, not a selection")
                .with_hint("--queue and --tag select jobs; --set-queue and --set-tags change one")
        })?;
        resolve_ids(context, typed)?
    };
    let store = context.store()?;
    for id in &ids {
        let edited = edit::requested_edit(context, store, id, args.flags.clone(), AfterEdit::Retry).and_then(
            |requested| match requested {
                Some(requested) => edit::apply(context, store, id, requested, AfterEdit::Retry),
                None => context.hint(&format!("{}; the job is not retried", edit::NO_CHANGES)),
            },
        );
        if let Err(failure) = edited {
            worst = worst.max(Some(report_and_continue(context, &failure)));
        }
    }
    if let (Some(start), None) = (args.flags.start_time(), worst) {
        start.confirm(context)?;
    }
    autostart_if_ready(context)?;
    Ok(code_of(worst))
}
