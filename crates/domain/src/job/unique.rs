//! How long a job's unique key prevents other jobs with the same key.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::life::{Life, StateName};
use crate::json::{read_as_text, span_text};
use crate::values::span::{SpanError, format_span, parse_span};
use crate::values::timestamp::Timestamp;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UniqueFor {
    /// Until a worker claims the job for the first time.
    Started,
    /// Until the job is completed, dead or cancelled.
    #[default]
    Finished,
    /// For this long after the job was enqueued, regardless of its state.
    Span(Duration),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UniqueForError {
    #[error("expected started, finished or a duration ({0})")]
    Span(#[from] SpanError),
    #[error("a `unique_for` of 0 has no effect")]
    Zero,
}

impl UniqueFor {
    /// When a key that is taken now expires; `None` if it is held until the job's state changes.
    pub fn held_until(self, now: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Started | Self::Finished => None,
            Self::Span(span) => Some(now.saturating_add(span)),
        }
    }

    /// Whether a job that changes from one state to the other releases its key.
    pub fn gives_back(self, from: StateName, to: StateName) -> bool {
        match self {
            Self::Started => to.is_finished() || (from != to && to == StateName::Processing),
            Self::Finished => to.is_finished(),
            Self::Span(_) => false,
        }
    }

    /// Whether a retried job must hold its key again.
    pub fn needs_key_again(self, life: &Life) -> bool {
        match self {
            Self::Started => life.attempts == 0,
            Self::Finished | Self::Span(_) => true,
        }
    }

    /// Whether a retried job takes its key if it is free. The time of `Span` counts from enqueuing, so it does not.
    pub fn takes_key_again(self) -> bool {
        match self {
            Self::Started | Self::Finished => true,
            Self::Span(_) => false,
        }
    }
}

impl FromStr for UniqueFor {
    type Err = UniqueForError;

    fn from_str(text: &str) -> Result<Self, UniqueForError> {
        match text {
            "started" => Ok(Self::Started),
            "finished" => Ok(Self::Finished),
            span => match parse_span(span)? {
                Duration::ZERO => Err(UniqueForError::Zero),
                span => Ok(Self::Span(span)),
            },
        }
    }
}

impl fmt::Display for UniqueFor {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Started => out.write_str("started"),
            Self::Finished => out.write_str("finished"),
            Self::Span(span) => out.write_str(&format_span(*span)),
        }
    }
}

read_as_text!(span_text: UniqueFor);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_survive_a_round_trip() {
        for text in ["started", "finished", "1h", "1m30s", "250ms"] {
            let read: UniqueFor = text.parse().expect(text);
            assert_eq!(read.to_string(), text);
        }
        for bad in ["", "start", "0", "0s", "-1h", "ever"] {
            assert!(bad.parse::<UniqueFor>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_key_is_released_at_the_configured_time() {
        let changes = [
            (StateName::Pending, StateName::Processing),
            (StateName::Processing, StateName::Processing),
            (StateName::Processing, StateName::Failed),
            (StateName::Processing, StateName::Pending),
            (StateName::Processing, StateName::Completed),
            (StateName::Pending, StateName::Cancelled),
        ];
        let given = |unique: UniqueFor| changes.map(|(from, to)| unique.gives_back(from, to));
        assert_eq!(given(UniqueFor::Started), [true, false, false, false, true, true]);
        assert_eq!(given(UniqueFor::Finished), [false, false, false, false, true, true]);
        assert_eq!(given(UniqueFor::Span(Duration::from_secs(1))), [false; 6]);
    }
}
