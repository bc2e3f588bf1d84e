//! Finds where the command of a job begins among the words of a command line, so that `--` need not be typed.
//!
//! As with `nice` and `sudo`, everything from the first word that is neither a flag nor the value of one belongs to the
//! command: `queuectl run make -j4 test`. A single word, or a first word with a blank in it, is a line for the shell:
//! `queuectl enqueue "make && make test" --priority 5`.
//!
//! With `--each`, arguments may follow the command after `:::`, as with GNU parallel: `queuectl run --each gzip {} ::: *.log`.
//! Then `--each` takes no file.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};

use clap::{Arg, Command};

use crate::flags::each::ARGUMENTS;
use crate::verbs::jobs::typed_command::{begins_json, looks_like_split_json};

/// The verbs that take a command, and how many words of their own come before it.
const VERBS: [(&[&str], usize); 5] = [
    (&["enqueue"], 0),
    (&["run"], 0),
    (&["schedule", "add"], 1),
    (&["schedule", "edit"], 1),
    (&["hook", "add"], 1),
];

/// The words with the command marked: by `--` before its words, or by `--command` before a line.
pub(super) fn mark<'a>(root: &Command, words: &'a [OsString]) -> Cow<'a, [OsString]> {
    if let Some(marked) = mark_with_arguments(root, words) {
        return Cow::Owned(marked);
    }
    let Some(first) = scan(root, words, EachTakes::File).command else {
        return Cow::Borrowed(words);
    };
    let mut marked = words.to_vec();
    if is_line(words, first) {
        marked[first] = as_flag(&words[first]);
    } else {
        marked.insert(first, "--".into());
    }
    Cow::Owned(marked)
}

/// As [`mark`], for a command line with `--each` and `:::`. `None` if it is no such line.
fn mark_with_arguments(root: &Command, words: &[OsString]) -> Option<Vec<OsString>> {
    let arguments_at = words.iter().position(|word| word == ARGUMENTS)?;
    let before = &words[..arguments_at];
    let found = scan(root, before, EachTakes::Nothing);
    let mut marked = words.to_vec();
    marked[found.each?] = format!("{EACH}={ARGUMENTS}").into();
    match found.command {
        Some(first) if is_line(before, first) => {
            marked[first] = as_flag(&words[first]);
            marked.insert(arguments_at, "--".into());
        }
        Some(first) => marked.insert(first, "--".into()),
        None if found.is_marked => {}
        None => marked.insert(arguments_at, "--".into()),
    }
    Some(marked)
}

/// A line for the shell and the words after it, if one of them is neither a flag nor the value of one.
pub(super) fn line_with_words<'a>(root: &Command, words: &'a [OsString]) -> Option<&'a [OsString]> {
    if words.iter().any(|word| word == ARGUMENTS) {
        return None;
    }
    let Places { command, path, .. } = scan(root, words, EachTakes::File);
    let first = command.filter(|first| is_line(words, *first))?;
    // The verb explains how to quote JSON.
    if looks_like_split_json(words[first..].iter().filter_map(|word| word.to_str())) {
        return None;
    }
    let mut at = first + 1;
    while let Some(word) = words.get(at).filter(|word| *word != "--" && !is_other_input(word)) {
        if !is_flag(word) {
            return Some(&words[first..]);
        }
        at += if takes_next_word(&path, word) { 2 } else { 1 };
    }
    None
}

/// The first flag after a line for the shell that this command does not have, without its value.
pub(super) fn unknown_flag<'a>(command: &Command, line: &'a [OsString]) -> Option<&'a OsStr> {
    let words = line.iter().skip(1).take_while(|word| *word != "--");
    let mut long = words.filter_map(|word| word.to_str()).filter(|word| word.starts_with("--"));
    let is_known = |name: &str| command.get_arguments().any(|argument| has_long(argument, name));
    let name_of = |flag: &'a str| flag.split_once('=').map_or(flag, |(name, _)| name);
    long.by_ref().map(name_of).find(|name| !is_known(&name[2..])).map(OsStr::new)
}

/// The line for the shell that was given in addition to `--command`.
pub(super) fn line_beside_flag<'a>(root: &Command, words: &'a [OsString]) -> Option<&'a OsStr> {
    let first = scan(root, words, EachTakes::File).command?;
    is_line(words, first).then_some(words[first].as_os_str())
}

