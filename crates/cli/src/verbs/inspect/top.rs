//! `queuectl top`

use std::ffi::OsString;
use std::io::{self, IsTerminal};

use rustix::process::Signal;

use crate::completion::answer::{Answer, answer};
use crate::context::{Context, catch};
use crate::failure::{Exit, Failure};
use ops::error::chain;
use ops::home::location::{StoreAddress, shortened};
use sys::process::user;
use sys::zone;
use tui::{Colors, TopError, TopOptions};

/// Watch and manage the queue on the whole screen
///
/// Shows jobs, dead jobs by cause, queues, workers, schedules, batches and events, and the output of the job under the
/// cursor. `?` lists the keys. Every change asks first, and says which command does the same.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  queuectl top
  queuectl top --read-only
  queuectl top --ascii --no-mouse")]
pub(crate) struct Args {
    /// Change nothing: the keys for changes do nothing
    #[arg(long)]
    read_only: bool,
    /// Draw with ASCII characters only
    #[arg(long)]
    ascii: bool,
    /// Leave the mouse to the terminal, so that text can be selected
    #[arg(long)]
    no_mouse: bool,
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<(), Failure> {
    check_terminal(context)?;
    let location = context.location()?.absolute()?;
    // Reports at once if there is no queue, or if it cannot be read.
    context.store()?;
    let mut program_flags = vec!["--home".to_owned(), location.home.display().to_string()];
    let title = match &location.store {
        StoreAddress::Sqlite(_) => location.home.display().to_string(),
        StoreAddress::Postgres(address) => address.to_string(),
    };
    program_flags.extend(location.store_variable().iter().flat_map(store_flag));
    let options = TopOptions {
        title: shortened(&title),
        is_read_only: args.read_only || context.store()?.is_read_only(),
        is_ascii: args.ascii,
        has_mouse: !args.no_mouse,
        is_utc: !context.shows_local_time(),
        colors: colors(context),
        local_zone: zone::local(),
        by: user::name(),
        program_flags,
        complete,
        location,
    };
    let interrupts = catch(&[Signal::INT, Signal::TERM, Signal::HUP, Signal::TSTP, Signal::WINCH])?;
    match tui::run(options, &interrupts).map_err(|error| failure(&error))? {
        Some(signal) => interrupts.end_by(signal),
        None => Ok(()),
    }
}

fn check_terminal(context: &Context) -> Result<(), Failure> {
    let has_cursor = std::env::var_os("TERM").is_some_and(|name| !name.is_empty() && name != "dumb");
    if context.json || context.quiet {
        return Err(Failure::usage("top draws on a terminal, and has neither --json nor --quiet")
            .with_hint("`queuectl status --watch --json` prints for programs"));
    }
    if !context.stdout_is_terminal || !io::stdin().is_terminal() || !has_cursor {
        return Err(Failure::usage("top needs a terminal")
            .with_hint("`queuectl status --watch` also works without one"));
    }
    Ok(())
}

fn store_flag(address: &OsString) -> [String; 2] {
    ["--store".to_owned(), address.to_string_lossy().into_owned()]
}

fn colors(context: &Context) -> Colors {
    if !context.has_colors() {
        return Colors::None;
    }
    match std::env::var("COLORTERM").as_deref() {
        Ok("truecolor" | "24bit") => Colors::True,
        Ok(_) | Err(_) => Colors::Sixteen,
    }
}

fn complete(words: &[String]) -> Vec<String> {
    match answer(words) {
        Answer::Values(candidates) => candidates.into_iter().map(|candidate| candidate.value).collect(),
        Answer::Files | Answer::Folders | Answer::Command(_) => Vec::new(),
    }
}

fn failure(error: &TopError) -> Failure {
    let message = chain(error);
    match error {
        TopError::Background => Failure::usage(message).with_hint("`fg` brings it to the foreground"),
        TopError::Terminal(_) => Failure::new(Exit::Failed, message),
    }
}
