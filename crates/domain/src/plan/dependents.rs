//! Whether the end of some dependencies unblocks a waiting job.

use super::consequences::End;
use crate::job::OnDependencyFailure;
use crate::job::life::{Event, Life, Policy, Transition, transition};
use crate::values::timestamp::Timestamp;

/// Applies these ends, in their order, to a job that waits for them. `None` if they change nothing: the job no longer
/// waits.
pub fn unblock(
    life: &Life,
    on_failure: OnDependencyFailure,
    ends: &[End],
    policy: &Policy,
    now: Timestamp,
) -> Option<Transition> {
    let mut unblocked: Option<Transition> = None;
    for end in ends {
        let event = match (end, on_failure) {
            (End::Failure, OnDependencyFailure::Cancel) => Event::DependencyFailed,
            (End::Failure, OnDependencyFailure::Run) | (End::Success, _) => Event::DependencyMet,
        };
        let current = unblocked.as_ref().map_or(life, |unblocked| &unblocked.life);
        if let Ok(next) = transition(current, event, policy, now) {
            unblocked = Some(Transition { from: life.state.name(), ..next });
        }
    }
    unblocked
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::life::{CancelReason, State, StateName};
    use crate::job::retry_rules::RetryRules;
    use crate::settings::Settings;

    const NOW: Timestamp = Timestamp::from_millis(1_000);

    fn unblocked(blocked_by: u32, on_failure: OnDependencyFailure, ends: &[End]) -> Option<State> {
        let settings = Settings::default();
        let policy = Policy {
            backoff: settings.backoff,
            crash_limit: settings.crash_limit,
            retry: RetryRules::default(),
            roll: 0.0,
        };
        let life = Life::begin(None, 3, blocked_by, NOW);
        let unblocked = unblock(&life, on_failure, ends, &policy, NOW)?;
        assert_eq!(unblocked.from, StateName::Pending);
        Some(unblocked.life.state)
    }

    #[test]
    fn every_end_counts_and_a_failure_cancels_unless_the_job_runs_regardless() {
        use OnDependencyFailure::{Cancel, Run};
        let cancelled = State::Cancelled { finished_at: NOW, reason: CancelReason::Dependency };
        for (blocked_by, on_failure, ends, expected) in [
            (2, Cancel, &[End::Success][..], Some(State::Pending { blocked_by: 1 })),
            (2, Cancel, &[End::Success, End::Success], Some(State::Pending { blocked_by: 0 })),
            (2, Cancel, &[End::Success, End::Failure], Some(cancelled.clone())),
            (3, Cancel, &[End::Failure, End::Success], Some(cancelled)),
            (2, Run, &[End::Failure, End::Failure], Some(State::Pending { blocked_by: 0 })),
            (0, Cancel, &[End::Success], None),
            (1, Cancel, &[], None),
        ] {
            assert_eq!(unblocked(blocked_by, on_failure, ends), expected, "{blocked_by} {ends:?}");
        }
    }
}
