//! `queuectl import`

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;

use crate::context::Context;
use crate::failure::Failure;
use crate::render::progress::Bar;
use crate::render::report_change::report_change;
use crate::render::text::jobs;
use ops::OpError;
use ops::upkeep::import::{Import, Step, import};
use store::transfer::ImportSummary;
use sys::process::user;
use sys::signal::StopSignalBlock;

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

pub(crate) fn run(args: &Args, context: &Context) -> Result<(), Failure> {
    let (store, home) = (context.store_or_new()?, context.location()?.home);
    let input: Box<dyn BufRead> = if args.file == Path::new("-") {
        Box::new(io::stdin().lock())
    } else {
        let opened = File::open(&args.file);
        let cannot_read = |source| OpError::CannotRead { path: args.file.clone(), source };
        Box::new(BufReader::new(opened.map_err(cannot_read)?))
    };
    let wanted = Import { home: &home, if_absent: args.if_absent, by: &user::name() };
    let imported =
        with_bars(context, ["checking", "importing"], |progress| import(store, &wanted, input, progress))?;
    print_result(context, &imported)
}

/// Runs `work`, and shows its steps in bars with these names.
pub(super) fn with_bars<T>(
    context: &Context,
    [checking, importing]: [&'static str; 2],
    work: impl FnOnce(&mut dyn FnMut(Step)) -> T,
) -> T {
    let mut bars = Bars {
        checking: Bar::new(context, checking, None),
        importing: Bar::new(context, importing, None),
        checked: 0,
    };
    let is_shown = context.shows_progress();
    let (steps, received) = mpsc::channel();
    thread::scope(|scope| {
        // The thread inherits the block: otherwise it would receive Ctrl-Z, which must wait for the end of a write.
        let block = StopSignalBlock::new();
        // A terminal that pauses its output must not stop the transaction.
        scope.spawn(move || received.into_iter().for_each(|step| bars.note(step)));
        drop(block);
        let mut progress = move |step| {
            if is_shown {
                let _ = steps.send(step);
            }
        };
        work(&mut progress)
    })
}

/// The progress bars: first while jobs are checked, then while they are stored.
struct Bars {
    checking: Bar,
    importing: Bar,
    checked: u64,
}

impl Bars {
    fn note(&mut self, step: Step) {
        match step {
            Step::Checked => {
                self.checked += 1;
                self.checking.advance(1);
            }
            Step::Stored => {
                self.checking.clear();
                self.importing.set_total(self.checked);
                self.importing.advance(1);
            }
        }
    }
}

fn print_result(context: &Context, imported: &ImportSummary) -> Result<(), Failure> {
    let skipped = imported.skipped.len() as u64;
    let json = serde_json::json!({ "jobs": imported.jobs, "skipped": skipped });
    let skipped = if skipped == 0 { String::new() } else { format!(", {} skipped", jobs(skipped)) };
    let sentence = format!("{} imported{skipped}", jobs(imported.jobs));
    report_change(context, &imported.jobs.to_string(), &json, &sentence)
}
