//! The options for occurrences that were missed, and for those that come while an earlier run is unfinished.

crate::named_enum! {
    /// The policy for occurrences that were missed because no worker ran in time.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum OnMissed {
        /// They are skipped.
        Skip = "skip",
        /// One run makes up for all of them.
        #[default]
        Once = "once",
        /// Each gets a run, up to a limit.
        All = "all",
    }
}

crate::named_enum! {
    /// The policy for an occurrence while an earlier run is unfinished.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum OnOverlap {
        /// It is skipped.
        #[default]
        Skip = "skip",
        /// It waits until the earlier run is finished, unless [`MAX_UNFINISHED_RUNS`] are already unfinished.
        Queue = "queue",
        /// The earlier run is cancelled.
        Replace = "replace",
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    pub on_missed: OnMissed,
    /// With [`OnMissed::All`], the maximum number of missed occurrences that get a run.
    pub missed_limit: u32,
    pub on_overlap: OnOverlap,
}

pub const DEFAULT_MISSED_LIMIT: u32 = 10;
/// All missed occurrences are enqueued in one commit.
pub const MAX_MISSED_LIMIT: u32 = 100;

/// With [`OnOverlap::Queue`], the maximum number of unfinished runs of a schedule; further occurrences are skipped.
pub const MAX_UNFINISHED_RUNS: usize = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    #[error("--missed-limit requires --on-missed all")]
    LimitWithoutAll,
    #[error("--on-missed all requires --on-overlap queue, because the missed runs wait for each other")]
    AllMustQueue,
}

impl Policy {
    /// Combines the given options with the defaults.
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
    fn missing_options_get_defaults_and_contradictions_are_refused() {
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
}
