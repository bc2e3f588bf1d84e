//! Lines that are crossed once, however many jobs cross them in one transaction.

/// How a transaction changes whether a batch is finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchCrossing {
    Finishes,
    /// A job was added or retried.
    Resumes,
    None,
}

impl BatchCrossing {
    /// From whether all its jobs are finished now, and whether they were before.
    pub fn of(is_finished: bool, was_finished: bool) -> Self {
        match (is_finished, was_finished) {
            (true, false) => Self::Finishes,
            (false, true) => Self::Resumes,
            (true, true) | (false, false) => Self::None,
        }
    }
}

/// Whether the number of dead jobs rises above the threshold. A hook fires then, and again only after the number has
/// fallen back.
pub fn rises_above(threshold: u64, before: i64, after: i64) -> bool {
    let threshold = i64::try_from(threshold).unwrap_or(i64::MAX);
    before <= threshold && threshold < after
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threshold_is_crossed_once_until_the_number_falls_back() {
        assert!(rises_above(3, 3, 4));
        assert!(rises_above(3, 0, 9), "several at once");
        assert!(!rises_above(3, 4, 5), "it was above before");
        assert!(!rises_above(3, 5, 2));
        assert!(!rises_above(u64::MAX, 0, i64::MAX));
    }

    #[test]
    fn a_batch_is_finished_once_until_it_gets_another_job() {
        assert_eq!(BatchCrossing::of(true, false), BatchCrossing::Finishes);
        assert_eq!(BatchCrossing::of(false, true), BatchCrossing::Resumes);
        assert_eq!(BatchCrossing::of(true, true), BatchCrossing::None);
        assert_eq!(BatchCrossing::of(false, false), BatchCrossing::None);
    }
}
