//! `queuectl __complete`, which the scripts of `queuectl completions` call at each TAB.

use std::ffi::OsString;
use std::io::{self, Write};

use crate::completion::answer::answer;
use crate::completion::shell::Shell;
use crate::context::Context;
use crate::failure::Failure;

/// Print what can follow on a command line
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The shell
    shell: Shell,
    /// The words of the command line up to the cursor
    #[arg(last = true)]
    words: Vec<OsString>,
}

pub(crate) fn run(args: &Args, _: &Context) -> Result<(), Failure> {
    let words = args.words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let words = args.shell.unquoted(words);
    if let Some(typed) = words.last() {
        io::stdout().write_all(args.shell.format(&answer(&words), typed).as_bytes())?;
    }
    Ok(())
}
