//! Which part of a command line the cursor is in.

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Arg, ArgAction, Command};

use crate::parse::aliases;
use crate::parse::command_words::{
    has_long, has_short, is_flag, is_other_input, takes_next_word, words_before_command,
};
use ops::home::location::LocationArgs;

/// A command line up to the cursor.
#[derive(Debug)]
pub(crate) struct Line<'t> {
    /// The verbs that were typed, from the root.
    pub(crate) path: Vec<&'t Command>,
    /// The flags that were typed.
    pub(crate) flags: Vec<&'t Arg>,
    /// The words that are neither verbs nor flags.
    pub(crate) words: Vec<String>,
    /// The word at the cursor.
    pub(crate) typed: String,
    /// Its index.
    pub(crate) index: usize,
    pub(crate) place: Place<'t>,
    pub(crate) location: LocationArgs,
}

/// What the word at the cursor is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place<'t> {
    /// A verb, or an argument that has no flag.
    Word,
    Flag,
    /// The value of a flag; it begins at this byte of the word.
    Value(&'t Arg, usize),
    /// Part of the command of a job, which begins at this word of the line.
    Command(usize),
}

impl<'t> Line<'t> {
    /// Reads the words of a line; the last one is at the cursor.
    pub(crate) fn read(root: &'t Command, words: &[String]) -> Self {
        let (typed, before) = words.split_last().map_or(("", &[][..]), |(last, rest)| (last.as_str(), rest));
        let before: Vec<OsString> = before.iter().map(OsString::from).collect();
        let expanded = aliases::expand(root, &before);
        let added = expanded.len() - before.len();
        let mut line = Self {
            path: vec![root],
            flags: Vec::new(),
            words: Vec::new(),
            typed: typed.to_owned(),
            index: words.len().saturating_sub(1),
            place: Place::Word,
            location: LocationArgs::default(),
        };
        let before: Vec<Cow<'_, str>> = expanded.iter().map(|word| word.to_string_lossy()).collect();
        line.place = match line.walk(&before) {
            Place::Command(at) => Place::Command(at - added),
            Place::Word => line.place_of_typed(),
            place @ (Place::Flag | Place::Value(..)) => place,
        };
        line
    }

    /// The names of the verbs: `worker start`.
    pub(crate) fn verb(&self) -> String {
        self.path[1..].iter().map(|verb| verb.get_name()).collect::<Vec<_>>().join(" ")
    }

    /// The verb itself.
    pub(crate) fn command(&self) -> &'t Command {
        self.path.last().expect("the path begins with the root")
    }

    /// The arguments of the verb, and those of every verb.
    pub(crate) fn arguments(&self) -> impl Iterator<Item = &'t Arg> {
        self.path.iter().rev().flat_map(|command| command.get_arguments())
    }

    /// Steps over the words before the cursor, and finds what the next one is as far as they decide it.
    fn walk(&mut self, before: &[Cow<'_, str>]) -> Place<'t> {
        // How many words come before the command, if the verb takes one that has not begun.
        let mut own_words = None;
        let mut at = 1;
        while at < before.len() {
            let word = before[at].as_ref();
            at += 1;
            if word == "--" {
                return Place::Command(at);
            }
            if is_flag(word.as_ref()) {
                let flag = self.note_flag(word);
                if takes_next_word(&self.path, word.as_ref()) {
                    let Some(value) = before.get(at) else {
                        return flag.map_or(Place::Word, |flag| Place::Value(flag, 0));
                    };
                    self.note_value(flag, value);
                    at += 1;
                }
            } else if let Some(verb) = self.command().find_subcommand(word) {
                self.path.push(verb);
                own_words = words_before_command(&self.path);
            } else {
                match own_words {
                    // A line for the shell is one word; flags may follow.
                    Some(0) if is_other_input(word.as_ref()) || word.contains(char::is_whitespace) => {
                        own_words = None;
                    }
                    Some(0) => return Place::Command(at - 1),
                    Some(more) => own_words = Some(more - 1),
                    None => {}
                }
                self.words.push(word.to_owned());
            }
        }
        if own_words == Some(0) && !self.typed.starts_with('-') {
            return Place::Command(before.len().max(1));
        }
        Place::Word
    }

    fn note_flag(&mut self, word: &str) -> Option<&'t Arg> {
        let (name, value) = word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
        let flag = self.flag(name);
        self.flags.extend(flag);
        if let Some(value) = value {
            self.note_value(flag, value);
        }
        flag
    }

    /// Remembers where the queue is.
    fn note_value(&mut self, flag: Option<&Arg>, value: &str) {
        match flag.and_then(Arg::get_long) {
            Some("home") => self.location.home = Some(expand_tilde(value)),
            Some("store") => self.location.store = Some(expand_tilde(value).into()),
            _ => {}
        }
    }

    fn place_of_typed(&self) -> Place<'t> {
        if !self.typed.starts_with('-') {
            return Place::Word;
        }
        let value = self.typed.split_once('=').and_then(|(name, _)| {
            let flag = self.flag(name).filter(|flag| flag.get_action().takes_values())?;
            Some(Place::Value(flag, name.len() + 1))
        });
        value.unwrap_or(Place::Flag)
    }

    /// The flag with this name; of several letters, the last one.
    fn flag(&self, name: &str) -> Option<&'t Arg> {
        if let Some(long) = name.strip_prefix("--") {
            return self.arguments().find(|argument| has_long(argument, long));
        }
        let letter = name.chars().last()?;
        self.arguments().find(|argument| has_short(argument, letter))
    }

    /// The argument without a flag that the word at the cursor would be.
    pub(crate) fn positional(&self) -> Option<&'t Arg> {
        let mut arguments = self.command().get_positionals().filter(|argument| !argument.is_last_set());
        let mut last = None;
        for _ in 0..=self.words.len() {
            match arguments.next() {
                Some(argument) => last = Some(argument),
                // The last one takes all words that follow, if it takes several.
                None => return last.filter(|argument| matches!(argument.get_action(), ArgAction::Append)),
            }
        }
        last
    }
}

/// Shells hand over `~/x` as it was typed.
fn expand_tilde(typed: &str) -> PathBuf {
    match (typed.strip_prefix("~/"), std::env::var_os("HOME")) {
        (Some(rest), Some(home)) => PathBuf::from(home).join(rest),
        (None, _) | (_, None) => typed.into(),
    }
}
