//! The answer to a TAB: candidates, or the kind of words that the shell itself knows.

use std::str::FromStr;

use clap::builder::StyledStr;
use clap::{Arg, ArgAction, Command};

use domain::settings::{Durability, SettingKey, Traces};

use super::Candidate;
use super::place::{Line, Place};
use super::stored;
use super::subject::{ShellWord, Subject, subject};
use crate::flags::selection::STATE_WORDS;
use crate::help::request::GLOBALS;
use crate::parse::aliases::ALIASES;
use crate::parse::whole;
use crate::render::help_groups::HELP;
use domain::job::backoff::Strategy;

/// More are no help to a reader.
pub(crate) const MAX_CANDIDATES: usize = 200;
/// How much of a description is shown.
const MAX_ABOUT_CHARS: usize = 70;

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Values(Vec<Candidate>),
    Files,
    Folders,
    /// The words from this one on are a command of their own.
    Command(usize),
}

/// What can follow the words, the last of which is at the cursor.
pub(crate) fn answer(words: &[String]) -> Answer {
    let root = whole();
    let line = Line::read(&root, words);
    match line.place {
        Place::Command(at) => Answer::Command(at),
        Place::Flag => values(flags(&line), &line.typed),
        Place::Value(flag, begin) => value_of_flag(&line, flag, begin),
        Place::Word => word(&line),
    }
}

/// Those candidates that begin with what was typed.
fn values(mut candidates: Vec<Candidate>, typed: &str) -> Answer {
    candidates.retain(|candidate| candidate.value.starts_with(typed));
    candidates.retain(|candidate| is_one_word(&candidate.value));
    candidates.truncate(MAX_CANDIDATES);
    Answer::Values(candidates)
}

/// Whether a shell takes it for one plain word. Other tags can be typed, in quotes.
fn is_one_word(value: &str) -> bool {
    !value.is_empty() && value.chars().all(|c| c.is_ascii_alphanumeric() || "._:-/@%+,=".contains(c))
}

fn word(line: &Line<'_>) -> Answer {
    if line.words.first().is_some_and(|word| word == HELP) {
        let mut found = verbs_of(line.command());
        if line.path.len() == 1 {
            found.push(Candidate::new(GLOBALS, "The options of every command"));
        }
        return values(found, &line.typed);
    }
    if line.command().has_subcommands() && line.words.is_empty() {
        return values(verbs(line), &line.typed);
    }
    let Some(argument) = line.positional() else {
        let flags = if line.typed.is_empty() { flags(line) } else { Vec::new() };
        return values(flags, &line.typed);
    };
    let subject = subject(&line.verb(), argument);
    if let Subject::Shell(word) = subject {
        return left_to_shell(word, line.index);
    }
    let mut found = of_subject(line, subject, &line.typed);
    found.retain(|candidate| !line.words.contains(&candidate.value));
    values(found, &line.typed)
}

fn value_of_flag(line: &Line<'_>, flag: &Arg, begin: usize) -> Answer {
    let subject = subject(&line.verb(), flag);
    if let Subject::Shell(word) = subject {
        return left_to_shell(word, line.index);
    }
    let takes_list = flag.get_value_delimiter() == Some(',') || flag.get_long() == Some("on");
    let typed = &line.typed[begin..];
    let last = if takes_list { typed.rfind(',').map_or(0, |at| at + 1) } else { 0 };
    let (given, typed) = typed.split_at(last);
    let mut found = of_subject(line, subject, typed);
    found.retain(|candidate| !given.split(',').any(|given| given == candidate.value));
    // A value that begins with a hyphen is offered after a typed hyphen.
    found.retain(|candidate| typed.starts_with('-') || !candidate.value.starts_with('-'));
    for candidate in &mut found {
        candidate.value = format!("{}{given}{}", &line.typed[..begin], candidate.value);
    }
    values(found, &line.typed)
}

fn left_to_shell(word: ShellWord, at: usize) -> Answer {
    match word {
        ShellWord::File => Answer::Files,
        ShellWord::Folder => Answer::Folders,
        ShellWord::Command => Answer::Command(at),
    }
}

