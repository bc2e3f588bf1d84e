//! Asks for confirmation before something that cannot be undone.

use std::io::{self, BufRead, IsTerminal, Write};

use super::context::Context;
use super::failure::{Exit, Failure};
use super::render::text::jobs;

/// Succeeds if the answer is yes, if `--yes` was given, or if at most one job is affected.
pub(super) fn confirm(context: &Context, what: &str, count: u64, yes: bool) -> Result<(), Failure> {
    if yes || count <= 1 {
        return Ok(());
    }
    ask(context, &format!("{what} {}", jobs(count)), false)
}

/// Whether a person can read a question and answer it.
pub(super) fn is_interactive() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Succeeds if the answer is yes, or if `--yes` was given.
pub(super) fn ask(context: &Context, what: &str, yes: bool) -> Result<(), Failure> {
    if yes {
        return Ok(());
    }
    if !is_interactive() {
        return Err(Failure::usage(format!("this would {what}")).with_hint("confirm with --yes"));
    }
    write!(context.notes(), "{}? [y/N] ", capitalized(what))?;
    if is_yes(&read_answer()?) {
        return Ok(());
    }
    Err(Failure::new(Exit::Failed, "nothing was changed"))
}

/// Asks a question that Enter answers with yes. The end of the input means no.
pub(super) fn offer(context: &Context, what: &str) -> Result<bool, Failure> {
    write!(context.notes(), "{}? [Y/n] ", capitalized(what))?;
    let answer = read_answer()?;
    Ok(is_yes(&answer) || answer == "\n")
}

fn read_answer() -> io::Result<String> {
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(answer)
}

fn is_yes(answer: &str) -> bool {
    matches!(answer.trim(), "y" | "Y" | "yes")
}

fn capitalized(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}
