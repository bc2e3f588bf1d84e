//! `queuectl export`

use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::context::Context;
use crate::failure::Failure;
use crate::flags::selection::{Which, WhichArgs, hint_at_unknown};
use crate::render::progress::Bar;
use crate::render::text::{jobs, printable};
use ops::OpError;
use ops::upkeep::backup::NewFile;
use ops::upkeep::spooled::SpooledWriter;
use ops::upkeep::transfer::{Export, Secrets, export};
use store::ExportScope;

/// Write what is in the queue as JSON lines
///
/// One object per line, with its `kind`: settings, queues, environments, batches, schedules, jobs with their history and
/// output, unique keys, what people did, and hooks with what they are still to be told. Jobs could not run without their
/// environment, so it is part of it, and so are the secrets of hooks: the file is as secret as the queue, and only you may
/// read it. --no-env leaves them out.
///
/// With ids or a selection only those jobs are written, with what belongs to them: their queues, environments, batches and
/// events, but no settings, schedules and hooks.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  queuectl export queue.jsonl
  queuectl export dead.jsonl --state dead --queue mail
  queuectl export --no-env - | jq -r 'select(.kind == \"job\") | .command'")]
pub(crate) struct Args {
    /// The file to write; - for standard output
    #[arg(value_name = "FILE", default_value = "-")]
    file: PathBuf,
    #[command(flatten)]
    which: WhichArgs,
    /// Leave secrets out: environments (everything will run in that of the worker), and what hooks sign with
    #[arg(long)]
    no_env: bool,
    /// Replace the file if it is there
    #[arg(short, long)]
    force: bool,
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<ExitCode, Failure> {
    let secrets = if args.no_env { Secrets::Exclude } else { Secrets::Include };
    let (store, home) = (context.store()?, context.location()?.home);
    let which = if args.which.is_empty() { None } else { Some(args.which.resolve(context)?) };
    let which = match &which {
        None => ExportScope::All,
        Some(Which::Ids(ids)) => ExportScope::Ids(ids),
        Some(Which::Kind(filter)) => {
            hint_at_unknown(context, filter)?;
            ExportScope::Kind(filter)
        }
    };
    let wanted = Export { home: &home, which: &which, secrets };
    if args.file == Path::new("-") {
        let mut out = io::BufWriter::with_capacity(BUFFER_BYTES, SpooledWriter::new(Stdout, &home));
        // Where the lines themselves are on the terminal, a bar would be among them.
        let mut bar = if context.person_reads { None } else { Some(bar(context, &which)?) };
        export(store, &wanted, &mut out, || bar.iter_mut().for_each(|bar| bar.advance(1)))?;
        return Ok(ExitCode::SUCCESS);
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
    tell(context, &args.file, count)?;
    Ok(ExitCode::SUCCESS)
}

const BUFFER_BYTES: usize = 64 << 10;

/// Standard output without a buffer of its own: what it takes must be known exactly.
struct Stdout;

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::io::write(self.as_fd(), bytes)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsFd for Stdout {
    fn as_fd(&self) -> BorrowedFd<'_> {
        rustix::stdio::stdout()
    }
}

/// How many jobs there are is known where all are written, or each is named.
fn bar(context: &Context, which: &ExportScope<'_>) -> Result<Bar, Failure> {
    let total = match which {
        ExportScope::All => {
            Some(context.store()?.queues()?.iter().flat_map(|queue| queue.counts.values()).sum())
        }
        ExportScope::Ids(ids) => Some(ids.len() as u64),
        ExportScope::Kind(_) => None,
    };
    Ok(Bar::new(context, "exporting", total))
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
