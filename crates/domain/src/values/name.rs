//! The names of jobs, queues, batches, schedules, workers and hooks. Parsed at the edge, trusted inside.

use std::fmt;
use std::str::FromStr;

use super::timestamp::Timestamp;
use crate::json::{read_as_text, text};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    #[error("it is empty")]
    Empty,
    #[error("it is longer than {limit} characters")]
    TooLong { limit: usize },
    #[error("it must begin with a letter or a digit")]
    BadStart,
    #[error("it must not contain {character:?}; letters, digits and {allowed} are allowed")]
    BadCharacter { character: char, allowed: &'static str },
}

/// The rules for names of one kind.
struct Grammar {
    limit: usize,
    punctuation: &'static str,
}

impl Grammar {
    fn check(&self, text: &str) -> Result<(), NameError> {
        let first = text.chars().next().ok_or(NameError::Empty)?;
        let is_forbidden = |c: &char| !c.is_ascii_alphanumeric() && !self.punctuation.contains(*c);
        if let Some(character) = text.chars().find(is_forbidden) {
            return Err(NameError::BadCharacter { character, allowed: self.punctuation });
        }
        if !first.is_ascii_alphanumeric() {
            return Err(NameError::BadStart);
        }
        if text.len() > self.limit {
            return Err(NameError::TooLong { limit: self.limit });
        }
        Ok(())
    }
}

macro_rules! name {
    ($(#[$doc:meta])* $type:ident, $grammar:expr) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $type(String);

        impl $type {
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $type {
            type Err = NameError;

            fn from_str(text: &str) -> Result<Self, NameError> {
                const GRAMMAR: Grammar = $grammar;
                GRAMMAR.check(text)?;
                Ok(Self(text.to_owned()))
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str(&self.0)
            }
        }

        read_as_text!(text: $type);
    };
}

name!(
    /// The id of a job, given by the caller or generated.
    JobId,
    Grammar { limit: 128, punctuation: "._:-" }
);
name!(
    /// The name of a queue.
    QueueName,
    Grammar { limit: 64, punctuation: "._-" }
);
name!(
    /// The name of a batch.
    BatchName,
    Grammar { limit: 64, punctuation: "._-" }
);
name!(
    /// The name of a schedule; short enough to be the prefix of a job id.
    ScheduleName,
    Grammar { limit: 64, punctuation: "._-" }
);
name!(
    /// The id of a worker process, unique across machines and restarts.
    WorkerId,
    Grammar { limit: 128, punctuation: "._:-" }
);
name!(
    /// The name of a hook.
    HookName,
    Grammar { limit: 64, punctuation: "._-" }
);

impl QueueName {
    /// The queue of a job that does not name one.
    pub fn default_queue() -> Self {
        Self("default".to_owned())
    }
}

/// Generates job ids that sort by the time of generation.
///
/// An id is 18 characters of lower-case base 32: 45 bits of milliseconds, then 45 bits that start at random in each
/// millisecond and only increase within it. Ids of one process therefore never repeat, those of several processes collide
/// with negligible probability, and an index over ids grows at its end (random ids make inserts four times slower).
#[derive(Debug, Default)]
pub struct JobIdSequence {
    millis: u64,
    tail: u64,
}

const TAIL_BITS: u32 = 45;
const ID_LENGTH: u32 = 18;
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
/// The largest step between two ids of one millisecond. With a step of one, ids could be guessed from each other.
const MAX_STEP: u64 = 1 << 20;

impl JobId {
    /// Whether it has the form of a generated id. These all have one length, so none is a prefix of another.
    pub fn is_generated(&self) -> bool {
        self.0.len() == ID_LENGTH as usize && self.0.bytes().all(|byte| ALPHABET.contains(&byte))
    }
}

impl JobIdSequence {
    /// The next id; `random` is 64 fresh random bits.
    pub fn next(&mut self, now: Timestamp, random: u64) -> JobId {
        let millis = u64::try_from(now.as_millis()).unwrap_or(0) & ((1 << TAIL_BITS) - 1);
        if millis > self.millis {
            self.millis = millis;
            // The top bit stays free, so that the tail can grow within the millisecond.
            self.tail = random & ((1 << (TAIL_BITS - 1)) - 1);
        } else {
            self.tail += 1 + random % MAX_STEP;
            if self.tail >= 1 << TAIL_BITS {
                self.millis += 1;
                self.tail = random % MAX_STEP;
            }
        }
        let bits = (u128::from(self.millis) << TAIL_BITS) | u128::from(self.tail);
        JobId(base32(bits))
    }
}

fn base32(bits: u128) -> String {
    (0..ID_LENGTH).rev().map(|digit| char::from(ALPHABET[(bits >> (5 * digit)) as usize & 31])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_id_follows_its_grammar() {
        for good in ["a", "0", "Job-1", "a.b_c:d-e", &"x".repeat(128)] {
            assert!(good.parse::<JobId>().is_ok(), "{good}");
        }
        for bad in ["", ".a", "-a", "..", "a/b", "a b", "a\nb", "\u{1b}[0m", "ä", &"x".repeat(129)] {
            assert!(bad.parse::<JobId>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_queue_name_has_no_spaces_or_colons() {
        assert!("media-low.2".parse::<QueueName>().is_ok());
        for bad in ["", "a b", "a:b", "_a", &"q".repeat(65)] {
            assert!(bad.parse::<QueueName>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn generated_ids_are_valid_and_grow_even_when_the_clock_does_not() {
        let mut sequence = JobIdSequence::default();
        let mut ids = Vec::new();
        for step in 0..2_000_i64 {
            // The clock stands still, then jumps back.
            let now = Timestamp::from_millis(1_700_000_000_000 - (step / 1_000) * 60_000);
            ids.push(sequence.next(now, u64::MAX - step.unsigned_abs()));
        }
        assert!(ids.is_sorted_by(|a, b| a < b));
        assert!(ids.iter().all(|id| id.as_str().parse::<JobId>().as_ref() == Ok(id)));
        assert_eq!(ids[0].as_str().len(), 18);
    }
}
