//! `queuectl completions`

use std::io;

use clap_complete::{Shell, generate};

use crate::context::Context;
use crate::failure::Failure;
use crate::parse::whole;

/// Print a shell completion script
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  queuectl completions bash > ~/.local/share/bash-completion/completions/queuectl
  queuectl completions zsh > \"${fpath[1]}/_queuectl\"
  queuectl completions fish > ~/.config/fish/completions/queuectl.fish")]
pub(crate) struct Args {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(args: &Args, _: &Context) -> Result<(), Failure> {
    let mut script = Vec::new();
    generate(args.shell, &mut whole(), "queuectl", &mut script);
    io::Write::write_all(&mut io::stdout(), &script)?;
    Ok(())
}
