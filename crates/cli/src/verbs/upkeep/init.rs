//! `queuectl init`

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use serde::Serialize;

use crate::context::Context;
use crate::failure::Failure;
use crate::render::text::printable;
use ops::home::init::{InitOutcome, init};

/// Make a queue of its own for this folder
///
/// Makes `.queuectl/` here. Commands that run here or below then use it instead of the one in your home folder. In a folder
/// that others can write, or that belongs to another user, none is made: that user could put another queue in its place.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  queuectl init\n  queuectl init ~/projects/site")]
pub(crate) struct Args {
    /// The folder
    #[arg(default_value = ".", value_name = "DIR")]
    folder: PathBuf,
}

#[derive(Serialize)]
struct InitJson {
    home: String,
    existing: bool,
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<ExitCode, Failure> {
    let (home, existing) = match init(&args.folder)? {
        InitOutcome::New(home) => (home, false),
        InitOutcome::Existing(home) => (home, true),
    };
    let home = home.canonicalize().unwrap_or(home).display().to_string();
    if context.json {
        context.print_json(&InitJson { home, existing })?;
    } else if !context.quiet {
        let mut out = context.out();
        match (context.person_reads, existing) {
            (false, _) => writeln!(out, "{home}")?,
            (true, false) => writeln!(out, "Made a queue in {}", printable(&home))?,
            (true, true) => writeln!(out, "There is a queue in {} already", printable(&home))?,
        }
        out.flush()?;
    }
    Ok(ExitCode::SUCCESS)
}
