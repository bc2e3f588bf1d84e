//! Which help a command line asks for.

use std::ffi::OsString;

use clap::Command;

use crate::parse::aliases;
use crate::parse::command_words::{is_flag, takes_next_word};
use crate::parse::place_of_verb;
use crate::render::help_groups::HELP;

/// The topic of `queuectl help globals`.
pub(crate) const GLOBALS: &str = "globals";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// `-h`
    Short,
    /// `--help`, and the verb `help`
    Full,
}

/// The level of the help that a command line asks for, and the verb that it is about.
pub(crate) fn read<'t>(root: &'t Command, words: &[OsString]) -> (Level, &'t Command) {
    let words = aliases::expand(root, words);
    let mut path = vec![root];
    let mut at = 1;
    let mut level = Level::Short;
    while let Some(word) = words.get(at).filter(|word| *word != "--") {
        at += 1;
        if is_flag(word) {
            match word.to_str() {
                Some("--help") => return (Level::Full, path[path.len() - 1]),
                Some(flag) if has_h(&path, flag) => return (Level::Short, path[path.len() - 1]),
                Some(_) | None => at += usize::from(takes_next_word(&path, word)),
            }
        } else if word == HELP {
            level = Level::Full;
        } else if let Some(verb) = word.to_str().and_then(|word| path[path.len() - 1].find_subcommand(word)) {
            path.push(verb);
        }
    }
    (level, path[path.len() - 1])
}

/// Whether `-h` is among these letters, before one that takes the rest of the word as its value.
fn has_h(path: &[&Command], flag: &str) -> bool {
    let letters = flag.strip_prefix('-').filter(|letters| !letters.starts_with('-')).unwrap_or_default();
    let takes_rest = |letter: char| takes_next_word(path, format!("-{letter}").as_ref());
    letters.chars().take_while(|letter| !takes_rest(*letter)).any(|letter| letter == 'h')
}

/// Whether the words are `help globals`, with or without such flags.
pub(crate) fn is_about_globals(root: &Command, words: &[OsString]) -> bool {
    let verb = place_of_verb(root, words).map_or(&[][..], |at| &words[at..]);
    verb.iter().filter(|word| !is_flag(word)).eq([HELP, GLOBALS])
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::parse::whole;
    use crate::root::Cli;

    #[test]
    fn the_first_flag_decides_and_values_of_flags_are_not_verbs() {
        let mut root = whole();
        root.build();
        for (line, level, verb) in [
            ("-h", Level::Short, "queuectl"),
            ("--help", Level::Full, "queuectl"),
            ("help", Level::Full, "queuectl"),
            ("worker", Level::Short, "worker"),
            ("worker start -h", Level::Short, "start"),
            ("worker start --help -h", Level::Full, "start"),
            ("-h --help", Level::Short, "queuectl"),
            ("help worker stop", Level::Full, "stop"),
            ("worker help stop", Level::Full, "stop"),
            ("--home list show -h", Level::Short, "show"),
            ("--home=list show -qh", Level::Short, "show"),
            ("list -sh --help", Level::Full, "list"),
            ("ps -h", Level::Short, "list"),
            ("enqueue -h -- --help", Level::Short, "enqueue"),
        ] {
            let words: Vec<OsString> =
                ["queuectl"].into_iter().chain(line.split(' ')).map(OsString::from).collect();
            let (found, command) = read(&root, &words);
            assert_eq!((found, command.get_name()), (level, verb), "{line}");
        }
    }

    #[test]
    fn the_topic_of_global_flags_is_found() {
        let root = Cli::command();
        let is =
            |line: &str| is_about_globals(&root, &line.split(' ').map(OsString::from).collect::<Vec<_>>());
        assert!(is("queuectl help globals") && is("queuectl --home x help globals --json"));
        assert!(!is("queuectl globals help") && !is("queuectl help") && !is("queuectl help globals x"));
    }
}
