//! How many jobs a worker runs at once.

use std::fmt;
use std::str::FromStr;

/// The maximum number of slots of a worker.
pub const MAX_CONCURRENCY: u32 = 1_024;
/// The word for the number of cores.
const AUTO: &str = "auto";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Concurrency {
    /// As many slots as the worker's machine has cores.
    Auto,
    Slots(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be a whole number from 1 to {MAX_CONCURRENCY}, or auto for the number of cores")]
pub struct ConcurrencyError;

impl Concurrency {
    /// The number of slots on a machine with this many cores.
    pub fn slots(self, cores: usize) -> u32 {
        match self {
            Self::Auto => u32::try_from(cores).unwrap_or(MAX_CONCURRENCY).clamp(1, MAX_CONCURRENCY),
            Self::Slots(slots) => slots,
        }
    }
}

impl FromStr for Concurrency {
    type Err = ConcurrencyError;

    fn from_str(text: &str) -> Result<Self, ConcurrencyError> {
        if text == AUTO {
            return Ok(Self::Auto);
        }
        let slots = text.parse().ok().filter(|slots| (1..=MAX_CONCURRENCY).contains(slots));
        slots.map(Self::Slots).ok_or(ConcurrencyError)
    }
}

impl fmt::Display for Concurrency {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => out.write_str(AUTO),
            Self::Slots(slots) => slots.fmt(out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_number_or_auto() {
        for (text, slots) in [("1", 1), ("1024", 1_024), ("auto", 8)] {
            let parsed: Concurrency = text.parse().expect(text);
            assert_eq!((parsed.slots(8), parsed.to_string().as_str()), (slots, text));
        }
        for text in ["0", "1025", "-1", "Auto", "", "1.5"] {
            assert_eq!(text.parse::<Concurrency>(), Err(ConcurrencyError), "{text}");
        }
        assert_eq!((Concurrency::Auto.slots(0), Concurrency::Auto.slots(9_999)), (1, MAX_CONCURRENCY));
    }
}
