//! The shells whose command lines can be completed: their scripts, and the form of an answer for each.

use std::fmt::Write;

use super::Candidate;
use super::answer::Answer;

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Shell {
    Bash,
    Zsh,
    Fish,
}

impl Shell {
    /// The script that a user loads into the shell.
    pub(crate) fn script(self) -> &'static str {
        match self {
            Self::Bash => include_str!("scripts/queuectl.bash"),
            Self::Zsh => include_str!("scripts/queuectl.zsh"),
            Self::Fish => include_str!("scripts/queuectl.fish"),
        }
    }

    /// The words without their quotes, which bash leaves in.
    pub(crate) fn unquoted(self, words: Vec<String>) -> Vec<String> {
        match self {
            Self::Bash => words.iter().map(|word| unquote(word)).collect(),
            Self::Zsh | Self::Fish => words,
        }
    }

    /// The answer as the script reads it: one line for its kind, then one for each candidate.
    pub(crate) fn format(self, answer: &Answer, typed: &str) -> String {
        let mut text = match answer {
            Answer::Values(_) => "values\n".to_owned(),
            Answer::Files => "files\n".to_owned(),
            Answer::Folders => "folders\n".to_owned(),
            Answer::Command(at) => format!("command {at}\n"),
        };
        if let Answer::Values(candidates) = answer {
            for candidate in candidates {
                self.write(&mut text, candidate, self.kept(typed));
            }
        }
        text
    }

    /// How many bytes of the typed word stay: the shell replaces only what is after them.
    fn kept(self, typed: &str) -> usize {
        match self {
            Self::Bash => typed.rfind(['=', ':']).map_or(0, |at| at + 1),
            Self::Zsh if typed.starts_with("--") => typed.find('=').map_or(0, |at| at + 1),
            Self::Zsh | Self::Fish => 0,
        }
    }

    fn write(self, text: &mut String, Candidate { value, about }: &Candidate, kept: usize) {
        let value = &value[kept..];
        // Writing to a string cannot fail.
        let _ = match self {
            _ if about.is_empty() => writeln!(text, "{value}"),
            Self::Bash | Self::Fish => writeln!(text, "{value}\t{about}"),
            Self::Zsh => writeln!(text, "{}:{about}", value.replace(':', "\\:")),
        };
    }
}

/// A word without its quotes and backslashes. A quote that is still open ends at the cursor.
fn unquote(word: &str) -> String {
    let mut plain = String::new();
    let mut quote = None;
    let mut characters = word.chars();
    while let Some(character) = characters.next() {
        match (character, quote) {
            ('\\', None | Some('"')) => plain.extend(characters.next()),
            ('\'' | '"', None) => quote = Some(character),
            _ if quote == Some(character) => quote = None,
            _ => plain.push(character),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_loses_its_quotes() {
        for (typed, plain) in [
            ("make", "make"),
            ("'a b'", "a b"),
            ("\"a b", "a b"),
            ("a\\ b", "a b"),
            ("'it'\\''s'", "it's"),
            ("\"say \\\"hi\\\"\"", "say \"hi\""),
            ("end\\", "end"),
        ] {
            assert_eq!(unquote(typed), plain, "{typed}");
        }
    }

    #[test]
    fn each_shell_gets_the_part_of_the_word_that_it_replaces() {
        let state = Answer::Values(vec![Candidate::new("--state=dead", "out of retries")]);
        assert_eq!(Shell::Bash.format(&state, "--state=d"), "values\ndead\tout of retries\n");
        assert_eq!(Shell::Zsh.format(&state, "--state=d"), "values\ndead:out of retries\n");
        assert_eq!(Shell::Fish.format(&state, "--state=d"), "values\n--state=dead\tout of retries\n");
        let id = Answer::Values(vec![Candidate::new("a:b", "")]);
        assert_eq!(Shell::Bash.format(&id, "a:"), "values\nb\n");
        let id = Answer::Values(vec![Candidate::new("a:b", "dead  x")]);
        assert_eq!(Shell::Zsh.format(&id, "a:"), "values\na\\:b:dead  x\n");
        assert_eq!(Shell::Fish.format(&Answer::Command(2), ""), "command 2\n");
    }
}
