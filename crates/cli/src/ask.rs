//! Asking before something that cannot be undone.

use std::io::{self, BufRead, IsTerminal, Write};

use super::context::Context;
use super::failure::{Exit, Failure};
use super::render::text::jobs;

/// Goes on if the answer is yes, if `--yes` was given, or if only one job is at stake.
pub(super) fn confirm(context: &Context, what: &str, count: u64, yes: bool) -> Result<(), Failure> {
    if yes || count <= 1 {
        return Ok(());
    }
    ask(context, &format!("{what} {}", jobs(count)), false)
}

/// Whether a person sees what is said, and can answer.
pub(super) fn somebody_is_there() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Goes on if the answer is yes, or if `--yes` was given.
pub(super) fn ask(context: &Context, what: &str, yes: bool) -> Result<(), Failure> {
    if yes {
        return Ok(());
    }
    if !somebody_is_there() {
        return Err(Failure::usage(format!("this would {what}")).with_hint("say --yes if you mean it"));
    }
    write!(context.notes(), "{what}? [y/N] ")?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    if matches!(answer.trim(), "y" | "Y" | "yes") {
        return Ok(());
    }
    Err(Failure::new(Exit::Failed, "nothing was changed"))
}
