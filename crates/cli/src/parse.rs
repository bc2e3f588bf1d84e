//! Parses the command line into the verb that was asked for and its arguments.
//!
//! Describing every verb to clap takes longer than all else that an `enqueue` does before it writes. So the parser first
//! describes the one verb that was asked for. The whole tree is built only to answer everything else: errors, which name
//! similar verbs and flags, and help. A command line without a verb gets a hidden one.

pub(crate) mod aliases;
pub(crate) mod command_words;
mod suggest;

use std::ffi::{OsStr, OsString};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, Command, CommandFactory, FromArgMatches};

use self::command_words::takes_next_word;
use super::failure::Failure;
use super::flags::each::HOW_TO_WRITE_EACH;
use super::render::help_groups;
use super::root::{Cli, Global};
use super::verbs;
use super::verbs::jobs::schedule::no_time;
use super::verbs::jobs::typed_command::begins_json;
use super::verbs::{GROUPS, Verb};
use domain::text::shell::quote_words;

/// A command line that clap accepts.
pub(super) struct CommandLine {
    pub(super) global: Global,
    pub(super) verb: &'static dyn Verb,
    pub(super) arguments: ArgMatches,
}

pub(super) fn parse(words: &[OsString]) -> Result<CommandLine, clap::Error> {
    let root = Cli::command();
    let words = &aliases::expand(&root, words);
    let parsed = if place_of_verb(&root, words).is_none() {
        parse_one_verb(root, &[&words[..], &[verbs::NO_VERB.into()]].concat())
    } else {
        parse_one_verb(root, words)
    };
    match parsed {
        Ok(line) => Ok(line),
        // The version does not depend on the verbs.
        Err(error) if error.kind() == ErrorKind::DisplayVersion => Err(error),
        Err(_) => parse_by(help_groups::grouped(whole()), words),
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
fn parse_one_verb(root: Command, words: &[OsString]) -> Result<CommandLine, clap::Error> {
    let verb = place_of_verb(&root, words).and_then(|at| verbs::find(words[at].to_str()?));
    parse_by(root.subcommands(verb.map(Verb::describe)), words)
}

fn parse_by(command: Command, words: &[OsString]) -> Result<CommandLine, clap::Error> {
    if command_words::line_with_words(&command, words).is_some() {
        return Err(clap::Error::new(ErrorKind::UnknownArgument));
    }
    let words = command_words::mark(&command, words);
    let mut matches = command.try_get_matches_from(words.iter())?;
    let Cli { global } = Cli::from_arg_matches_mut(&mut matches)?;
    let (name, arguments) = matches.remove_subcommand().expect("the parser requires a verb");
    let verb = verbs::find(&name).expect("the parser accepts the names in the table only");
    Ok(CommandLine { global, verb, arguments })
}

/// The failure for words that could not be parsed: clap's message, with a hint of ours.
pub(super) fn explain(error: &clap::Error, words: &[OsString]) -> Failure {
    let named = |kind| match error.get(kind) {
        Some(ContextValue::String(typed)) => Some(typed.as_str()),
        _ => None,
    };
    let mut root = whole();
    root.build();
    let words = aliases::expand(&Cli::command(), words);
    let (command, path) = verb_of(&root, &words);
    if let Some(line) = command_words::line_with_words(&root, &words) {
        if let Some(failure) =
            command_words::unknown_flag(command, line).and_then(|flag| unknown_flag(command, &path, flag))
        {
            return failure;
        }
        let line: Vec<String> = line.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let hint = format!("for a program with a blank in its name, write `-- {}`", quote_words(&line));
        return Failure::usage(format!("`{}` is a shell line, so only flags may follow it", line[0]))
            .with_hint(hint);
    }
    if let (ErrorKind::ArgumentConflict, Some(extra)) =
        (error.kind(), command_words::line_beside_flag(&root, &words).map(OsStr::to_string_lossy))
        && named(ContextKind::InvalidArg).is_some_and(|flag| flag.starts_with("--command "))
    {
        return Failure::usage(format!("`{extra}` is one command too many: --command has the whole command"))
            .with_hint("put a shell line in quotes, as in --command \"make test\", or leave out --command");
    }
    let verb = named(ContextKind::InvalidSubcommand).filter(|_| error.kind() == ErrorKind::InvalidSubcommand);
    if let Some(typed) = verb {
        // The words after it are not verbs, even if some are spelled like one.
        let before = words.iter().position(|word| word == typed).unwrap_or(words.len());
        let (command, path) = verb_of(&root, &words[..before]);
        return unknown_verb(command, &path, typed);
    }
    let flag = named(ContextKind::InvalidArg).filter(|_| error.kind() == ErrorKind::UnknownArgument);
    if let Some(word) = flag.filter(|word| begins_json(word) && command_words::takes_command(&path)) {
        return Failure::usage(format!("`{word}` is not a command; it looks like JSON"))
            .with_hint(suggest::INSTEAD_OF_JSON);
    }
    let hint = flag.and_then(|typed| suggest::instead_of_flag(command, &path, typed));
    let value = || {
        let Some(ContextValue::Strings(known)) = error.get(ContextKind::ValidValue) else {
            return None;
        };
        suggest::instead_of_value(named(ContextKind::InvalidValue)?, known)
    };
    if let Some(ContextValue::Strings(missing)) = error.get(ContextKind::InvalidArg)
        && missing.iter().any(|group| group.starts_with("<--cron "))
    {
        return no_time();
    }
    let is_each = || match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(flag)) => flag.starts_with("--each "),
        // A flag that needs `--each`.
        Some(ContextValue::Strings(missing)) => missing.iter().any(|flag| flag.starts_with("--each ")),
        _ => false,
    };
    let hint = hint.or_else(value).or_else(|| is_each().then(|| HOW_TO_WRITE_EACH.to_owned()));
    let failure = Failure::from_usage(error);
    hint.map_or(failure.clone(), |hint| failure.with_hint(hint))
}

