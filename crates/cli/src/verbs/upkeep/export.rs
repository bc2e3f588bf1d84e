//! `queuectl export`

use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use crate::context::Context;
use crate::failure::Failure;
use crate::flags::handle::NamedJobs;
use crate::flags::selection::{Selection, SelectionArgs, hint_unknown_name};
use crate::render::progress::Bar;
use crate::render::report_change::report_change;
use crate::render::text::jobs;
use ops::OpError;
use ops::upkeep::backup::NewFile;
use ops::upkeep::export::{Export, Secrets, export};
use ops::upkeep::spooled_writer::SpooledWriter;
use store::ExportScope;

/// Export the queue as JSON lines
///
/// Writes one object per line, with its `kind`: settings, queues and what `metrics` counted in them, environments, batches,
/// schedules, jobs with their history and output, unique keys, events, and hooks with their pending deliveries. Environments
/// are included because jobs could not run without them, and so are the secrets of hooks: keep the file as secret as the
/// queue. Only you can read it.
/// --no-env leaves them out.
///
/// With ids or a selection, only those jobs are written, with their queues, environments, batches and events, but without
/// settings, schedules and hooks.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  queuectl export queue.jsonl
  queuectl export dead.jsonl --state dead --queue mail
  queuectl export --no-env - | jq -r 'select(.kind == \"job\") | .command'")]
pub(crate) struct Args {
    /// The file to write; - for standard output
    #[arg(value_name = "FILE", default_value = "-")]
    file: PathBuf,
    /// Leave out secrets: environments (jobs and hooks will run with the worker's) and the signing secrets of hooks
    #[arg(long)]
    no_env: bool,
    /// Replace an existing file
    #[arg(short, long)]
    force: bool,
    #[command(flatten)]
    selection: SelectionArgs,
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<(), Failure> {
    let secrets = if args.no_env { Secrets::Exclude } else { Secrets::Include };
    let (store, home) = (context.store()?, context.location()?.home);
    let which = if args.selection.is_empty() { None } else { Some(args.selection.resolve(context)?) };
    let which = match &which {
        None => ExportScope::All,
        Some(Selection::Named(NamedJobs { worst: Some(worst), .. })) => {
            return Err(Failure::new(*worst, "nothing was exported"));
        }
        Some(Selection::Named(NamedJobs { ids, worst: None })) => ExportScope::Ids(ids),
        Some(Selection::Matching(filter)) => {
            hint_unknown_name(context, filter)?;
            ExportScope::Kind(filter)
        }
    };
    let wanted = Export { home: &home, which: &which, secrets };
    if args.file == Path::new("-") {
        let stdout = io::stdout().as_fd().try_clone_to_owned();
        let stdout = stdout.map_err(|source| OpError::CannotWrite { source })?;
        let mut out = io::BufWriter::with_capacity(BUFFER_BYTES, SpooledWriter::new(stdout.into(), &home));
        // On a terminal, the bar would mix with the lines.
        let mut bar = if context.stdout_is_terminal { None } else { Some(bar(context, &which)?) };
        export(store, &wanted, &mut out, || bar.iter_mut().for_each(|bar| bar.advance(1)))?;
        return Ok(());
    }
    let file = NewFile::create(&args.file, args.force)?;
    let cannot_make = |source: io::Error| OpError::CannotMake { path: args.file.clone(), source };
    let mut out = io::BufWriter::new(file.open().map_err(cannot_make)?);
    let mut bar = bar(context, &which)?;
    let count = export(store, &wanted, &mut out, || bar.advance(1))?;
    drop(bar);
    out.into_inner()
        .map_err(io::IntoInnerError::into_error)
        .and_then(|file| file.sync_all())
        .map_err(cannot_make)?;
    file.publish()?;
    print_result(context, &args.file, count)
}

const BUFFER_BYTES: usize = 64 << 10;

/// The total is known if all jobs are exported, or if they are given by id.
fn bar(context: &Context, which: &ExportScope<'_>) -> Result<Bar, Failure> {
    let total = match which {
        ExportScope::All => Some(context.store()?.count_jobs()?),
        ExportScope::Ids(ids) => Some(ids.len() as u64),
        ExportScope::Kind(_) => None,
    };
    Ok(Bar::new(context, "exporting", total))
}

fn print_result(context: &Context, file: &Path, count: u64) -> Result<(), Failure> {
    let file = file.display().to_string();
    let json = serde_json::json!({ "file": file, "jobs": count });
    report_change(context, &file, &json, &format!("{} exported to {file}", jobs(count)))
}
