//! `queuectl init`

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::context::Context;
use crate::failure::Failure;
use crate::render::report_change::report_change;
use ops::home::init::{InitOutcome, init, variable_instead_of};

/// Create a queue for this directory
///
/// Creates `.queuectl/` here. queuectl then uses it in this directory and below, instead of the queue in your home directory.
/// It refuses a directory that other users can write to or own, because they could replace the queue.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  queuectl init\n  queuectl init ~/projects/site")]
pub(crate) struct Args {
    /// The directory
    #[arg(default_value = ".", value_name = "DIR")]
    folder: PathBuf,
}

#[derive(Serialize)]
struct InitJson {
    home: String,
    existing: bool,
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<(), Failure> {
    let (home, existing) = match init(&args.folder)? {
        InitOutcome::New(home) => (home, false),
        InitOutcome::Existing(home) => (home, true),
    };
    let home = home.canonicalize().unwrap_or(home).display().to_string();
    let sentence = if existing { "There is already a queue in" } else { "Created a queue in" };
    let sentence = format!("{sentence} {home}");
    report_change(context, &home.clone(), &InitJson { home: home.clone(), existing }, &sentence)?;
    warn_if_unused(context, Path::new(&home))
}

/// The variables come before the directories when queuectl looks for its queue.
fn warn_if_unused(context: &Context, home: &Path) -> Result<(), Failure> {
    let Some(name) = variable_instead_of(home) else {
        return Ok(());
    };
    context
        .hint(&format!("queuectl will not use this queue while {name} is set; run `unset {name}` to use it"))
}
