//! Asking before something that cannot be undone.

use std::io::{self, BufRead, IsTerminal, Write};

use super::context::Context;
use super::failure::{Exit, Failure};
use super::text::jobs;

/// Goes on if the answer is yes, if `--yes` was given, or if only one job is at stake.
pub(super) fn confirm(context: &Context, what: &str, count: u64, yes: bool) -> Result<(), Failure> {
    if yes || count <= 1 {
        return Ok(());
    }
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err(Failure::usage(format!("this would {what} {}", jobs(count)))
            .with_hint("say --yes if you mean it"));
    }
    write!(context.notes(), "{what} {}? [y/N] ", jobs(count))?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    if matches!(answer.trim(), "y" | "Y" | "yes") {
        return Ok(());
    }
    Err(Failure::new(Exit::Failed, "nothing was changed"))
}