/// Whether the command that begins here is a line for the shell.
fn is_line(words: &[OsString], first: usize) -> bool {
    words.len() == first + 1 || words[first].to_string_lossy().contains(char::is_whitespace)
}

fn as_flag(line: &OsStr) -> OsString {
    let mut flag = OsString::from("--command=");
    flag.push(line);
    flag
}

const EACH: &str = "--each";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EachTakes {
    File,
    Nothing,
}

/// The places of words that matter here.
#[derive(Debug, Default)]
struct Places<'c> {
    /// Where the command begins; `None` if the verb takes none, or if it is marked already.
    command: Option<usize>,
    /// The verb that takes the command, after those that lead to it.
    path: Vec<&'c Command>,
    /// The last `--each` before it.
    each: Option<usize>,
    /// `--` marks the command.
    is_marked: bool,
}

fn scan<'c>(root: &'c Command, words: &[OsString], each_takes: EachTakes) -> Places<'c> {
    let mut path: Vec<&Command> = vec![root];
    let mut own_words = None;
    let mut places = Places::default();
    let mut at = 1;
    while at < words.len() {
        let word = words[at].as_os_str();
        if word == "--" {
            return Places { is_marked: true, ..places };
        }
        if is_flag(word) {
            let is_each = word == EACH && own_words.is_some();
            places.each = is_each.then_some(at).or(places.each);
            let is_alone = is_each && each_takes == EachTakes::Nothing;
            at += if !is_alone && takes_next_word(&path, word) { 2 } else { 1 };
            continue;
        }
        if let Some(verb) = word.to_str().and_then(|name| path.last()?.find_subcommand(name)) {
            path.push(verb);
            own_words = words_before_command(&path);
        } else {
            match own_words {
                None => return places,
                Some(0) => {
                    let is_command = places.each.is_some() || !is_other_input(word);
                    return Places { command: is_command.then_some(at), path, ..places };
                }
                Some(more) => own_words = Some(more - 1),
            }
        }
        at += 1;
    }
    places
}

pub(crate) fn words_before_command(path: &[&Command]) -> Option<usize> {
    let names: Vec<&str> = path[1..].iter().map(|command| command.get_name()).collect();
    VERBS.iter().find(|(verb, _)| *verb == names).map(|(_, count)| *count)
}

/// Whether the verb with this path takes a command.
pub(super) fn takes_command(path: &str) -> bool {
    VERBS.iter().any(|(verb, _)| verb.iter().copied().eq(path.split(' ')))
}

/// JSON, or `-` for standard input.
pub(crate) fn is_other_input(word: &OsStr) -> bool {
    word == "-" || begins_json(&word.to_string_lossy())
}

pub(crate) fn is_flag(word: &OsStr) -> bool {
    word.len() > 1 && word.as_encoded_bytes().starts_with(b"-")
}

/// Whether the value of this flag is the next word, as in `--home DIR` and `-qf FILE`, but not in `--home=DIR` or `-fFILE`.
pub(crate) fn takes_next_word(path: &[&Command], flag: &OsStr) -> bool {
    let Some(flag) = flag.to_str() else {
        return false;
    };
    let arguments = || path.iter().flat_map(|command| command.get_arguments());
    let takes_value = |argument: &Arg| argument.get_action().takes_values();
    if let Some(long) = flag.strip_prefix("--") {
        return arguments().any(|argument| takes_value(argument) && has_long(argument, long));
    }
    let is_taker =
        |letter: char| arguments().any(|argument| takes_value(argument) && has_short(argument, letter));
    // The rest after the first letter that takes a value is that value.
    let mut letters = flag.chars().skip(1);
    letters.any(is_taker) && letters.next().is_none()
}

pub(crate) fn has_short(argument: &Arg, letter: char) -> bool {
    argument.get_short() == Some(letter)
        || argument.get_all_short_aliases().is_some_and(|aliases| aliases.contains(&letter))
}

