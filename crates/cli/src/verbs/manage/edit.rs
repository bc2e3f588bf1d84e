//! `queuectl edit`

use sys::program::ExitCode;

use super::change::many::{ManyChange, change_selection};
use super::change::{ChangeArgs, code_of, find, preview_ids, report_and_continue};
use crate::confirm::is_interactive;
use crate::context::Context;
use crate::editor::{Edited, edit_in_editor};
use crate::failure::{Exit, Failure};
use crate::flags::edit::EditFlags;
use crate::flags::fixed::FixedFlags;
use crate::flags::handle::{NamedJobs, latest_to_change, resolve_id, resolve_ids};
use crate::flags::selection::EditFilterArgs;
use crate::render::report_change::report_change;
use domain::job::Job;
use domain::job::edit::{Edit, fixed_field};
use domain::job::life::StateName;
use domain::values::name::JobId;
use ops::OpError;
use ops::jobs::bulk::{BulkChange, edit_many};
use ops::jobs::edit::edit;
use ops::json::JobJson;
use store::{AfterEdit, Conflict, JobVerb, Store};
use sys::process::user;

/// Change jobs that are not running
///
/// Without flags, opens $VISUAL or $EDITOR with the job as JSON; a field that you delete there returns to its default. If
/// you leave the text as it is or delete all of it, nothing changes. A running or completed job cannot be changed (exit
/// code 4). Editing does not change a job's state: to run a dead or
/// cancelled job again, use `queuectl retry ID --edit`.
///
/// Without JOB, the flags of the selection choose the jobs that get the same changes; each field but the command and the
/// name can be changed so. Then --queue and --tag select jobs, and --set-queue and --set-tags change them.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  queuectl edit job1 --priority 9
  queuectl edit job1 --queue slow
  queuectl edit job1 --command 'make -j2 test' --max-retries 5
  queuectl edit job1 --delay 0
  queuectl edit job1
  queuectl edit --queue mail --state pending --set-queue slow --dry-run
  queuectl edit --batch night --timeout 2h --yes")]
