//! Patterns that match commands: `*` stands for any characters, `?` for one character, and a backslash escapes them. A
//! pattern with neither matches commands that contain it.

use std::str::FromStr;

/// The maximum length of a pattern.
pub const MAX_PATTERN_BYTES: usize = 4_096;

/// A parsed pattern.
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
        let mut parts = parse_parts(text);
        let is_plain = parts.iter().all(|part| matches!(part, Part::Character(_)));
        if is_plain {
            parts.insert(0, Part::AnyMany);
            parts.push(Part::AnyMany);
        }
        // Two in a row match the same as one, but more slowly.
        parts.dedup_by(|a, b| (*a, *b) == (Part::AnyMany, Part::AnyMany));
        Ok(Self { parts })
    }
}

fn parse_parts(text: &str) -> Vec<Part> {
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

impl CommandPattern {
    /// In the syntax of SQLite's `glob`, where a bracket opens a set of characters and a set of one escapes a character.
    pub fn to_glob(&self) -> String {
        let text = |part: &Part| match part {
            Part::AnyMany => "*".to_owned(),
            Part::AnyOne => "?".to_owned(),
            Part::Character(special @ ('*' | '?' | '[')) => format!("[{special}]"),
            Part::Character(plain) => plain.to_string(),
        };
        self.parts.iter().map(text).collect()
    }

    /// In the syntax of PostgreSQL's `like`, where a backslash escapes a character.
    pub fn to_like(&self) -> String {
        let text = |part: &Part| match part {
            Part::AnyMany => "%".to_owned(),
            Part::AnyOne => "_".to_owned(),
            Part::Character(special @ ('%' | '_' | '\\')) => format!("\\{special}"),
            Part::Character(plain) => plain.to_string(),
        };
        self.parts.iter().map(text).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_translated_to_glob_and_like() {
        for (typed, glob, like) in [
            ("make", "*make*", "%make%"),
            ("make*", "make*", "make%"),
            ("*.png", "*.png", "%.png"),
            ("a?c", "a?c", "a_c"),
            ("[a]", "*[[]a]*", "%[a]%"),
            (r"2\*3", "*2[*]3*", "%2*3%"),
            (r"why\?*", "why[?]*", "why?%"),
            (r"\\*", r"\*", r"\\%"),
            (r"\n", r"*\n*", r"%\\n%"),
            ("a***b", "a*b", "a%b"),
            ("5%_*", "5%_*", r"5\%\_%"),
            ("ä", "*ä*", "%ä%"),
        ] {
            let pattern: CommandPattern = typed.parse().expect(typed);
            assert_eq!((&*pattern.to_glob(), &*pattern.to_like()), (glob, like), "{typed}");
        }
    }

    #[test]
    fn empty_and_overlong_patterns_are_refused() {
        assert_eq!("".parse::<CommandPattern>(), Err(PatternError::Empty));
        let long = "x".repeat(MAX_PATTERN_BYTES + 1);
        assert_eq!(long.parse::<CommandPattern>(), Err(PatternError::TooLong));
    }
}
