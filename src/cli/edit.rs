//! `queuectl edit`

use std::process::ExitCode;

use super::ask::somebody_is_there;
use super::changed::find;
use super::context::Context;
use super::edit_flags::EditFlags;
use super::editor::edit_in_editor;
use super::failure::Failure;
use super::fixed_flags::FixedFlags;
use super::named::{self, Named};
use super::selection::resolve_id;
use crate::domain::edit::Edit;
use crate::domain::name::JobId;
use crate::ops::OpError;
use crate::ops::edit::{How, edit};
use crate::ops::json::JobJson;
use crate::store::Store;
use crate::sys::user;

/// Change a job that does not run
///
/// Without flags it opens $VISUAL or $EDITOR with the job as JSON; a field that is left out there goes back to its default.
/// A job that runs or is completed is left as it is (exit code 4). What happens next is decided as ever: to run a dead or
/// cancelled job again, say `queuectl retry ID --edit`.
#[derive(Debug, clap::Args)]
#[command(
    mut_arg("set-queue", |flag| flag.visible_alias("queue")),
    mut_arg("set-tags", |flag| flag.visible_aliases(["tags", "tag"])),
    after_help = "Examples:
  queuectl edit job1 --priority 9
  queuectl edit job1 --queue slow
  queuectl edit job1 --command 'make -j2 test' --max-retries 5
  queuectl edit job1 --delay 0
  queuectl edit job1"
)]
pub(super) struct Args {
    /// The job
    #[arg(value_name = "ID")]
    id: String,
    #[command(flatten)]
    flags: EditFlags,
    #[command(flatten)]
    fixed: FixedFlags,
}

pub(super) fn run(args: Args, context: &Context) -> Result<ExitCode, Failure> {
    let store = context.store()?;
    args.fixed.refuse().map_err(OpError::from)?;
    let id = resolve_id(context, &args.id)?;
    let wanted = wanted(context, store, &id, args.flags)?;
    apply(context, store, &id, &wanted, How::Edit)?;
    Ok(ExitCode::SUCCESS)
}

/// What the flags say, or what somebody types in an editor.
pub(super) fn wanted(
    context: &Context,
    store: &dyn Store,
    id: &JobId,
    flags: EditFlags,
) -> Result<Edit, Failure> {
    if !flags.is_empty() {
        return flags.into_edit();
    }
    if !somebody_is_there() {
        return Err(Failure::usage("nothing is to be changed")
            .with_hint("say what, as in `--priority 9`; on a terminal an editor is opened"));
    }
    edit_in_editor(context, &find(store, id)?)
}

pub(super) fn apply(
    context: &Context,
    store: &dyn Store,
    id: &JobId,
    wanted: &Edit,
    how: How,
) -> Result<(), Failure> {
    let job = edit(store, id, wanted, how, &user::name())?;
    let sentence = match how {
        How::Edit => format!("Job {} changed: {}", job.id, wanted.fields().join(", ")),
        How::EditAndRetry => format!("Job {} changed, and is pending again", job.id),
    };
    named::tell(context, &Named { name: job.id.as_str(), json: JobJson::from(&job), sentence })
}