/// The failure for a flag that does not exist but has a similar name.
fn unknown_flag(command: &Command, path: &str, flag: &OsStr) -> Option<Failure> {
    let flag = flag.to_str()?;
    let hint = suggest::instead_of_flag(command, path, flag)?;
    Some(Failure::usage(format!("unexpected argument '{flag}' found")).with_hint(hint))
}

/// The failure for a verb that does not exist below `command`, whose verbs before it are `path`.
pub(super) fn unknown_verb(command: &Command, path: &str, typed: &str) -> Failure {
    // `help` has no commands of its own.
    let listed = path.strip_prefix("help").unwrap_or(path).trim_start();
    let all = format!("`{} --help` lists the commands", ["queuectl", listed].join(" ").trim_end());
    let hint = suggest::instead_of_verb(command, path, typed).unwrap_or(all);
    Failure::usage(format!("unknown command `{typed}`")).with_hint(hint)
}

/// The deepest verb that the words name, and the names on the way to it.
fn verb_of<'a>(root: &'a Command, words: &[OsString]) -> (&'a Command, String) {
    let (mut command, mut path) = (root, Vec::new());
    let words = words.iter().skip(1).filter_map(|word| word.to_str()).take_while(|word| *word != "--");
    for word in words {
        if let Some(verb) = command.find_subcommand(word) {
            command = verb;
            path.push(verb.get_name());
        }
    }
    (command, path.join(" "))
}

