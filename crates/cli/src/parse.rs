//! Parses the command line into the verb that was asked for and its arguments.
//!
//! Describing every verb to clap takes longer than all else that an `enqueue` does before it writes. So the parser first
//! describes the one verb that was asked for. The whole tree is built only to answer everything else: errors, which name
//! similar verbs and flags, help, and command lines without a verb.

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{ArgMatches, Command, CommandFactory, FromArgMatches};

use super::render::overview;
use super::root::{Cli, Global};
use super::verbs;
use super::verbs::{GROUPS, Verb};

/// A command line that clap accepts.
pub(super) struct CommandLine {
    pub(super) global: Global,
    pub(super) verb: &'static dyn Verb,
    pub(super) arguments: ArgMatches,
}

pub(super) fn parse(words: &[OsString]) -> Result<CommandLine, clap::Error> {
    match parse_one_verb(words) {
        Ok(line) => Ok(line),
        // The version does not depend on the verbs.
        Err(error) if error.kind() == ErrorKind::DisplayVersion => Err(error),
        Err(_) => parse_by(overview::grouped(whole()), words),
    }
}

/// The command line with every verb.
pub(super) fn whole() -> Command {
    GROUPS.iter().fold(Cli::command(), |root, group| {
        let is_hidden = group.heading.is_none();
        root.subcommands(group.verbs.iter().map(|verb| verb.describe().hide(is_hidden)))
    })
}

/// Whatever this accepts, the whole tree accepts too, and with the same result: both read the words in the same order,
/// and differ only in the verbs that were not asked for.
fn parse_one_verb(words: &[OsString]) -> Result<CommandLine, clap::Error> {
    let root = Cli::command().disable_help_subcommand(true);
    let verb = first_word(&root, words).and_then(verbs::find);
    parse_by(root.subcommands(verb.map(Verb::describe)), words)
}

fn parse_by(command: Command, words: &[OsString]) -> Result<CommandLine, clap::Error> {
    let mut matches = command.try_get_matches_from(words)?;
    let Cli { global } = Cli::from_arg_matches_mut(&mut matches)?;
    let (name, arguments) = matches.remove_subcommand().expect("the parser requires a verb");
    let verb = verbs::find(&name).expect("the parser accepts the names in the table only");
    Ok(CommandLine { global, verb, arguments })
}

/// The first word that is neither a flag nor the value of one: the verb, if there is one.
fn first_word<'a>(root: &Command, words: &'a [OsString]) -> Option<&'a str> {
    let mut words = words.iter().skip(1);
    loop {
        match words.next()?.to_str()? {
            "--" => return None,
            flag if flag.starts_with('-') => {
                if takes_next_word(root, flag) {
                    words.next();
                }
            }
            word => return Some(word),
        }
    }
}

/// Whether the value of this flag is the next word, as in `--home DIR`, but not in `--home=DIR`.
fn takes_next_word(root: &Command, flag: &str) -> bool {
    let mut takers = root.get_arguments().filter(|argument| argument.get_action().takes_values());
    match flag.strip_prefix("--") {
        Some(long) => takers.any(|taker| taker.get_long() == Some(long)),
        None => takers.any(|taker| taker.get_short().is_some_and(|short| flag[1..].chars().eq([short]))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_verb_has_two_flags_of_one_name() {
        whole().debug_assert();
    }
}
