//! The priority of a job: a number, or a word for one.

use std::fmt;
use std::str::FromStr;

use serde::de::{Deserialize, Deserializer, Error, Unexpected, Visitor};

/// The words for priorities, from other job queues.
pub const WORDS: [(&str, i32); 4] = [("low", -10), ("normal", 0), ("high", 10), ("urgent", 20)];

/// Higher runs first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Priority(pub i32);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be a whole number from {} to {}, or low, normal, high or urgent", i32::MIN, i32::MAX)]
pub struct PriorityError;

fn by_word(typed: &str) -> Option<Priority> {
    let word = WORDS.into_iter().find(|(word, _)| word.eq_ignore_ascii_case(typed));
    word.map(|(_, priority)| Priority(priority))
}

impl FromStr for Priority {
    type Err = PriorityError;

    fn from_str(typed: &str) -> Result<Self, PriorityError> {
        by_word(typed).or_else(|| typed.parse().ok().map(Self)).ok_or(PriorityError)
    }
}

/// In JSON a number is a number: `"5"` is refused.
impl<'de> Deserialize<'de> for Priority {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PriorityVisitor;

        impl Visitor<'_> for PriorityVisitor {
            type Value = Priority;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(
                    out,
                    "a whole number from {} to {}, or \"low\", \"normal\", \"high\" or \"urgent\"",
                    i32::MIN,
                    i32::MAX
                )
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Priority, E> {
                let out_of_range = |_| E::invalid_value(Unexpected::Signed(number), &self);
                i32::try_from(number).map(Priority).map_err(out_of_range)
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Priority, E> {
                let out_of_range = |_| E::invalid_value(Unexpected::Unsigned(number), &self);
                i32::try_from(number).map(Priority).map_err(out_of_range)
            }

            fn visit_str<E: Error>(self, word: &str) -> Result<Priority, E> {
                by_word(word).ok_or_else(|| E::invalid_value(Unexpected::Str(word), &self))
            }
        }

        deserializer.deserialize_any(PriorityVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_priority_is_a_number_or_a_word() {
        for (typed, expected) in
            [("5", 5), ("-3", -3), ("low", -10), ("normal", 0), ("High", 10), ("urgent", 20)]
        {
            assert_eq!(typed.parse(), Ok(Priority(expected)), "{typed}");
        }
        for typed in ["", "highest", "1.5", "2147483648", "0x1", "high "] {
            assert_eq!(typed.parse::<Priority>(), Err(PriorityError), "{typed}");
        }
    }
}
