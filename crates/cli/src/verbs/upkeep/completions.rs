//! `queuectl completions`

use std::io::{self, Write};

use crate::completion::shell::Shell;
use crate::context::Context;
use crate::failure::Failure;

/// Print a shell completion script
///
/// The script asks queuectl at each TAB, so it completes what is in your queue: numbers of jobs with their states and
/// commands, ids, queues, batches, schedules, hooks, workers, settings and their values. After `queuectl run` the shell
/// completes the command as if it were typed alone.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  queuectl completions bash > ~/.local/share/bash-completion/completions/queuectl
  queuectl completions zsh > \"${fpath[1]}/_queuectl\"
  queuectl completions fish > ~/.config/fish/completions/queuectl.fish
  source <(queuectl completions bash)")]
pub(crate) struct Args {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(args: &Args, _: &Context) -> Result<(), Failure> {
    io::stdout().write_all(args.shell.script().as_bytes())?;
    Ok(())
}
