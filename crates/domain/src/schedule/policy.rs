//! What somebody can say about occurrences that come while nobody is there, or while the last run is unfinished.

/// What becomes of occurrences for which no worker was there in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnMissed {
    /// Nothing.
    Skip,
    /// One run makes up for all of them.
    #[default]
    Once,
    /// Each has its run, up to a limit.
    All,
}

/// What becomes of an occurrence while an earlier run is unfinished.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnOverlap {
    /// It is left out.
    #[default]
    Skip,
    /// It waits until the earlier run is finished, unless [`MAX_UNFINISHED_RUNS`] do already.
    Queue,
    /// The earlier run is cancelled.
    Replace,
}

impl OnMissed {
    pub const ALL: [Self; 3] = [Self::Skip, Self::Once, Self::All];

    pub fn name(self) -> &'static str {
        match self {
            Self::Skip => "skip",
            Self::Once => "once",
            Self::All => "all",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|choice| choice.name() == name)
    }
}

impl OnOverlap {
    pub const ALL: [Self; 3] = [Self::Skip, Self::Queue, Self::Replace];

    pub fn name(self) -> &'static str {
        match self {
            Self::Skip => "skip",
            Self::Queue => "queue",
            Self::Replace => "replace",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|choice| choice.name() == name)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    pub on_missed: OnMissed,
    /// How many missed occurrences are made up for at most, with [`OnMissed::All`].
    pub missed_limit: u32,
    pub on_overlap: OnOverlap,
}

pub const DEFAULT_MISSED_LIMIT: u32 = 10;
/// All of them are enqueued with one commit.
pub const MAX_MISSED_LIMIT: u32 = 100;

/// With [`OnOverlap::Queue`], so many runs of a schedule are unfinished at most; what comes then is left out.
pub const MAX_UNFINISHED_RUNS: usize = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    #[error("--missed-limit goes with --on-missed all")]
    LimitWithoutAll,
    #[error("with --on-missed all runs wait for each other, so --on-overlap can only be queue")]
    AllMustQueue,
}

impl Policy {
    /// Fills in what was not said.
    pub fn new(
        on_missed: Option<OnMissed>,
        missed_limit: Option<u32>,
        on_overlap: Option<OnOverlap>,
    ) -> Result<Self, PolicyError> {
        let on_missed = on_missed.unwrap_or_default();
        match (on_missed, on_overlap) {
            (OnMissed::All, None | Some(OnOverlap::Queue)) => Ok(Self {
                on_missed,
                missed_limit: missed_limit.unwrap_or(DEFAULT_MISSED_LIMIT),
                on_overlap: OnOverlap::Queue,
            }),
            (OnMissed::All, Some(OnOverlap::Skip | OnOverlap::Replace)) => Err(PolicyError::AllMustQueue),
            (OnMissed::Skip | OnMissed::Once, _) if missed_limit.is_some() => {
                Err(PolicyError::LimitWithoutAll)
            }
            (OnMissed::Skip | OnMissed::Once, on_overlap) => {
                Ok(Self { on_missed, missed_limit: 1, on_overlap: on_overlap.unwrap_or_default() })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_said_is_filled_in_and_what_contradicts_is_refused() {
        let plain = Policy::new(None, None, None);
        assert_eq!(
            plain,
            Ok(Policy { on_missed: OnMissed::Once, missed_limit: 1, on_overlap: OnOverlap::Skip })
        );
        let all = Policy { on_missed: OnMissed::All, missed_limit: 10, on_overlap: OnOverlap::Queue };
        assert_eq!(Policy::new(Some(OnMissed::All), None, None), Ok(all));
        assert_eq!(
            Policy::new(Some(OnMissed::All), Some(3), Some(OnOverlap::Queue)),
            Ok(Policy { missed_limit: 3, ..all })
        );
        for overlap in [OnOverlap::Skip, OnOverlap::Replace] {
            assert_eq!(Policy::new(Some(OnMissed::All), None, Some(overlap)), Err(PolicyError::AllMustQueue));
        }
        for missed in [None, Some(OnMissed::Skip), Some(OnMissed::Once)] {
            assert_eq!(Policy::new(missed, Some(2), None), Err(PolicyError::LimitWithoutAll));
        }
    }

    #[test]
    fn names_read_back() {
        for choice in OnMissed::ALL {
            assert_eq!(OnMissed::from_name(choice.name()), Some(choice));
        }
        for choice in OnOverlap::ALL {
            assert_eq!(OnOverlap::from_name(choice.name()), Some(choice));
        }
    }
}
