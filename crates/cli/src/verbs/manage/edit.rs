//! `queuectl edit`

use super::change::find;
use crate::confirm::is_interactive;
use crate::context::Context;
use crate::editor::{Edited, edit_in_editor};
use crate::failure::Failure;
use crate::flags::edit::EditFlags;
use crate::flags::fixed::FixedFlags;
use crate::flags::handle::{latest_to_change, resolve_id};
use crate::render::report_change::report_change;
use domain::job::Job;
use domain::job::edit::Edit;
use domain::job::life::StateName;
use domain::values::name::JobId;
use ops::OpError;
use ops::jobs::edit::edit;
use ops::json::JobJson;
use store::{AfterEdit, Conflict, JobVerb, Store};
use sys::process::user;

/// Change a job that is not running
///
/// Without flags, opens $VISUAL or $EDITOR with the job as JSON; a field that you delete there returns to its default. If
/// you leave the text as it is or delete all of it, nothing changes. A running or completed job cannot be changed (exit
/// code 4). Editing does not change a job's state: to run a dead or
/// cancelled job again, use `queuectl retry ID --edit`.
#[derive(Debug, clap::Args)]
#[command(
    mut_arg("set-queue", |flag| flag.visible_alias("queue").short('Q')),
    mut_arg("set-tags", |flag| flag.visible_aliases(["tags", "tag"])),
    after_help = "Examples:
  queuectl edit job1 --priority 9
  queuectl edit job1 --queue slow
  queuectl edit job1 --command 'make -j2 test' --max-retries 5
  queuectl edit job1 --delay 0
  queuectl edit job1"
)]
pub(crate) struct Args {
    /// The job's number or id, or a unique part of its id [default on a terminal: the latest job]
    #[arg(value_name = "JOB")]
    id: Option<String>,
    #[command(flatten)]
    flags: EditFlags,
    #[command(flatten)]
    fixed: FixedFlags,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<(), Failure> {
    let store = context.store()?;
    args.fixed.refuse().map_err(OpError::from)?;
    let start = args.flags.start_time();
    let id = match &args.id {
        Some(typed) => resolve_id(context, typed)?,
        None => latest_to_change(context)?,
    };
    let Some(requested) = requested_edit(context, store, &id, args.flags, AfterEdit::Keep)? else {
        return context.hint(NO_CHANGES);
    };
    apply(context, store, &id, requested, AfterEdit::Keep)?;
    start.map_or(Ok(()), |start| start.confirm(context))
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
