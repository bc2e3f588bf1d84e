//! Names of jobs, queues and workers: exactly the documented form, which can never be a path.

use std::fmt::Display;
use std::str::FromStr;

use domain::values::name::{JobId, JobIdSequence, NameError, QueueName, WorkerId};
use domain::values::timestamp::Timestamp;

use super::message;
use super::numbers::Numbers;

pub const TOKENS: &[&str] = &[
    "a",
    "Z",
    "0",
    ".",
    "..",
    "_",
    ":",
    "-",
    "/",
    "\\",
    "\0",
    "\n",
    "\u{1b}[0m",
    "ä",
    "\u{202e}",
    " ",
    "default",
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
];

pub fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    check::<JobId>(&text, 128, "._:-");
    check::<WorkerId>(&text, 128, "._:-");
    check::<QueueName>(&text, 64, "._-");
    check_sequence(Numbers(data));
}

fn check<Name: FromStr<Err = NameError> + Display>(text: &str, limit: usize, punctuation: &str) {
    let begins_alphanumeric = text.starts_with(|first: char| first.is_ascii_alphanumeric());
    let is_plain = text.chars().all(|c| c.is_ascii_alphanumeric() || punctuation.contains(c));
    match text.parse::<Name>() {
        Ok(name) => {
            assert!(begins_alphanumeric && is_plain && text.len() <= limit, "{text:?} is accepted");
            assert_eq!(name.to_string(), text);
        }
        Err(error) => {
            assert!(!(begins_alphanumeric && is_plain && text.len() <= limit), "{text:?} is refused");
            message::check(&error, b"");
            assert!(!error.to_string().contains(char::is_control), "{error:?}");
        }
    }
}

/// Generated ids are valid and increase, even if the clock goes backwards.
fn check_sequence(mut numbers: Numbers<'_>) {
    let mut sequence = JobIdSequence::default();
    let ids: Vec<JobId> = (0..4)
        .map(|_| sequence.next(Timestamp::from_millis(numbers.u64().cast_signed()), numbers.u64()))
        .collect();
    assert!(ids.is_sorted_by(|a, b| a < b), "{ids:?}");
    assert!(ids.iter().all(|id| id.as_str().parse::<JobId>().as_ref() == Ok(id)), "{ids:?}");
}
