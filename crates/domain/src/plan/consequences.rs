//! The consequences of a transition for everything beside the job's own row.

use crate::hook::HookEvent;
use crate::job::life::{Life, StateName, Transition, WaitIndex};
use crate::job::unique::UniqueFor;
use crate::values::timestamp::Timestamp;

/// What changes together with a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Consequences {
    /// The counters of its queue and batch: one job leaves the first state and enters the second.
    pub counted: Option<(StateName, StateName)>,
    /// Where it waited until now, and where it waits from now on.
    pub leaves: WaitIndex,
    pub enters: WaitIndex,
    /// It gives its unique key back.
    pub releases_key: bool,
    /// It no longer waits for its unfinished dependencies.
    pub stops_waiting: bool,
    /// It is finished, so its dependents are unblocked.
    pub finished: Option<End>,
    /// The event that hooks may be waiting for.
    pub event: Option<HookEvent>,
}

/// How a finished job counts for its dependents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Success,
    /// Dead or cancelled.
    Failure,
}

impl End {
    /// `None` for a state in which a job is not finished.
    pub fn of(state: StateName) -> Option<Self> {
        match state {
            StateName::Completed => Some(Self::Success),
            StateName::Dead | StateName::Cancelled => Some(Self::Failure),
            StateName::Pending | StateName::Processing | StateName::Failed => None,
        }
    }

    pub fn is_failure(self) -> bool {
        self == Self::Failure
    }
}

/// What follows from a transition of a job with this life; `key` says how long its unique key is held, if it has one.
pub fn consequences(
    before: &Life,
    transition: &Transition,
    key: Option<UniqueFor>,
    now: Timestamp,
) -> Consequences {
    let (from, to) = (transition.from, transition.life.state.name());
    let is_changed = from != to;
    let finished = End::of(to);
    Consequences {
        counted: is_changed.then_some((from, to)),
        leaves: before.wait_index(now),
        enters: transition.life.wait_index(now),
        releases_key: key.is_some_and(|unique_for| unique_for.gives_back(from, to)),
        stops_waiting: finished.is_some() && before.state.blocked_by() > 0,
        finished,
        event: if is_changed { HookEvent::of(to) } else { None },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::life::{CancelReason, Lease, State};
    use std::time::Duration;

    const NOW: Timestamp = Timestamp::from_millis(1_000);

    fn life(state: State, due_at: Timestamp) -> Life {
        Life { state, due_at, ..Life::begin(None, 3, 0, NOW) }
    }

    fn running() -> Life {
        let worker = "w".parse().expect("a worker id");
        let lease = Lease::new(worker, NOW, NOW);
        life(State::Processing(lease), NOW)
    }

    fn after(before: &Life, life: Life, key: Option<UniqueFor>) -> Consequences {
        consequences(before, &Transition { from: before.state.name(), life }, key, NOW)
    }

    #[test]
    fn a_claimed_job_leaves_the_ready_jobs_and_gives_back_a_key_that_was_held_until_its_start() {
        let ready = life(State::Pending { blocked_by: 0 }, NOW);
        let claimed = after(&ready, running(), Some(UniqueFor::Started));
        assert_eq!((claimed.leaves, claimed.enters), (WaitIndex::Ready, WaitIndex::None));
        assert_eq!(claimed.counted, Some((StateName::Pending, StateName::Processing)));
        assert!(claimed.releases_key);
        assert!(!after(&ready, running(), Some(UniqueFor::Finished)).releases_key);
        assert!(!after(&ready, running(), None).releases_key);
        assert_eq!((claimed.finished, claimed.event, claimed.stops_waiting), (None, None, false));
    }

    #[test]
    fn a_failed_attempt_waits_for_its_backoff_and_tells_hooks() {
        let later = NOW.saturating_add(Duration::from_secs(1));
        let failed = after(&running(), life(State::Failed, later), Some(UniqueFor::Finished));
        assert_eq!((failed.leaves, failed.enters), (WaitIndex::None, WaitIndex::Waiting));
        assert_eq!((failed.event, failed.finished), (Some(HookEvent::Failure), None));
        assert!(!failed.releases_key);
    }

    #[test]
    fn an_end_unblocks_dependents_and_ends_its_own_waiting() {
        let completed =
            after(&running(), life(State::Completed { finished_at: NOW }, NOW), Some(UniqueFor::Finished));
        assert_eq!((completed.finished, completed.event), (Some(End::Success), Some(HookEvent::Success)));
        assert!(completed.releases_key && !completed.stops_waiting);
        let blocked = life(State::Pending { blocked_by: 2 }, NOW);
        let cancelled = State::Cancelled { finished_at: NOW, reason: CancelReason::User };
        let cancelled = after(&blocked, life(cancelled, NOW), None);
        assert_eq!((cancelled.finished, cancelled.event), (Some(End::Failure), None));
        assert!(cancelled.stops_waiting);
        assert_eq!((cancelled.leaves, cancelled.enters), (WaitIndex::None, WaitIndex::None));
    }

    #[test]
    fn an_extended_lease_changes_nothing_else() {
        let extended = after(&running(), running(), Some(UniqueFor::Started));
        let nothing = Consequences {
            counted: None,
            leaves: WaitIndex::None,
            enters: WaitIndex::None,
            releases_key: false,
            stops_waiting: false,
            finished: None,
            event: None,
        };
        assert_eq!(extended, nothing);
    }

    #[test]
    fn only_a_finished_job_that_did_not_complete_is_a_failure_to_its_dependents() {
        for state in StateName::ALL {
            assert_eq!(End::of(state).is_some(), state.is_finished(), "{state:?}");
        }
        assert_eq!(End::of(StateName::Completed).map(End::is_failure), Some(false));
        assert_eq!(End::of(StateName::Dead).map(End::is_failure), Some(true));
        assert_eq!(End::of(StateName::Cancelled).map(End::is_failure), Some(true));
    }
}