fn of_subject(line: &Line<'_>, subject: Subject, typed: &str) -> Vec<Candidate> {
    match subject {
        Subject::Words(words) => with_synonyms(words, typed),
        Subject::Verb => verbs_at(line.path[0], &line.words),
        Subject::SettingKey => {
            SettingKey::ALL.map(|key| Candidate::new(as_typed(key, typed), key.about())).into()
        }
        Subject::SettingValue => setting_values(line),
        Subject::TimeZone => {
            jiff::tz::db().available().map(|zone| Candidate::new(zone.to_string(), "")).collect()
        }
        Subject::Variable => {
            let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
            names.map(|name| Candidate::new(name, "")).collect()
        }
        Subject::Stored(names) => {
            let typed = typed.to_owned();
            let found =
                stored::ask(line.location.clone(), move |store| stored::candidates(store, names, &typed));
            found.unwrap_or_default()
        }
        Subject::Shell(_) | Subject::Free => Vec::new(),
    }
}

/// Another word for a state is offered only once it is begun.
fn with_synonyms(mut words: Vec<Candidate>, typed: &str) -> Vec<Candidate> {
    for (synonym, state) in STATE_WORDS {
        if !typed.is_empty() && words.iter().any(|word| word.value == state) {
            words.push(Candidate::new(synonym, state));
        }
    }
    words
}

/// A setting may be typed with hyphens or with underscores.
fn as_typed(key: SettingKey, typed: &str) -> String {
    if typed.contains('-') { key.name().replace('_', "-") } else { key.name().to_owned() }
}

fn setting_values(line: &Line<'_>) -> Vec<Candidate> {
    let Some(key) = line.words.first().and_then(|key| SettingKey::from_str(key).ok()) else {
        return Vec::new();
    };
    let found = stored::ask(line.location.clone(), |store| Ok((store.settings()?, store.default_settings())));
    let (mut stored, defaults) = found.unwrap_or_default();
    let (stored, default) = (stored.remove(&key), defaults.get(key));
    let choices = if key == SettingKey::BackoffStrategy {
        Strategy::ALL.map(Strategy::name).to_vec()
    } else if key == SettingKey::Durability {
        Durability::ALL.map(Durability::name).to_vec()
    } else if key == SettingKey::Traces {
        Traces::ALL.map(Traces::name).to_vec()
    } else if key == SettingKey::Autostart {
        vec!["on", "off"]
    } else if key == SettingKey::Concurrency {
        vec!["auto"]
    } else {
        Vec::new()
    };
    let mut found = vec![Candidate::new(default, "the default")];
    found.extend(stored.map(|value| Candidate::new(value, "the current value")));
    found.extend(choices.into_iter().map(|choice| Candidate::new(choice, "")));
    let mut known = std::collections::HashSet::new();
    found.retain(|candidate| known.insert(candidate.value.clone()));
    found
}

fn verbs(line: &Line<'_>) -> Vec<Candidate> {
    let mut found = verbs_of(line.command());
    if line.path.len() == 1 {
        found.push(Candidate::new(HELP, "Print the help of a command"));
        if !line.typed.is_empty() {
            found.extend(ALIASES.map(|(alias, words)| Candidate::new(alias, words.join(" "))));
        }
    }
    found
}

/// The verbs below the one with these names.
fn verbs_at(root: &Command, path: &[String]) -> Vec<Candidate> {
    let verb = path.iter().try_fold(root, |command, name| command.find_subcommand(name));
    verb.map(verbs_of).unwrap_or_default()
}

fn verbs_of(command: &Command) -> Vec<Candidate> {
    let shown = command.get_subcommands().filter(|verb| !verb.is_hide_set());
    shown.map(|verb| Candidate::new(verb.get_name(), about(verb.get_about()))).collect()
}

fn flags(line: &Line<'_>) -> Vec<Candidate> {
    let is_open = |flag: &Arg| {
        let repeats = matches!(flag.get_action(), ArgAction::Append);
        !flag.is_hide_set() && (repeats || !line.flags.iter().any(|given| given.get_id() == flag.get_id()))
    };
    let open = line.arguments().filter(|flag| is_open(flag));
    let mut found: Vec<Candidate> = open
        .filter_map(|flag| Some(Candidate::new(format!("--{}", flag.get_long()?), about(flag.get_help()))))
        .collect();
    found.push(Candidate::new("--help", "Print the complete help"));
    if line.path.len() == 1 {
        found.push(Candidate::new("--version", "Print the version"));
    }
    found
}

/// The beginning of a description, on one line.
fn about(text: Option<&StyledStr>) -> String {
    let text = text.map(ToString::to_string).unwrap_or_default();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.chars().count() <= MAX_ABOUT_CHARS {
        return text;
    }
    let short: String = text.chars().take(MAX_ABOUT_CHARS - 1).collect();
    format!("{}…", short.trim_end())
}

#[cfg(test)]
mod tests;
