//! How long it is tried to tell a hook something.

use std::time::Duration;

use crate::values::timestamp::Timestamp;

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(3_600);
/// How old an event gets that nobody could be told of.
const MAX_AGE: Duration = Duration::from_secs(24 * 3_600);
/// It is tried so often at least, also where the clock has jumped a day ahead.
const FEWEST_TRIES: u32 = 10;

/// What is to be done after a try that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    RetryAt(Timestamp),
    GiveUp,
}

/// Twice as long after each try, so many of which have failed now.
pub fn after_failure(tries: u32, created_at: Timestamp, now: Timestamp) -> Next {
    if tries >= FEWEST_TRIES && now.since(created_at) >= MAX_AGE {
        return Next::GiveUp;
    }
    let doublings = tries.saturating_sub(1).min(u32::BITS - 1);
    Next::RetryAt(now.saturating_add(FIRST_PAUSE.saturating_mul(1 << doublings).min(LONGEST_PAUSE)))
}

/// A hook that has failed for a day without a break is told nothing any more of what happened before this moment, tried or
/// not: where there is more news than there are tries, most of it would never have its turn, and pile up.
pub fn given_up_before(failing_since: Timestamp, now: Timestamp) -> Option<Timestamp> {
    let before = now.saturating_sub(MAX_AGE);
    (failing_since <= before).then_some(before)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(second: i64) -> Timestamp {
        Timestamp::from_millis(second * 1_000)
    }

    #[test]
    fn pauses_double_up_to_an_hour_for_a_day() {
        for (tries, now, next) in [
            (1, 0, Next::RetryAt(second(1))),
            (2, 5, Next::RetryAt(second(7))),
            (12, 100, Next::RetryAt(second(2_148))),
            (13, 0, Next::RetryAt(second(3_600))),
            (u32::MAX, 0, Next::RetryAt(second(3_600))),
            (30, 86_399, Next::RetryAt(second(86_399 + 3_600))),
            (30, 86_400, Next::GiveUp),
            // A clock that was set ahead.
            (1, 86_400, Next::RetryAt(second(86_401))),
            (10, 86_400, Next::GiveUp),
        ] {
            assert_eq!(after_failure(tries, second(0), second(now)), next, "{tries} tries at {now}");
        }
    }

    #[test]
    fn after_a_day_of_failures_what_is_a_day_old_is_given_up() {
        assert_eq!(given_up_before(second(10), second(86_409)), None);
        assert_eq!(given_up_before(second(10), second(86_411)), Some(second(11)));
        assert_eq!(given_up_before(second(86_411), second(10)), None, "a clock that was set back");
    }
}
