//! `queuectl import`

use std::io::Write;
use std::path::{Path, PathBuf};
use sys::program::ExitCode;

use crate::context::Context;
use crate::failure::Failure;
use crate::render::progress::Bar;
use crate::render::text::jobs;
use ops::upkeep::transfer::{Import, Input, Step, import};
use store::transfer::ImportSummary;
use sys::process::user;

/// Import a file written by `queuectl export`, all or nothing
///
/// Jobs keep their ids, states, times and history. A job that was running counts as lost and runs again. If a job's id is
/// taken, that is a conflict (exit code 4) and nothing is imported. Existing settings, queues, schedules and hooks stay
/// unchanged. Imported schedules run here from now on: if the other queue stays in use, pause or remove them in one of the
/// two.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  queuectl import queue.jsonl
  ssh other queuectl export - | queuectl import --if-absent -")]
pub(crate) struct Args {
    /// The file to read; - for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Skip jobs that already exist
    #[arg(long)]
    if_absent: bool,
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<ExitCode, Failure> {
    let (store, home) = (context.store()?, context.location()?.home);
    let is_stream = args.file == Path::new("-");
    let input = if is_stream { Input::standard()? } else { Input::open(&args.file)? };
    let wanted = Import { home: &home, input, if_absent: args.if_absent, by: &user::name() };
    let mut view = View { context, checked: 0, bar: Bar::new(context, "checking", None), is_checked: false };
    let imported = import(store, &wanted, |step| view.note(step))?;
    drop(view);
    print_result(context, imported)?;
    Ok(ExitCode::SUCCESS)
}

/// The progress bar: first while jobs are checked, then while they are stored.
struct View<'a> {
    context: &'a Context,
    bar: Bar,
    checked: u64,
    is_checked: bool,
}

impl View<'_> {
    fn note(&mut self, step: Step) {
        match step {
            Step::Checked => self.checked += 1,
            Step::Stored if self.is_checked => {}
            Step::Stored => {
                self.bar = Bar::new(self.context, "importing", Some(self.checked));
                self.is_checked = true;
            }
        }
        self.bar.advance(1);
    }
}

fn print_result(context: &Context, imported: ImportSummary) -> Result<(), Failure> {
    if context.json {
        let ImportSummary { jobs, skipped } = imported;
        return context.print_json(&serde_json::json!({ "jobs": jobs, "skipped": skipped }));
    }
    if context.quiet {
        return Ok(());
    }
    let mut out = context.out();
    match (context.stdout_is_terminal, imported.skipped) {
        (false, _) => writeln!(out, "{}", imported.jobs)?,
        (true, 0) => writeln!(out, "{} imported", jobs(imported.jobs))?,
        (true, skipped) => writeln!(out, "{} imported, {} skipped", jobs(imported.jobs), jobs(skipped))?,
    }
    Ok(out.flush()?)
}
