//! Commands that run without a shell: each has the words that a shell would find, by rules written independently of the
//! code under test.

use domain::text::shell::{direct_words, fixed_result, quote_words};

pub const TOKENS: &[&str] = &[
    "ls", "echo", "true", ":", "false", " ", "\t", "\n", "'", "\"", "''", "\"\"", "'a b'", "\"a b\"", "\\",
    "$", "$HOME", "`", "*", "?", "[", "]", "{a,b}", "~", "#", "!", "|", "&", "&&", ";", "<", ">", "(", ")",
    "a=b", "-x", "--x=y", "%1", "+", "@", "^", "if", "then", "time", "exec", "cd", "/bin/ls", "./x", "é",
    "\u{a0}", "\0", "\r", "\u{7f}",
];

pub fn run(data: &[u8]) {
    let command = String::from_utf8_lossy(data);
    if let Some(words) = direct_words(&command) {
        assert_eq!(split(&command).as_ref(), Some(&words), "{command:?}");
        assert!(is_program(&words[0]), "{command:?}");
        assert_eq!(fixed_result(&command), None, "{command:?} has a fixed result and words");
        let quoted = direct_words(&quote_words(&words));
        assert!(quoted.is_none_or(|again| again == words), "{command:?} changes when it is quoted");
    }
    if let Some(succeeds) = fixed_result(&command) {
        let words = split(&command).expect("the command has words");
        assert!(
            matches!((words[0].as_str(), succeeds), ("true" | ":", true) | ("false", false)),
            "{command:?}"
        );
        assert_eq!(words.len(), 1, "{command:?}");
    }
    let words: Vec<String> = command.split(',').map(str::to_owned).collect();
    assert_eq!(split_quoted(&quote_words(&words)), words, "quoted words survive a round trip");
}

/// The words of a command in which only blanks and quotes are special. `None` if it contains any other special
/// character.
fn split(command: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for character in command.chars() {
        match (quote, character) {
            (None, '\'' | '"') => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (None, ' ' | '\t') => words.extend(word.take()),
            (
                None,
                '|' | '&' | ';' | '<' | '>' | '(' | ')' | '$' | '`' | '\\' | '*' | '?' | '[' | ']' | '#'
                | '~' | '{' | '}' | '!' | '^' | '\n',
            )
            | (Some('"'), '$' | '`' | '\\' | '!') => return None,
            (Some(open), close) if open == close => quote = None,
            (None | Some(_), other) if other.is_ascii_graphic() || (quote.is_some() && other == ' ') => {
                word.get_or_insert_default().push(other);
            }
            (None | Some(_), _) => return None,
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

/// Whether the first word can only be the name of a program: not an assignment, a keyword or a builtin.
fn is_program(word: &str) -> bool {
    const RESERVED: [&str; 14] =
        ["if", "then", "time", "exec", "cd", "echo", "true", "false", "[", ".", ":", "{", "!", "exit"];
    !word.is_empty() && !word.contains('=') && !RESERVED.contains(&word)
}

/// The words that a shell finds if each is plain or in single quotes, with `\'` for a quote.
fn split_quoted(line: &str) -> Vec<String> {
    let (mut words, mut word, mut inside) = (Vec::new(), String::new(), false);
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match character {
            '\'' => inside = !inside,
            '\\' if !inside => word.extend(characters.next()),
            ' ' if !inside => words.push(std::mem::take(&mut word)),
            other => {
                assert!(inside || other.is_ascii_alphanumeric() || "_@%+=:,./-".contains(other), "{line:?}");
                word.push(other);
            }
        }
    }
    words.push(word);
    words
}