/// The place of the first word that is neither a flag nor the value of one: of the verb, if there is one.
pub(crate) fn place_of_verb(root: &Command, words: &[OsString]) -> Option<usize> {
    let mut at = 1;
    loop {
        match words.get(at)?.to_str()? {
            "--" => return None,
            flag if flag.starts_with('-') => {
                at += if takes_next_word(&[root], flag.as_ref()) { 2 } else { 1 };
            }
            _ => return Some(at),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Command lines for which one verb is enough.
    const ORDINARY: [&str; 24] = [
        "enqueue -- echo hi",
        "enqueue -- enqueue",
        "enqueue {}",
        "enqueue --command true",
        "enqueue --id a --queue q --priority -3 --tag x,y -- true",
        "enqueue --each - --csv --batch b -- echo {}",
        "--home /tmp/x enqueue --json -q -- echo -- --home y",
        "-q enqueue --home /tmp/x [{}]",
        "--home list status",
        "--color=always --store=x config set lease 60s",
        "status --json",
        "list --state dead --limit 3",
        "logs --follow job",
        "run -- make test",
        "worker start --count 3 --color never",
        "worker list",
        "schedule add nightly --every 1h -- true",
        "batch status nightly",
        "dlq retry --all",
        "completions bash",
        "enqueue -p high -Q q -t 1m -d 5 -c make",
        "enqueue -f jobs.json",
        "list -s dead -n 3 -Q q",
        "worker start -c 2 -j 4",
    ];

    /// Command lines that the whole tree answers.
    const EXTRAORDINARY: [&str; 32] = [
        "-h",
        "--help",
        "help",
        "help enqueue",
        "help worker start",
        "enqueue -h",
        "enqueue --help -- true",
        "worker",
        "worker help",
        "worker start --help",
        "worker strat",
        "worker start stop",
        "lst",
        "enq -- true",
        "lst --state dead",
        "--state dead list",
        "list --stat dead",
        "list --limit x",
        "list list",
        "list -V",
        "show --columns id",
        "enqueue --version",
        "enqueue --queue",
        "enqueue --home",
        "--home",
        "--hom x list",
        "--color blue list",
        "-x list",
        "- list",
        "-- list",
        "-q -q list",
        "__post --nope",
    ];

    fn split(line: &str) -> Vec<OsString> {
        std::iter::once("queuectl").chain(line.split_whitespace()).map(OsString::from).collect()
    }

    fn found(line: &str) -> Option<&'static str> {
        let words = split(line);
        let at = place_of_verb(&Cli::command(), &words)?;
        words[at].to_str().and_then(verbs::find).map(Verb::name)
    }

    /// All that a caller can see of the answer.
    fn shown(answer: Result<CommandLine, clap::Error>) -> String {
        match answer {
            Ok(line) => format!("{:?} {} {:?}", line.global, line.verb.name(), line.arguments),
            Err(error) => format!("{:?} {}", error.kind(), error.render().ansi()),
        }
    }

    fn by_whole(line: &str) -> Result<CommandLine, clap::Error> {
        parse_by(help_groups::grouped(whole()), &split(line))
    }

    /// Every path from the root to a verb of a verb, with all names that it has.
    fn paths(command: &Command) -> Vec<String> {
        let mut paths = Vec::new();
        for verb in command.get_subcommands() {
            for name in verb.get_all_aliases().chain([verb.get_name()]) {
                paths.push(name.to_owned());
                paths.extend(self::paths(verb).iter().map(|rest| format!("{name} {rest}")));
            }
        }
        paths
    }

    #[test]
    fn no_verb_has_two_flags_of_one_name() {
        whole().debug_assert();
    }

    /// Each short flag, and the long ones that it stands for.
    const SHORT: [(char, &[&str]); 16] = [
        ('a', &["depends-on"]),
        ('c', &["command", "count"]),
        ('d', &["delay"]),
        ('f', &["follow", "file", "force"]),
        ('h', &["help"]),
        ('j', &["concurrency"]),
        ('n', &["limit", "count", "tail"]),
        ('o', &["output"]),
        ('p', &["priority"]),
        ('q', &["quiet"]),
        ('Q', &["queue", "set-queue"]),
        ('s', &["state"]),
        ('t', &["timeout"]),
        ('V', &["version"]),
        ('w', &["watch"]),
        ('y', &["yes"]),
    ];

    #[test]
    fn a_letter_means_the_same_everywhere_and_no_flag_lacks_its_letter() {
        fn visit(command: &Command) {
            for flag in command.get_arguments() {
                let long = flag.get_long().unwrap_or_default();
                let letters =
                    flag.get_short().into_iter().chain(flag.get_all_short_aliases().unwrap_or_default());
                let letters: Vec<char> = letters.collect();
                let stands_for =
                    |letter: char| SHORT.iter().any(|(short, of)| *short == letter && of.contains(&long));
                assert!(
                    letters.iter().all(|letter| stands_for(*letter)),
                    "{} --{long}: {letters:?}",
                    command.get_name()
                );
                // In `retry`, the letter of the queue selects jobs. A hidden flag is only refused.
                let is_exempt = long == "set-queue" || flag.is_hide_set();
                let has_letter = SHORT.iter().any(|(_, of)| of.contains(&long)) && !is_exempt;
                assert!(!has_letter || !letters.is_empty(), "{} --{long} has no letter", command.get_name());
            }
            command.get_subcommands().for_each(visit);
        }
        visit(&whole());
    }

    #[test]
    fn every_verb_of_the_whole_tree_is_found() {
        let paths = paths(&whole());
        assert!(paths.iter().any(|path| path == "worker start") && paths.len() > 60, "{paths:?}");
        for path in paths {
            let verb = found(&path).unwrap_or_else(|| panic!("`{path}` is not found"));
            assert!(path.starts_with(verb), "`{path}` is taken for {verb}");
            let help = format!("{path} --help");
            let lazy =
                parse_one_verb(Cli::command(), &split(&help)).map(|_| ()).expect_err("help is not a verb");
            let whole = by_whole(&help).map(|_| ()).expect_err("help is not a verb");
            assert_eq!(lazy.kind(), ErrorKind::DisplayHelp, "{path}");
            assert_eq!(lazy.render().ansi().to_string(), whole.render().ansi().to_string(), "{path}");
        }
    }

    #[test]
    fn flags_before_the_verb_are_stepped_over() {
        let root = Cli::command();
        let mut flags = 0;
        for flag in root.get_arguments() {
            let long = flag.get_long().map(|long| format!("--{long}"));
            for name in long.into_iter().chain(flag.get_short().map(|short| format!("-{short}"))) {
                flags += 1;
                if flag.get_action().takes_values() {
                    assert_eq!(found(&format!("{name} show list")), Some("list"), "{name} VALUE");
                    assert_eq!(found(&format!("{name}=show list")), Some("list"), "{name}=VALUE");
                } else {
                    assert_eq!(found(&format!("{name} list")), Some("list"), "{name}");
                }
            }
        }
        assert!(flags > 4, "{flags}");
    }

    #[test]
    fn words_that_name_no_verb_are_not_found() {
        for line in ["", "--json", "--home", "--home list", "-- list", "lst", "enq", "LIST", "help", "--help"]
        {
            assert_eq!(found(line), None, "{line}");
        }
    }

    #[test]
    fn an_ordinary_command_line_needs_only_its_verb() {
        for line in ORDINARY {
            let lazy = parse_one_verb(Cli::command(), &split(line));
            assert!(lazy.is_ok(), "{line}: {}", shown(lazy));
        }
    }

    #[test]
    fn every_command_line_gets_the_answer_of_the_whole_tree() {
        for line in ORDINARY.iter().chain(&EXTRAORDINARY).chain(&["-V", "--version", "-qV", "-V list"]) {
            assert_eq!(shown(parse(&split(line))), shown(by_whole(line)), "{line}");
        }
    }

    #[test]
    fn a_command_line_without_a_verb_is_answered_by_the_summary() {
        for line in ["", "--json", "-q", "--home list", "--home=x --utc", "--color never"] {
            let answer = parse(&split(line)).ok().map(|line| line.verb.name());
            assert_eq!(answer, Some(verbs::NO_VERB), "{line}");
        }
        for line in ["--home", "-x", "--bogus", "--", "-h", "-V", "worker"] {
            assert!(parse(&split(line)).is_err(), "{line}");
        }
    }

    #[test]
    fn a_word_that_is_not_text_is_left_to_the_whole_tree() {
        use std::os::unix::ffi::OsStringExt;
        let odd = OsString::from_vec(vec![b'x', 0xff]);
        let words = |before: &[&str], after: &[&str]| -> Vec<OsString> {
            let words = before.iter().map(OsString::from).chain([odd.clone()]);
            words.chain(after.iter().map(OsString::from)).collect()
        };
        assert_eq!(place_of_verb(&Cli::command(), &words(&["queuectl"], &["list"])), None);
        let home = words(&["queuectl", "--home"], &["list"]);
        assert_eq!(place_of_verb(&Cli::command(), &home), Some(3));
        assert_eq!(
            parse_one_verb(Cli::command(), &home).map(|line| line.global.home).ok(),
            Some(Some(odd.into()))
        );
    }
}
