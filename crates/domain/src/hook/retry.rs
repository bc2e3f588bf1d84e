//! How long and how often a delivery is retried.

use std::time::Duration;

use crate::values::timestamp::Timestamp;

const FIRST_RETRY_DELAY: Duration = Duration::from_secs(1);
const MAX_RETRY_DELAY: Duration = Duration::from_secs(3_600);
/// The age at which an undelivered event is given up.
const MAX_AGE: Duration = Duration::from_secs(24 * 3_600);
/// The minimum number of tries, so that a clock that jumps a day ahead does not end them early.
const MIN_TRIES: u32 = 10;

/// When to retry after the `tries`-th try has failed; `None` to give up. The delay doubles with each try.
pub fn retry_at(tries: u32, created_at: Timestamp, now: Timestamp) -> Option<Timestamp> {
    if tries >= MIN_TRIES && now.since(created_at) >= MAX_AGE {
        return None;
    }
    let doublings = tries.saturating_sub(1).min(u32::BITS - 1);
    Some(now.saturating_add(FIRST_RETRY_DELAY.saturating_mul(1 << doublings).min(MAX_RETRY_DELAY)))
}

/// The time before which all events of a hook are given up, tried or not, because the hook has failed for a day without a
/// break. If events arrive faster than they are tried, most of them would otherwise never be tried, and pile up.
pub fn expired_before(failing_since: Timestamp, now: Timestamp) -> Option<Timestamp> {
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
    fn retry_delays_double_up_to_an_hour_for_a_day() {
        for (tries, now, next) in [
            (1, 0, Some(second(1))),
            (2, 5, Some(second(7))),
            (12, 100, Some(second(2_148))),
            (13, 0, Some(second(3_600))),
            (u32::MAX, 0, Some(second(3_600))),
            (30, 86_399, Some(second(86_399 + 3_600))),
            (30, 86_400, None),
            // A clock that was set ahead.
            (1, 86_400, Some(second(86_401))),
            (10, 86_400, None),
        ] {
            assert_eq!(retry_at(tries, second(0), second(now)), next, "{tries} tries at {now}");
        }
    }

    #[test]
    fn after_a_day_of_failures_events_older_than_a_day_are_given_up() {
        assert_eq!(expired_before(second(10), second(86_409)), None);
        assert_eq!(expired_before(second(10), second(86_411)), Some(second(11)));
        assert_eq!(expired_before(second(86_411), second(10)), None, "a clock that was set back");
    }
}
