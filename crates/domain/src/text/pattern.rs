//! Which commands are meant: `*` stands for any characters, `?` for one; a backslash takes that meaning away. What has
//! neither is looked for anywhere in a command.

use std::fmt;
use std::str::FromStr;

/// The longest pattern.
pub const MAX_PATTERN_BYTES: usize = 4_096;

/// A pattern, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandPattern {
    parts: Vec<Part>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Character(char),
    AnyOne,
    AnyMany,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    #[error("the pattern is empty")]
    Empty,
    #[error("the pattern is longer than {MAX_PATTERN_BYTES} bytes")]
    TooLong,
}

impl FromStr for CommandPattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        if text.is_empty() {
            return Err(PatternError::Empty);
        }
        if text.len() > MAX_PATTERN_BYTES {
            return Err(PatternError::TooLong);
        }
        let mut parts = take_apart(text);
        let is_plain = parts.iter().all(|part| matches!(part, Part::Character(_)));
        if is_plain {
            parts.insert(0, Part::AnyMany);
            parts.push(Part::AnyMany);
        }
        // Two in a row mean the same as one, and take longer.
        parts.dedup_by(|a, b| (*a, *b) == (Part::AnyMany, Part::AnyMany));
        Ok(Self { parts })
    }
}

fn take_apart(text: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        parts.push(match character {
            '*' => Part::AnyMany,
            '?' => Part::AnyOne,
            '\\' => Part::Character(
                characters.next_if(|next| matches!(next, '*' | '?' | '\\')).unwrap_or(character),
            ),
            plain => Part::Character(plain),
        });
    }
    parts
}

/// As SQL's `glob` takes it: there a bracket opens a set of characters, and a set of one is how to say the rest.
impl fmt::Display for CommandPattern {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in &self.parts {
            match part {
                Part::AnyMany => out.write_str("*")?,
                Part::AnyOne => out.write_str("?")?,
                Part::Character(special @ ('*' | '?' | '[')) => write!(out, "[{special}]")?,
                Part::Character(plain) => write!(out, "{plain}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_say_the_same_to_the_store() {
        for (typed, glob) in [
            ("make", "*make*"),
            ("make*", "make*"),
            ("*.png", "*.png"),
            ("a?c", "a?c"),
            ("[a]", "*[[]a]*"),
            (r"2\*3", "*2[*]3*"),
            (r"why\?*", "why[?]*"),
            (r"\\*", r"\*"),
            (r"\n", r"*\n*"),
            ("a***b", "a*b"),
            ("ä", "*ä*"),
        ] {
            let pattern: CommandPattern = typed.parse().expect(typed);
            assert_eq!(pattern.to_string(), glob, "{typed}");
        }
    }

    #[test]
    fn nothing_and_too_much_are_refused() {
        assert_eq!("".parse::<CommandPattern>(), Err(PatternError::Empty));
        let long = "x".repeat(MAX_PATTERN_BYTES + 1);
        assert_eq!(long.parse::<CommandPattern>(), Err(PatternError::TooLong));
    }
}
