//! The key of a row as one number, in the order of resolution, minute and queue. Every process parses the schema when it
//! starts, so each column costs every `enqueue`; and a turn finds its row by one comparison for each level of the tree.

use std::ops::Range;

use crate::rows::keys::QueueKey;
use domain::metrics::resolution::Resolution;

/// Two billion: a queue with a larger number is not counted.
const QUEUE_BITS: u32 = 31;
/// Enough until the year 4000. A clock that is wrong by more is taken for the nearest minute.
const MINUTE_BITS: u32 = 30;

const QUEUES: i64 = 1 << QUEUE_BITS;
const MINUTES: i64 = 1 << MINUTE_BITS;
/// The bits of a number that are the queue.
pub(super) const QUEUE_MASK: i64 = QUEUES - 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MinuteKey {
    pub(crate) resolution: Resolution,
    pub(crate) minute: i64,
    pub(crate) queue_id: QueueKey,
}

impl MinuteKey {
    /// `None` for a queue that is not counted.
    pub(crate) fn id(self) -> Option<i64> {
        let QueueKey(queue) = self.queue_id;
        let first = first_id(self.resolution, self.minute.min(MINUTES - 2));
        (0..QUEUES).contains(&queue).then_some(first | queue)
    }

    pub(super) fn from_id(id: i64, resolution: Resolution) -> Self {
        let minute = (id >> QUEUE_BITS) & (MINUTES - 1);
        Self { resolution, minute, queue_id: QueueKey(id & QUEUE_MASK) }
    }
}

/// The numbers of all rows of this resolution within these minutes.
pub(super) fn ids(resolution: Resolution, minutes: &Range<i64>) -> Range<i64> {
    first_id(resolution, minutes.start)..first_id(resolution, minutes.end)
}

/// The first number of a minute.
fn first_id(resolution: Resolution, minute: i64) -> i64 {
    let code = match resolution {
        Resolution::Minute => 0,
        Resolution::TenMinutes => 1,
        Resolution::Hour => 2,
        Resolution::Rest => 3,
    };
    ((code << MINUTE_BITS) | minute.clamp(0, MINUTES - 1)) << QUEUE_BITS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_the_key() {
        for resolution in Resolution::ALL {
            for (minute, queue) in [(0, 0), (0, 7), (29_000_000, 1), (MINUTES - 2, QUEUES - 1)] {
                let key = MinuteKey { resolution, minute, queue_id: QueueKey(queue) };
                let id = key.id().expect("a queue that is counted");
                assert!(id >= 0, "{key:?}");
                assert_eq!(MinuteKey::from_id(id, resolution), key);
                assert!(ids(resolution, &(minute..minute + 1)).contains(&id), "{key:?}");
                assert!(ids(resolution, &(i64::MIN..i64::MAX)).contains(&id), "{key:?}");
                assert!(!ids(resolution, &(minute + 1..i64::MAX)).contains(&id), "{key:?}");
            }
        }
    }

    #[test]
    fn numbers_beyond_the_limits_overwrite_no_other_row() {
        let key =
            |minute, queue| MinuteKey { resolution: Resolution::Hour, minute, queue_id: QueueKey(queue) };
        assert_eq!(key(5, QUEUES).id(), None);
        assert_eq!(key(5, -1).id(), None);
        assert_eq!(key(i64::MAX, 1).id(), key(MINUTES - 2, 1).id());
        assert_eq!(key(i64::MIN, 1).id(), key(0, 1).id());
        let rest = MinuteKey { resolution: Resolution::Rest, ..key(0, 0) };
        assert!(key(i64::MAX, QUEUES - 1).id() < rest.id());
    }
}
