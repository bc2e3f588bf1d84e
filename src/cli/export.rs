//! `queuectl export`

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::context::Context;
use super::failure::Failure;
use super::text::{jobs, printable};
use crate::ops::OpError;
use crate::ops::backup::NewFile;
use crate::ops::transfer::{Variables, export};

/// Write everything in the queue as JSON lines
///
/// One object per line, with its `kind`: settings, queues, environments, jobs with their history and output, and what people
/// did. A job's environment is part of it, because it could not run without: so the file is as secret as the queue, and only
/// you may read it. --no-env leaves the values of variables out. Schedules, hooks and batches are not in it; a backup has
/// everything.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  queuectl export queue.jsonl
  queuectl export --no-env - | jq -r 'select(.kind == \"job\") | .command'")]
pub(super) struct Args {
    /// The file to write; - for standard output
    #[arg(value_name = "FILE", default_value = "-")]
    file: PathBuf,
    /// Leave the environment of jobs out; they will run in that of the worker
    #[arg(long)]
    no_env: bool,
    /// Replace the file if it is there
    #[arg(short, long)]
    force: bool,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<ExitCode, Failure> {
    let variables = if args.no_env { Variables::Without } else { Variables::With };
    let (store, home) = (context.store()?, context.location()?.home);
    if args.file == Path::new("-") {
        let mut out = io::BufWriter::new(io::stdout().lock());
        export(store, &home, variables, &mut out)?;
        return Ok(ExitCode::SUCCESS);
    }
    let file = NewFile::make(&args.file, args.force)?;
    let cannot_make = |source: io::Error| OpError::CannotMake { path: args.file.clone(), source };
    let mut out = io::BufWriter::new(file.open().map_err(cannot_make)?);
    let count = export(store, &home, variables, &mut out)?;
    out.into_inner()
        .map_err(io::IntoInnerError::into_error)
        .and_then(|file| file.sync_all())
        .map_err(cannot_make)?;
    file.name()?;
    tell(context, &args.file, count)?;
    Ok(ExitCode::SUCCESS)
}

fn tell(context: &Context, file: &Path, count: u64) -> Result<(), Failure> {
    let file = file.display().to_string();
    if context.json {
        return context.print_json(&serde_json::json!({ "file": file, "jobs": count }));
    }
    if context.quiet {
        return Ok(());
    }
    let mut out = context.out();
    if context.person_reads {
        writeln!(out, "{} exported to {}", jobs(count), printable(&file))?;
    } else {
        writeln!(out, "{file}")?;
    }
    Ok(out.flush()?)
}
