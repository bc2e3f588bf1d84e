//! `queuectl edit`

use std::process::ExitCode;

use crate::ask::somebody_is_there;
use crate::context::Context;
use crate::editor::edit_in_editor;
use crate::failure::Failure;
use crate::flags::edit::EditFlags;
use crate::flags::fixed::FixedFlags;
use crate::flags::selection::resolve_id;
use crate::render::report_change::find;
use crate::render::report_name;
use crate::render::report_name::Named;
use domain::job::edit::Edit;
use domain::values::name::JobId;
use ops::OpError;
use ops::jobs::edit::{EditMode, edit};
use ops::json::JobJson;
use store::Store;
use sys::process::user;

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
pub(crate) struct Args {
    /// The job
    #[arg(value_name = "ID")]
    id: String,
    #[command(flatten)]
    flags: EditFlags,
    #[command(flatten)]
    fixed: FixedFlags,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<ExitCode, Failure> {
    let store = context.store()?;
    args.fixed.refuse().map_err(OpError::from)?;
    let id = resolve_id(context, &args.id)?;
    let wanted = wanted(context, store, &id, args.flags)?;
    apply(context, store, &id, &wanted, EditMode::Edit)?;
    Ok(ExitCode::SUCCESS)
}

/// What the flags say, or what somebody types in an editor.
pub(crate) fn wanted(
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

pub(crate) fn apply(
    context: &Context,
    store: &dyn Store,
    id: &JobId,
    wanted: &Edit,
    how: EditMode,
) -> Result<(), Failure> {
    let job = edit(store, id, wanted, how, &user::name())?;
    let sentence = match how {
        EditMode::Edit => format!("Job {} changed: {}", job.id, wanted.fields().join(", ")),
        EditMode::EditAndRetry => format!("Job {} changed, and is pending again", job.id),
    };
    report_name::tell(context, &Named { name: job.id.as_str(), json: JobJson::from(&job), sentence })
}