pub(crate) struct Args {
    /// Numbers or ids of jobs, or unique parts of their ids [default on a terminal: the latest job]
    #[arg(value_name = "JOB")]
    ids: Vec<String>,
    #[command(flatten)]
    change: ChangeArgs,
    #[command(flatten)]
    selection: EditFilterArgs,
    #[command(flatten)]
    flags: EditFlags,
    #[command(flatten)]
    fixed: FixedFlags,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<ExitCode, Failure> {
    args.fixed.refuse().map_err(OpError::from)?;
    if args.ids.is_empty() && !args.selection.is_empty() {
        edit_selection(context, args)?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.selection.only_selects() {
        return Err(Failure::usage("ids cannot be combined with a selection")
            .with_hint("give either ids or flags such as --state"));
    }
    if args.selection.batch.is_some() {
        return Err(OpError::from(fixed_field("batch")).into());
    }
    let EditFilterArgs { queue, tag, .. } = args.selection;
    let flags = args.flags.with_enqueue_names(queue.as_deref(), tag)?;
    let NamedJobs { ids, worst } = match args.ids.as_slice() {
        [] => latest_to_change(context)?.into(),
        [typed] => resolve_id(context, typed)?.into(),
        several => resolve_ids(context, several)?,
    };
    if args.change.dry_run {
        let what = BulkChange::Edit(Box::new(flags.into_edit()?));
        return Ok(code_of(worst.max(preview_ids(context, &ids, &wording(what))?)));
    }
    edit_each(context, &ids, worst, &flags)
}

fn wording(what: BulkChange) -> ManyChange {
    ManyChange { what, infinitive: "edit", participle: "edited" }
}

fn edit_selection(context: &Context, args: Args) -> Result<(), Failure> {
    if args.flags.is_empty() {
        return Err(Failure::usage("no changes given").with_hint(
            "give flags such as `--priority 9`; without JOB, --queue and --tag select jobs, \
             and --set-queue and --set-tags change them",
        ));
    }
    let start = args.flags.start_time();
    let edit = edit_many(args.flags.into_edit()?)?;
    let filter = args.selection.filter(context)?;
    change_selection(context, filter, &args.change, &wording(edit))?;
    match start.filter(|_| !args.change.dry_run) {
        Some(start) => start.confirm(context),
        None => Ok(()),
    }
}

/// Edits these jobs one by one. The failure of a single one ends the command; among several, each is reported, unless the
/// store itself fails.
fn edit_each(
    context: &Context,
    ids: &[JobId],
    mut worst: Option<Exit>,
    flags: &EditFlags,
) -> Result<ExitCode, Failure> {
    let store = context.store()?;
    let is_single = ids.len() == 1 && worst.is_none();
    let mut has_changed = false;
    for id in ids {
        let edited =
            requested_edit(context, store, id, flags.clone(), AfterEdit::Keep).and_then(|requested| {
                match requested {
                    Some(requested) => apply(context, store, id, requested, AfterEdit::Keep).map(|()| true),
                    None => context.hint(NO_CHANGES).map(|()| false),
                }
            });
        match edited {
            Ok(false) if is_single => return Ok(ExitCode::SUCCESS),
            Ok(is_changed) => has_changed |= is_changed,
            Err(failure) if is_single => return Err(failure),
            Err(failure) if failure.is_of_store() && !has_changed => return Err(failure),
            // Exit code 5 would say that nothing has changed.
            Err(failure) if failure.is_of_store() => {
                report_and_continue(context, &failure);
                return Ok(code_of(worst.max(Some(Exit::Failed))));
            }
            Err(failure) => worst = worst.max(Some(report_and_continue(context, &failure))),
        }
    }
    if let (Some(start), None) = (flags.start_time(), worst) {
        start.confirm(context)?;
    }
    Ok(code_of(worst))
}

/// For a job that was left as it is in the editor.
pub(crate) const NO_CHANGES: &str = "no changes";

/// The changes given as flags, or made in an editor; `None` if the user changed nothing there.
pub(crate) fn requested_edit(
    context: &Context,
    store: &dyn Store,
    id: &JobId,
    flags: EditFlags,
    how: AfterEdit,
) -> Result<Option<Edited<Edit>>, Failure> {
    if !flags.is_empty() {
        return flags.into_edit().map(Edited::without_file).map(Some);
    }
    if !is_interactive() {
        return Err(Failure::usage("no changes given")
            .with_hint("give flags such as `--priority 9`; an editor opens only on a terminal"));
    }
    let job = find(store, id)?;
    check_state(&job, how)?;
    edit_in_editor(context, &job)
}

/// Refuses a job that cannot be changed now, before the user writes a text in vain.
fn check_state(job: &Job, how: AfterEdit) -> Result<(), Failure> {
    let state = job.life.state.name();
    let can_change = match how {
        AfterEdit::Keep => !matches!(state, StateName::Processing | StateName::Completed),
        AfterEdit::Retry => JobVerb::Retry.applies_to(state),
    };
    let refused =
        || OpError::Conflict { job: job.full_handle(), refused: "edited", conflict: Conflict::State(state) };
    Ok(if can_change { Ok(()) } else { Err(refused()) }?)
}

pub(crate) fn apply(
    context: &Context,
    store: &dyn Store,
    id: &JobId,
    requested: Edited<Edit>,
    how: AfterEdit,
) -> Result<(), Failure> {
    let fields = requested.value.fields().join(", ");
    let job = requested.apply(|requested| Ok(edit(store, id, &requested, how, &user::name())?))?;
    let sentence = match how {
        AfterEdit::Keep => format!("Job {} changed: {fields}", job.handle()),
        AfterEdit::Retry => format!("Job {} changed and is pending again", job.handle()),
    };
    report_change(context, job.id.as_str(), &JobJson::from(&job), &sentence)
}
