//! After which exit codes a failed attempt is tried again: all of them, unless a job or its queue says otherwise.
//!
//! Only exit codes are judged. A signal, a timeout or a command that could not be started is retried as always: it says
//! nothing about what the command found.

use std::fmt;
use std::str::FromStr;

/// A set of exit codes of failure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExitCodes {
    /// One bit for each of the 256 codes; that of 0 is never set.
    bits: [u64; 4],
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExitCodesError {
    #[error("`{0}` is no exit code; they are numbers from 1 to 255")]
    NoCode(String),
    #[error("exit code 0 means success: there is nothing to retry")]
    Success,
    #[error("a list of exit codes is empty")]
    Empty,
    #[error("exit code {0} is in `retry_on` and in `no_retry_on`")]
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

    /// In order.
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
        let code = |part: &str| part.trim().parse().map_err(|_| ExitCodesError::NoCode(part.to_owned()));
        let codes: Vec<u8> = text.split(',').map(code).collect::<Result<_, _>>()?;
        Self::new(codes)
    }
}

/// What a job says about it, or a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RetryRules {
    /// Only these are retried.
    pub retry_on: Option<ExitCodes>,
    /// These are not.
    pub no_retry_on: Option<ExitCodes>,
}

impl RetryRules {
    pub fn new(retry_on: Option<ExitCodes>, no_retry_on: Option<ExitCodes>) -> Result<Self, ExitCodesError> {
        if let (Some(these), Some(those)) = (retry_on, no_retry_on)
            && let Some(both) = these.iter().find(|code| those.contains(*code))
        {
            return Err(ExitCodesError::InBoth(both));
        }
        Ok(Self { retry_on, no_retry_on })
    }

    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Those of a job take the place of its queue's: a list of the one beside a list of the other could contradict.
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
        text.parse().expect("exit codes")
    }

    fn rules(retry_on: &str, no_retry_on: &str) -> RetryRules {
        let list = |text: &str| (!text.is_empty()).then(|| codes(text));
        RetryRules::new(list(retry_on), list(no_retry_on)).expect("rules")
    }

    #[test]
    fn codes_are_a_set_that_is_written_in_order() {
        assert_eq!(codes("75, 1,75,255,64,63").to_string(), "1,63,64,75,255");
        assert!(codes("64").contains(64) && !codes("64").contains(0) && !codes("64").contains(128));
        for (text, error) in [
            ("", ExitCodesError::NoCode(String::new())),
            ("1,,2", ExitCodesError::NoCode(String::new())),
            ("one", ExitCodesError::NoCode("one".to_owned())),
            ("256", ExitCodesError::NoCode("256".to_owned())),
            ("-1", ExitCodesError::NoCode("-1".to_owned())),
            ("1.0", ExitCodesError::NoCode("1.0".to_owned())),
            ("1,0", ExitCodesError::Success),
        ] {
            assert_eq!(text.parse::<ExitCodes>(), Err(error), "{text}");
        }
        assert_eq!(ExitCodes::new([]), Err(ExitCodesError::Empty));
    }

    #[test]
    fn both_lists_decide() {
        for (retry_on, no_retry_on, exit_code, retried) in [
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
            assert_eq!(rules(retry_on, no_retry_on).retries(exit_code), retried, "{case}");
        }
        let both = RetryRules::new(Some(codes("1,75")), Some(codes("2,75")));
        assert_eq!(both, Err(ExitCodesError::InBoth(75)));
    }

    #[test]
    fn the_rules_of_a_job_take_the_place_of_its_queues() {
        let (job, queue) = (rules("", "2"), rules("2", ""));
        assert_eq!(job.or(queue), job);
        assert_eq!(RetryRules::default().or(queue), queue);
    }
}
