//! Short names for verbs, known from other tools.

use std::borrow::Cow;
use std::ffi::OsString;

use clap::Command;

use super::place_of_verb;

/// Each alias, and the words that it stands for.
pub(crate) const ALIASES: [(&str, &[&str]); 8] = [
    ("add", &["enqueue"]),
    ("ls", &["list"]),
    ("log", &["logs"]),
    ("follow", &["logs", "-f"]),
    ("kill", &["cancel"]),
    ("rm", &["remove"]),
    ("ps", &["worker", "list"]),
    ("serve", &["dashboard"]),
];

/// The words with an alias replaced by what it stands for.
pub(crate) fn expand<'a>(root: &Command, words: &'a [OsString]) -> Cow<'a, [OsString]> {
    let place = place_of_verb(root, words);
    let Some((at, meant)) = place.and_then(|at| {
        let (_, meant) = ALIASES.iter().find(|(alias, _)| words[at] == *alias)?;
        Some((at, meant))
    }) else {
        return Cow::Borrowed(words);
    };
    let before = words[..at].iter().cloned();
    let meant = meant.iter().map(OsString::from);
    Cow::Owned(before.chain(meant).chain(words[at + 1..].iter().cloned()).collect())
}
