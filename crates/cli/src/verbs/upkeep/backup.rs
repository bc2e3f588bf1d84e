//! `queuectl backup`

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use serde::Serialize;

use crate::context::Context;
use crate::failure::Failure;
use crate::render::progress::Bar;
use crate::render::text::{printable, rough_size};
use ops::upkeep::backup::backup;
use store::Progress;
use sys::process::user;

/// Copy the whole queue into one file, while workers go on working
///
/// The file holds jobs, history, output, settings and the environments of jobs, so it is as secret as the queue: only you
/// may read it. It shows the queue at one moment, and it is there whole or not at all. `queuectl restore` puts it back.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  queuectl backup queue-backup.db
  queuectl backup --force /mnt/backups/queue.db")]
pub(crate) struct Args {
    /// The file to write
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Replace the file if it is there
    #[arg(short, long)]
    force: bool,
}

#[derive(Serialize)]
struct BackupJson {
    file: String,
    bytes: u64,
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<ExitCode, Failure> {
    let mut bar = Bar::new(context, "copying", None);
    let mut progress = |Progress { done, total }: Progress| {
        bar.say(|| format!("copying {} of {}", rough_size(done), rough_size(total)));
    };
    let bytes = backup(context.store()?, &context.location()?, &args.file, args.force, &mut progress)?;
    drop(bar);
    let file = args.file.display().to_string();
    if let Err(error) = context.store()?.note("backup", &user::name(), &file) {
        // The backup is good all the same: a full disk is a reason to make one.
        context.hint(&format!("that a backup was made could not be noted ({error})"))?;
    }
    if context.json {
        context.print_json(&BackupJson { file, bytes })?;
    } else if !context.quiet {
        let mut out = context.out();
        if context.person_reads {
            writeln!(out, "Backup written to {} ({})", printable(&file), rough_size(bytes))?;
        } else {
            writeln!(out, "{file}")?;
        }
        out.flush()?;
    }
    Ok(ExitCode::SUCCESS)
}
