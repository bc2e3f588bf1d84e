//! Recognises commands for which a shell would only start one program.
//!
//! Starting the program without the shell is twice as fast, and the difference must not be observable. This module
//! therefore understands only the part of the shell language that means the same in every shell that may be `sh`, and
//! refuses when in doubt; `sh -c` then runs the command.

use super::{KEYWORDS, is_plain};

/// The builtins of dash and bash; then those of other shells that are not also names of programs.
#[rustfmt::skip]
const BUILTINS: [&str; 75] = [
    ".", ":", "[", "alias", "bg", "bind", "break", "builtin", "caller", "cd", "chdir", "command", "compgen",
    "complete", "compopt", "continue", "declare", "dirs", "disown", "echo", "enable", "eval", "exec", "exit",
    "export", "false", "fc", "fg", "getopts", "hash", "help", "history", "jobs", "kill", "let", "local", "logout",
    "mapfile", "popd", "printf", "pushd", "pwd", "read", "readarray", "readonly", "return", "set", "shift", "shopt",
    "source", "suspend", "test", "times", "trap", "true", "type", "typeset", "ulimit", "umask", "unalias", "unset",
    "wait",
    "autoload", "float", "functions", "global", "hist", "integer", "login", "nameref", "newgrp", "print", "repeat",
    "setopt", "whence",
];

/// The words of a command that consists of one program and its arguments and does not need a shell. The first word is the
/// program as it was typed; the caller searches for it as a shell would.
pub fn direct_words(command: &str) -> Option<Vec<String>> {
    let words = split(command)?;
    names_a_program(words.first()?).then_some(words)
}

/// The result of a command that is a builtin without arguments that always succeeds (`Some(true)`) or always fails
/// (`Some(false)`): any program that does the same can replace it.
pub fn fixed_result(command: &str) -> Option<bool> {
    match trim_blanks(command).trim_end_matches(is_blank) {
        "true" | ":" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

fn split(command: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut rest = trim_blanks(command);
    while !rest.is_empty() {
        let (word, after) = take_word(rest)?;
        words.push(word);
        rest = trim_blanks(after);
    }
    Some(words)
}

/// The first word of `text`, with its quotes removed, and the rest.
fn take_word(text: &str) -> Option<(String, &str)> {
    let mut word = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next().filter(|first| !is_blank(*first)) {
        let (part, after) = match first {
            '\'' => quoted(&rest[1..], '\'', is_visible)?,
            '"' => quoted(&rest[1..], '"', is_itself_in_double_quotes)?,
            plain if is_plain(plain) => split_where(rest, |next| !is_plain(next)),
            _ => return None,
        };
        word.push_str(part);
        rest = after;
    }
    Some((word, rest))
}

/// The text before the closing quote, and the text after it.
fn quoted(text: &str, quote: char, is_allowed: fn(char) -> bool) -> Option<(&str, &str)> {
    text.split_once(quote).filter(|(inside, _)| inside.chars().all(is_allowed))
}

fn split_where(text: &str, ends: fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(ends).unwrap_or(text.len()))
}

fn trim_blanks(text: &str) -> &str {
    text.trim_start_matches(is_blank)
}

fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t')
}

/// Excludes control characters, because some versions of bash use them as marks inside words, and everything beyond
/// ASCII, because its meaning depends on the locale.
fn is_visible(character: char) -> bool {
    matches!(character, ' '..='~')
}

fn is_itself_in_double_quotes(character: char) -> bool {
    is_visible(character) && !matches!(character, '$' | '`' | '\\' | '!')
}

/// Whether a shell would search for a program of this name. A word with `=` may be an assignment; a word that begins with
/// `%`, `-` or `+` may be taken for a job or an option.
fn names_a_program(word: &str) -> bool {
    let has_safe_start =
        word.starts_with(|first: char| first.is_ascii_alphanumeric() || "/._".contains(first));
    has_safe_start && !word.contains('=') && !KEYWORDS.contains(&word) && !BUILTINS.contains(&word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_and_quoted_words_are_split() {
        for (command, words) in [
            ("ls", vec!["ls"]),
            (" \tls\t -l  ", vec!["ls", "-l"]),
            ("./run.sh a,b c:d e@f g%h +i", vec!["./run.sh", "a,b", "c:d", "e@f", "g%h", "+i"]),
            ("dd if=/dev/zero of=x count=1", vec!["dd", "if=/dev/zero", "of=x", "count=1"]),
            ("convert 'a b.png' \"c d.jpg\"", vec!["convert", "a b.png", "c d.jpg"]),
            ("x 'a'\"b\"c'd'", vec!["x", "abcd"]),
            ("x '' \"\" ''\"\"", vec!["x", "", "", ""]),
            (r#"x '$HOME `a` \n ! * ~' "it's #1""#, vec!["x", r"$HOME `a` \n ! * ~", "it's #1"]),
            ("'l's", vec!["ls"]),
            ("'my program' x", vec!["my program", "x"]),
            ("/bin/echo if then", vec!["/bin/echo", "if", "then"]),
            ("/usr/bin/[ a", vec![]),
            ("7z x a", vec!["7z", "x", "a"]),
            ("_x", vec!["_x"]),
        ] {
            let expected = (!words.is_empty()).then(|| words.into_iter().map(str::to_owned).collect());
            assert_eq!(direct_words(command), expected, "{command}");
        }
    }

    #[test]
    fn every_special_character_is_refused_where_it_has_a_meaning() {
        for character in "|&;<>()$`\\*?[]#~{}!^\n\r\0\u{b}\u{c}\u{1}\u{7f}\u{85}\u{a0}\u{3000}é".chars() {
            for command in [
                format!("ls {character}"),
                format!("ls a{character}b"),
                format!("ls{character}"),
                format!("{character}ls"),
                format!("ls ''{character}"),
            ] {
                assert_eq!(direct_words(&command), None, "{command:?}");
            }
        }
        for character in "$`\\!\n\t\0\u{1}\u{7f}é".chars() {
            assert_eq!(direct_words(&format!("ls \"{character}\"")), None, "{character:?}");
        }
        for character in "\n\t\0\u{1}\u{7f}\u{a0}é".chars() {
            assert_eq!(direct_words(&format!("ls '{character}'")), None, "{character:?}");
        }
    }

    #[test]
    fn unclosed_quotes_and_empty_commands_are_refused() {
        for command in ["", " \t", "ls '", "ls \"", "ls 'a\"", "ls \"a'b", "''", "\"\" ls", "'' ls"] {
            assert_eq!(direct_words(command), None, "{command:?}");
        }
    }

    #[test]
    fn a_first_word_that_is_a_builtin_or_keyword_is_refused() {
        for word in BUILTINS.into_iter().chain(KEYWORDS) {
            for command in
                [word.to_owned(), format!("{word} a"), format!("'{word}' a"), format!("\"{word}\"")]
            {
                assert_eq!(direct_words(&command), None, "{command}");
            }
        }
        for command in ["a=b", "a=b ls", "a'=b' ls", "+x", "-x", "%1", "~/x", "@x", ",x", ":x"] {
            assert_eq!(direct_words(command), None, "{command}");
        }
    }

    #[test]
    fn only_a_bare_builtin_has_a_fixed_result() {
        for (command, result) in [
            ("true", Some(true)),
            (" \ttrue ", Some(true)),
            (":", Some(true)),
            ("false", Some(false)),
            ("true --help", None),
            ("true\n", None),
            ("'true'", None),
            (": a", None),
            ("/bin/true", None),
            ("", None),
        ] {
            assert_eq!(fixed_result(command), result, "{command:?}");
        }
    }
}