pub(crate) fn has_long(argument: &Arg, long: &str) -> bool {
    argument.get_long() == Some(long)
        || argument.get_all_aliases().is_some_and(|aliases| aliases.contains(&long))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::whole;

    fn marked(line: &[&str]) -> Vec<String> {
        let words: Vec<OsString> = line.iter().map(OsString::from).collect();
        mark(&whole(), &words).iter().map(|word| word.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn the_first_word_that_is_no_flag_begins_the_command() {
        for (typed, expected) in [
            ("queuectl run make -j4 test", "queuectl run -- make -j4 test"),
            ("queuectl --home h -q run make x", "queuectl --home h -q run -- make x"),
            (
                "queuectl enqueue --priority 5 make --priority",
                "queuectl enqueue --priority 5 -- make --priority",
            ),
            ("queuectl enqueue -p 5 -Q q make -p", "queuectl enqueue -p 5 -Q q -- make -p"),
            ("queuectl enqueue -p5 -qQ q make x", "queuectl enqueue -p5 -qQ q -- make x"),
            ("queuectl enqueue --priority=5 make x", "queuectl enqueue --priority=5 -- make x"),
            ("queuectl enqueue enqueue run", "queuectl enqueue -- enqueue run"),
            (
                "queuectl schedule add nightly --every 1h make x",
                "queuectl schedule add nightly --every 1h -- make x",
            ),
            (
                "queuectl schedule edit nightly --every 1h make x",
                "queuectl schedule edit nightly --every 1h -- make x",
            ),
            ("queuectl hook add h --on dead mail root", "queuectl hook add h --on dead -- mail root"),
        ] {
            let typed: Vec<&str> = typed.split(' ').collect();
            assert_eq!(marked(&typed).join(" "), expected);
        }
    }

    #[test]
    fn one_word_and_a_word_with_a_blank_are_lines_for_the_shell() {
        assert_eq!(marked(&["queuectl", "run", "make"]), ["queuectl", "run", "--command=make"]);
        assert_eq!(
            marked(&["queuectl", "enqueue", "echo hi; ls", "--priority", "5"]),
            ["queuectl", "enqueue", "--command=echo hi; ls", "--priority", "5"]
        );
    }

    #[test]
    fn arguments_after_three_colons_make_each_take_no_file() {
        for (typed, expected) in [
            ("enqueue --each gzip -9 {} ::: a b", "enqueue --each=::: -- gzip -9 {} ::: a b"),
            ("run --each -q convert {} {.}.png ::: a", "run --each=::: -q -- convert {} {.}.png ::: a"),
            ("run --each gzip ::: a b", "run --each=::: --command=gzip -- ::: a b"),
            ("run --each -- gzip {} ::: a -- b", "run --each=::: -- gzip {} ::: a -- b"),
            ("run --each --command x ::: a", "run --each=::: --command x -- ::: a"),
            ("run --each {} x ::: a", "run --each=::: -- {} x ::: a"),
            ("run --each ::: a", "run --each=::: -- ::: a"),
            ("run --each list gzip {}", "run --each list -- gzip {}"),
            ("run --each=list gzip {} ::: a", "run --each=list -- gzip {} ::: a"),
            ("run echo --each ::: a", "run -- echo --each ::: a"),
            ("run echo ::: a", "run -- echo ::: a"),
            ("hook add h echo --each ::: a", "hook add h -- echo --each ::: a"),
        ] {
            let typed = format!("queuectl {typed}");
            let typed: Vec<&str> = typed.split(' ').collect();
            assert_eq!(marked(&typed).join(" "), format!("queuectl {expected}"));
        }
        assert_eq!(
            marked(&["queuectl", "run", "--each", "gzip < {}", "--json", ":::", "a", "b"]),
            ["queuectl", "run", "--each=:::", "--command=gzip < {}", "--json", "--", ":::", "a", "b"]
        );
    }

    #[test]
    fn json_standard_input_and_marked_commands_are_left_alone() {
        for line in [
            "queuectl enqueue {} --json",
            "queuectl enqueue [{}]",
            "queuectl enqueue -",
            "queuectl enqueue -- make test",
            "queuectl enqueue --file x",
            "queuectl enqueue -f x",
            "queuectl enqueue -c make --json",
            "queuectl run {command:x}",
            "queuectl run [x",
            "queuectl list make",
            "queuectl schedule add nightly",
            "queuectl schedule edit nightly --every 1h",
            "queuectl",
        ] {
            let words: Vec<&str> = line.split(' ').collect();
            assert_eq!(marked(&words), words, "{line}");
        }
    }
}
