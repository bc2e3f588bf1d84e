//! Which exit codes are retried: all of them, unless a job or its queue says otherwise.
//!
//! The rules apply only to exit codes. A signal, a timeout or a command that could not be started is always retried: it
//! says nothing about what the command found.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::json::{BoundedInteger, check};

/// A set of non-zero exit codes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExitCodes {
    /// One bit for each of the 256 codes; the bit of 0 is never set.
    bits: [u64; 4],
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExitCodesError {
    #[error("not a valid exit code: `{0}`; expected a number from 1 to 255")]
    Malformed(String),
    #[error("exit code 0 means success: there is nothing to retry")]
    Success,
    #[error("the list of exit codes is empty")]
    Empty,
    #[error("exit code {0} is in both `retry_on` and `no_retry_on`")]
    InBoth(u8),
}

impl ExitCodes {
    pub fn new(codes: impl IntoIterator<Item = u8>) -> Result<Self, ExitCodesError> {
        let mut set = Self::default();
        for code in codes {
            if code == 0 {
                return Err(ExitCodesError::Success);
            }
            set.bits[usize::from(code) / 64] |= 1 << (code % 64);
        }
        if set == Self::default() { Err(ExitCodesError::Empty) } else { Ok(set) }
    }

    pub fn contains(&self, code: u8) -> bool {
        self.bits[usize::from(code) / 64] & (1 << (code % 64)) != 0
    }

    /// In ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u8> {
        (1..=u8::MAX).filter(|code| self.contains(*code))
    }
}

/// `1,75`
impl fmt::Display for ExitCodes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let codes: Vec<String> = self.iter().map(|code| code.to_string()).collect();
        out.write_str(&codes.join(","))
    }
}

impl FromStr for ExitCodes {
    type Err = ExitCodesError;

    fn from_str(text: &str) -> Result<Self, ExitCodesError> {
        let code = |part: &str| part.trim().parse().map_err(|_| ExitCodesError::Malformed(part.to_owned()));
        let codes: Vec<u8> = text.split(',').map(code).collect::<Result<_, _>>()?;
        Self::new(codes)
    }
}

/// A list of numbers.
impl Serialize for ExitCodes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for ExitCodes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let codes: Vec<BoundedInteger<0, { u8::MAX as i64 }>> = Vec::deserialize(deserializer)?;
        let codes: Result<Vec<u8>, _> = codes.into_iter().map(|code| u8::try_from(code.0)).collect();
        check(Self::new(check(codes)?))
    }
}

/// The rules of a job or a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RetryRules {
    /// If set, only these codes are retried.
    pub retry_on: Option<ExitCodes>,
    /// These codes are not retried.
    pub no_retry_on: Option<ExitCodes>,
}

impl RetryRules {
    pub fn new(retry_on: Option<ExitCodes>, no_retry_on: Option<ExitCodes>) -> Result<Self, ExitCodesError> {
        if let (Some(retried), Some(not_retried)) = (retry_on, no_retry_on)
            && let Some(code) = retried.iter().find(|code| not_retried.contains(*code))
        {
            return Err(ExitCodesError::InBoth(code));
        }
        Ok(Self { retry_on, no_retry_on })
    }

    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// A job's rules replace those of its queue as a whole: a list of one combined with a list of the other could contradict.
    #[must_use]
    pub fn or(self, others: Self) -> Self {
        if self.is_none() { others } else { self }
    }

    pub fn retries(&self, exit_code: i32) -> bool {
        let Ok(code) = u8::try_from(exit_code) else {
            return true;
        };
        self.retry_on.is_none_or(|codes| codes.contains(code))
            && !self.no_retry_on.is_some_and(|codes| codes.contains(code))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(text: &str) -> ExitCodes {
        text.parse().expect("valid exit codes")
    }

    fn rules(retry_on: &str, no_retry_on: &str) -> RetryRules {
        let list = |text: &str| (!text.is_empty()).then(|| codes(text));
        RetryRules::new(list(retry_on), list(no_retry_on)).expect("consistent rules")
    }

    #[test]
    fn exit_codes_are_a_set_formatted_in_order() {
        assert_eq!(codes("75, 1,75,255,64,63").to_string(), "1,63,64,75,255");
        assert!(codes("64").contains(64) && !codes("64").contains(0) && !codes("64").contains(128));
        for (text, error) in [
            ("", ExitCodesError::Malformed(String::new())),
            ("1,,2", ExitCodesError::Malformed(String::new())),
            ("one", ExitCodesError::Malformed("one".to_owned())),
            ("256", ExitCodesError::Malformed("256".to_owned())),
            ("-1", ExitCodesError::Malformed("-1".to_owned())),
            ("1.0", ExitCodesError::Malformed("1.0".to_owned())),
            ("1,0", ExitCodesError::Success),
        ] {
            assert_eq!(text.parse::<ExitCodes>(), Err(error), "{text}");
        }
        assert_eq!(ExitCodes::new([]), Err(ExitCodesError::Empty));
    }

    #[test]
    fn a_code_is_retried_if_neither_list_excludes_it() {
        for (retry_on, no_retry_on, exit_code, is_retried) in [
            ("", "", 1, true),
            ("75", "", 75, true),
            ("75", "", 1, false),
            ("", "2", 2, false),
            ("", "2", 3, true),
            ("75,76", "2", 76, true),
            ("75,76", "2", 2, false),
            ("75,76", "2", 3, false),
            ("75", "", 256, true),
            ("75", "", -1, true),
        ] {
            let case = format!("{exit_code} of {retry_on:?} and {no_retry_on:?}");
            assert_eq!(rules(retry_on, no_retry_on).retries(exit_code), is_retried, "{case}");
        }
        let both = RetryRules::new(Some(codes("1,75")), Some(codes("2,75")));
        assert_eq!(both, Err(ExitCodesError::InBoth(75)));
    }

    #[test]
    fn the_rules_of_a_job_replace_those_of_its_queue() {
        let (job, queue) = (rules("", "2"), rules("2", ""));
        assert_eq!(job.or(queue), job);
        assert_eq!(RetryRules::default().or(queue), queue);
    }
}
